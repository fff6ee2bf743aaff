//! Estimates of the duration of a plan and of the demand of its largest run.

use crate::limits::Estimate;
use crate::run::Run;
use crate::testbed::Testbed;

/// Overhead of a run, in seconds: formatting, writing files, collecting. For estimates only.
const SETUP_S: f64 = 1.5;

/// Simulated seconds per second, for a server with some hundred requests/s. For estimates only.
const VIRTUAL_SPEED: f64 = 2000.0;
/// Time of a run of admission control, in seconds. For estimates only.
const ADMISSION_S: f64 = 0.3;

/// Duration of all runs in sequence, in seconds.
pub(crate) fn estimate_s(runs: &[Run]) -> f64 {
    let each = |run: &Run| match run.testbed {
        Testbed::Device => run.warmup_s + run.duration_s + SETUP_S,
        Testbed::Simulator => (run.warmup_s + run.duration_s) / VIRTUAL_SPEED,
        Testbed::Admission => ADMISSION_S,
    };
    runs.iter().map(each).sum()
}

/// The largest value of each field over all runs.
pub(crate) fn largest(runs: &[Run]) -> Estimate {
    runs.iter().map(Run::estimate).fold(Estimate::default(), Estimate::max)
}
