//! Outcome of a run, and the time of its stages.

use serde::Serialize;
use weir_coordination::Ended;

use crate::validity::rule::Validity;

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The run's folder exists; nothing was done.
    Present,
    /// The run was carried out; its folder is complete.
    Done {
        /// Whether its data may be used.
        validity: Validity,
        /// Time before, during and after the requests.
        timing: Timing,
        /// Rows of `requests.parquet`.
        requests: u64,
    },
    /// This host's kernel lacks what the run varies; the run's folder says so.
    Skipped {
        /// Missing feature of the kernel.
        reason: String,
    },
    /// Another host of the run ended it; changes of this host were undone.
    Ended {
        /// Which host, and how.
        ended: Ended,
        /// Time until then, in seconds.
        spent_s: f64,
    },
}

/// Time of each stage of a run, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Timing {
    /// Devices, file systems, files, collectors.
    pub setup_s: f64,
    /// Requests.
    pub measured_s: f64,
    /// Records, validity, undoing.
    pub teardown_s: f64,
}
