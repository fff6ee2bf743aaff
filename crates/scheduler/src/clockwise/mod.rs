//! The scheduler of Clockwise, and those that it is compared with: contracts of real-time streams, and best-effort
//! requests beside them.
//!
//! P. Bosch, "Mixed-media file systems", PhD thesis, University of Twente, 1999, chapter 6. A contract promises a stream
//! one request of at most its cost in every period, and a best-effort class so much service in every period. Requests of
//! a contract have a release and a deadline ([`slots`]); those that come faster than the contract says are released in
//! the future. Everything else is best effort ([`best_effort`]). The policies differ in when they serve what is not
//! released yet, and what is best effort:
//!
//! * [`background`]: when nothing is released ("EDF" in the thesis, and USD);
//! * [`lst`]: also when what is released can still begin in time (Symphony);
//! * [`deltal`]: also as long as the slack lasts that any admitted set has (Clockwise).
//!
//! A device that does not stop a request which it has begun is what the promises are about: all of these give it one
//! request at a time.

mod background;
mod best_effort;
mod contracts;
mod core;
mod deltal;
mod lst;
mod real_time;
mod slots;

pub(crate) use background::{EDF_BACKGROUND, USD};
pub(crate) use deltal::ENTRY as DELTAL;
pub(crate) use lst::ENTRY as LST;
