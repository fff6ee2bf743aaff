//! A storage server in virtual time: clients, buffer caches, striped volumes, heads with schedulers.
//!
//! [`Server::run`] moves from event to event in integer nanoseconds; it draws no random numbers and depends on
//! no property of the host: equal sources give equal outcomes everywhere. Memory is bounded by outstanding requests, not by
//! simulated time.
//!
//! [`Dispatcher`] has the same heads without clients and calendar. The owner of the clock, such as a server in real time,
//! passes arrivals and the current time.

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
