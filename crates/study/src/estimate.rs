//! How long runs take, and what the largest of them asks for; about.

use crate::limits::Estimate;
use crate::run::Run;
use crate::testbed::Testbed;

/// Time a run takes besides its own length, in seconds: formatting, filling, collecting. For estimates only.
const SETUP_S: f64 = 1.5;

/// Simulated seconds a second, of a server of some hundred requests a second. For estimates only.
const VIRTUAL_SPEED: f64 = 2000.0;
/// Time of a run of admission control, in seconds. For estimates only.
const ADMISSION_S: f64 = 0.3;

/// Time that runs take one after the other, in seconds.
pub(crate) fn estimate_s(runs: &[Run]) -> f64 {
    let each = |run: &Run| match run.testbed {
        Testbed::Device => run.warmup_s + run.duration_s + SETUP_S,
        Testbed::Simulator => (run.warmup_s + run.duration_s) / VIRTUAL_SPEED,
        Testbed::Admission => ADMISSION_S,
    };
    runs.iter().map(each).sum()
}

/// The largest of each part over all runs. Runs of a cell ask for the same.
pub(crate) fn largest(runs: &[Run]) -> Estimate {
    runs.iter().map(Run::estimate).fold(Estimate::default(), Estimate::max)
}
