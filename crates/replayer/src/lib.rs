//! Open-loop replay of a stream of requests to block devices or files, with its lateness.
//!
//! Each request has an absolute time on `CLOCK_MONOTONIC`, and is sent at that time whether or not earlier requests have
//! completed. Neither a late request nor a slow device delays later ones: a response time from the intended time contains
//! the whole queueing delay (no coordinated omission).
//!
//! * [`Targets`] opens the targets, and maps each class to its target;
//! * [`Check`] checks a stream before anything is sent;
//! * [`Looped`] and [`Paused`] change it, [`Dependent`] infers what requests wait for;
//! * [`replay`] sends it, and returns its [`Fidelity`] with a [`Certificate`].

mod blocking;
mod buffer;
mod certificate;
mod check;
mod dependent;
mod error;
mod feed;
mod fidelity;
mod graph;
mod looped;
mod options;
mod pacer;
mod peak;
mod polling;
mod reorder;
mod replay;
mod ring;
mod slots;
mod step;
mod submission;
mod target;
mod targets;
#[cfg(test)]
mod testing;
mod wait;

pub use certificate::{Certificate, LIMIT_P99_NS, RateLateness};
pub use check::{Check, StreamSummary};
pub use dependent::{Dependent, Inference};
pub use error::Error;
pub use fidelity::{Fidelity, TargetReport};
pub use looped::{Looped, Pause, Paused, Repeat, shifted};
pub use options::{Options, Progress};
pub use peak::PeakRate;
pub use polling::check_polling;
pub use reorder::Reordered;
pub use replay::replay;
pub use step::{After, Step};
pub use submission::Submission;
pub use target::Kind;
pub use targets::{Layout, Route, Targets};
