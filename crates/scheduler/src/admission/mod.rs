//! Admission control and data placement for streams of varying rate (Wijayaratne and Reddy, "Providing QOS guarantees for
//! disk I/O", sections 2.2, 3.1, 3.2 and 4.1).
//!
//! Time is divided into rounds. The [`DemandTrace`] of a stream has its blocks per round, and its [`Placement`] their disks.
//! A [`LoadTable`] holds the committed load of every disk in every future round, at the worst-case service time
//! ([`RoundBound`]). An [`Admission`] searches for a start round in which the whole stream fits, in the order of a
//! [`StartPolicy`], within a latency target.

mod bound;
mod controller;
mod demand;
mod fit;
mod load;
mod placement;
mod start;

pub use bound::{RoundBound, SeekCurve};
pub use controller::{Admission, Admitted};
pub use demand::DemandTrace;
pub use fit::{Dropped, Refused};
pub use load::{Committed, LoadTable};
pub use placement::{Layout, Placement, Visit};
pub use start::{Draw, StartPolicy};

/// Invalid parameter of admission control.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// A number is out of range.
    #[error("{what}: found {value}, expected {expected}")]
    Value {
        /// Name of the number.
        what: &'static str,
        /// Value.
        value: String,
        /// Valid values.
        expected: String,
    },
    /// A stride that skips rounds of the window.
    #[error(
        "prime hopping by {stride} rounds skips rounds of a window of {window} rounds. Choose a prime that does not divide {window}"
    )]
    Stride {
        /// Stride of the search, in rounds.
        stride: u64,
        /// Rounds in the window: the latency target and the round of arrival.
        window: u64,
    },
}

pub(crate) fn refused(
    what: &'static str,
    value: impl ToString,
    expected: impl Into<String>,
) -> AdmissionError {
    AdmissionError::Value { what, value: value.to_string(), expected: expected.into() }
}
