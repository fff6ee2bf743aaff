//! What is asked of a web site: people who go from page to page and think in between.
//!
//! A [`SessionWorkload`] is a recipe of sessions: a table of transitions between interactions ([`Transitions`]), how
//! long a client thinks, how a session begins and ends. A [`Browser`] is one client: it says which interaction comes
//! next after the answer to the last, so that a driver of a real site closes the loop. [`SessionStream`] merges the
//! clients of a class as if every answer took the same time.
//!
//! An interaction is no block request: what it asks of a disk is decided by the database behind the site.

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
