//! A storage server in virtual time: clients, buffer caches, striped volumes, heads with schedulers.
//!
//! [`Server::run`] moves from event to event in integer nanoseconds; nothing in it is drawn at random and nothing depends
//! on the machine, so that the same sources give the same outcome everywhere. Memory is bounded by what is outstanding,
//! not by the time that is simulated.
//!
//! [`Dispatcher`] has the same heads without clients and without a calendar: whoever owns the clock, a server in real time
//! say, tells it what arrives and what time it is.

mod calendar;
mod dispatcher;
mod head;
mod layout;
mod mix;
mod scatter;
mod server_run;
mod source;
mod split_mix;

pub use dispatcher::{Dispatcher, Done, Wanted};
pub use head::{Head, HeadReport, Machine};
pub use layout::{ClassLayout, FilePlace, Placement, Volume};
pub use mix::Mix;
pub use scatter::{Scatter, UnitPlace};
pub use server_run::{Limits, Outcome, Saturation, Served, Server, ServerClass, ServerError};
pub use source::{Ask, ClosedLoop, Source};
pub(crate) use split_mix::SplitMix;
