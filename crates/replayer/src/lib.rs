//! Sends a stream of requests to a block device or to files at their intended times, and says how
//! late it was.
//!
//! The replay is *open loop*: each request has an absolute time on `CLOCK_MONOTONIC`, and is sent at
//! that time whether or not earlier requests have completed. Neither a late request nor a slow
//! device shifts the ones that follow, so a response time measured from the intended time holds the
//! whole wait that the workload would have seen (no coordinated omission).
//!
//! * [`Targets`] opens what the requests are sent to, and maps each class to its target;
//! * [`Check`] finds everything that is wrong with a stream before anything is sent;
//! * [`replay`] sends it, and returns its own [`Fidelity`].

mod blocking;
mod buffer;
mod check;
mod error;
mod feed;
mod fidelity;
mod options;
mod pacer;
mod reorder;
mod replay;
mod ring;
mod slots;
mod target;
mod targets;
mod wait;

pub use check::{Check, StreamSummary};
pub use error::Error;
pub use fidelity::{Fidelity, TargetReport};
pub use options::{Options, Progress};
pub use reorder::Reordered;
pub use replay::replay;
pub use target::Kind;
pub use targets::{Layout, Route, Targets};
