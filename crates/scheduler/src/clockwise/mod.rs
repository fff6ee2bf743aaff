//! Schedulers with contracts for real-time streams and best-effort requests: Clockwise and its baselines.
//!
//! P. Bosch, "Mixed-media file systems", PhD thesis, University of Twente, 1999, chapter 6. A contract guarantees a
//! stream one request of at most its cost in every period, and a best-effort class a service time in every period.
//! Requests of a contract have a release and a deadline ([`slots`]); requests that come early are released later.
//! Everything else is best effort ([`best_effort`]). The schedulers serve unreleased and best-effort requests at different
//! times:
//!
//! * [`background`]: when nothing is released ("EDF" in the thesis, and USD);
//! * [`lst`]: also while released requests can still begin in time (Symphony);
//! * [`deltal`]: also within the slack of the admitted set (Clockwise).
//!
//! Guarantees assume a non-preemptive device: the schedulers dispatch one request at a time.

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
