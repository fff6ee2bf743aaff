//! Sessions on a web site: visitors that move from page to page with think times.
//!
//! A [`SessionWorkload`] is a recipe of sessions: a table of transitions between interactions ([`Transitions`]),
//! think times, and begin and end of sessions. A [`Browser`] is one client: it returns the next interaction after the answer
//! to the last, and a driver of a real site closes the loop. [`SessionStream`] merges the
//! clients of a class as if every answer took the same time.
//!
//! An interaction is no block request: the database of the site decides the I/O.

mod browser;
mod original;
mod spec;
mod stream;
mod table;
mod think;
mod walk;

/// Takes the text of a table of the RUBiS and RUBBoS clients apart.
#[doc(hidden)]
pub fn fuzzing(text: &str) {
    original::fuzzing(text);
}

pub use browser::{Browser, SessionModel, Step};
pub use spec::{AnyWorkload, Begin, Beyond, Lasts, SessionWorkload, Sessions, Think};
pub use stream::SessionStream;
pub use table::{Next, Transitions};
pub use walk::{Moved, Walk};
