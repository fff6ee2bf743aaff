//! Options of a replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use crate::{Error, Submission};

/// Most rings of a replay.
const MOST_RINGS: usize = 64;
/// Rate from which registered buffers pay. They take up to 30 ms to register, in which no request can be sent.
const BUFFERS_FROM_PER_S: f64 = 10_000.0;
/// Longest time to prepare threads and rings, without and with registered buffers.
const PREPARATION: Duration = Duration::from_millis(20);
const PREPARATION_WITH_BUFFERS: Duration = Duration::from_millis(100);

/// Progress of a replay; readable from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests handed to the kernel.
    pub sent: AtomicU64,
    /// Requests whose completion was seen, including failures.
    pub completed: AtomicU64,
}

/// Options of a replay. The default sends at intended times, beginning at once.
#[derive(Debug, Clone)]
pub struct Options {
    /// The instant of `CLOCK_MONOTONIC`, in ns, that intended times are relative to; `None` begins
    /// as soon as the first requests are read.
    pub epoch_monotonic_ns: Option<i64>,
    /// Factor on intended times: 2 sends at half the rate. The time between a request's intended
    /// time and its deadline is kept.
    pub timescale: f64,
    /// Set to `true` to send no more requests; outstanding ones are still awaited.
    pub stop: Arc<AtomicBool>,
    /// `SCHED_FIFO` priority of the pacing thread, where permitted; `None` keeps the default class.
    pub fifo_priority: Option<i32>,
    /// Time limit for outstanding completions after the last request.
    pub grace: Duration,
    /// Compare read data with [`weir_content::pattern`]; a difference is status `EBADMSG`.
    pub verify: bool,
    /// Seed of the pattern.
    pub seed: u64,
    /// Maximum memory for data in flight; requests beyond it wait, are late, and are counted.
    pub max_buffer_bytes: usize,
    /// Number of rings, each with a thread; `None` for as many as the expected rate needs.
    pub rings: Option<usize>,
    /// Whether a kernel thread for each ring polls for submissions; `None` if it pays on this machine.
    pub polled: Option<bool>,
    /// Whether completions are polled for (`IORING_SETUP_IOPOLL`), which devices with polling queues permit; `None` if it pays.
    pub poll_completions: Option<bool>,
    /// Whether the stream is known to have reads and writes only: completions of other requests cannot be polled for.
    pub only_transfers: bool,
    /// The highest rate that is expected, in requests per second. `None`: not known; one ring and no registered buffers.
    pub peak_per_s: Option<f64>,
    /// What [`Submission::choose`] chose; `None` to choose when the replay begins.
    pub submission: Option<Submission>,
    /// Whether requests wait for those that they depend on ([`crate::Step`]).
    pub dependencies: bool,
    /// Updated as the replay goes on.
    pub progress: Arc<Progress>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            epoch_monotonic_ns: None,
            timescale: 1.0,
            stop: Arc::default(),
            fifo_priority: Some(1),
            grace: Duration::from_secs(10),
            verify: false,
            seed: 0,
            max_buffer_bytes: 2 << 30,
            rings: None,
            polled: None,
            poll_completions: None,
            only_transfers: false,
            peak_per_s: None,
            submission: None,
            dependencies: false,
            progress: Arc::default(),
        }
    }
}

impl Options {
    /// Longest time from the call of [`crate::replay`], with [`Options::submission`], until it can send a request.
    pub fn preparation(&self) -> Duration {
        if self.registers_buffers() { PREPARATION_WITH_BUFFERS } else { PREPARATION }
    }

    /// Whether buffers are registered.
    pub(crate) fn registers_buffers(&self) -> bool {
        self.peak_per_s.is_some_and(|peak_per_s| peak_per_s >= BUFFERS_FROM_PER_S)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |option, found: &dyn ToString, allowed| {
            Err(Error::Option { option, found: found.to_string(), allowed })
        };
        if !(self.timescale.is_finite() && self.timescale > 0.0) {
            return wrong("timescale", &self.timescale, "a number above 0");
        }
        if self.dependencies && self.rings.is_some_and(|rings| rings != 1) {
            return wrong("rings", &self.rings.unwrap_or(0), "1 where requests depend on one another");
        }
        if let Some(rings) = self.rings
            && !(1..=MOST_RINGS).contains(&rings)
        {
            return wrong("rings", &rings, "1 to 64");
        }
        match self.fifo_priority {
            Some(priority) if !(1..=99).contains(&priority) => wrong("fifo_priority", &priority, "1 to 99"),
            _ => Ok(()),
        }
    }
}
