//! Admission control for streams of varying rate, and where their data lies (Wijayaratne and Reddy, "Providing QOS
//! guarantees for disk I/O", sections 2.2, 3.1, 3.2 and 4.1).
//!
//! Time is cut into rounds. A stream says with its [`DemandTrace`] how many blocks it needs in each; its [`Placement`]
//! says on which disks these are; a [`LoadTable`] holds what every disk is committed to in every round to come, at its
//! worst ([`RoundBound`]). An [`Admission`] looks for a round in which the whole stream fits, in the order of a
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

/// Why something cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// A number is out of its range.
    #[error("{what} is {value}: it must be {expected}")]
    Value {
        /// Which number.
        what: &'static str,
        /// What it is.
        value: String,
        /// What it can be.
        expected: String,
    },
    /// A stride that skips rounds of the window.
    #[error(
        "prime hopping by {stride} rounds never looks at some of a window of {window} rounds; take a prime that does not divide {window}"
    )]
    Stride {
        /// Rounds from one that is looked at to the next.
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
