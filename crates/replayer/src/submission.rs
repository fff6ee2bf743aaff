//! How requests are handed to the kernel, chosen by measurement at the start of a replay.

use serde::{Deserialize, Serialize};
use weir_host::clock::monotonic_ns;

use crate::polling::{check_polling, read_ns};
use crate::ring::{Ring, Ways};
use crate::{Error, Options, Targets};

/// Number of empty requests by which the cost of a ring is measured.
const PROBES: usize = 512;
/// Time of the system call that submits a read of 4 KiB to a block device. The median in `make bench-replay` is 2 to 4 us at
/// rates above 20,000/s.
const DEVICE_NS: f64 = 2_500.0;
/// Share of its time that a thread may be busy: above it, requests wait for one another.
const BUSY: f64 = 0.6;
/// CPUs that must be left for devices and the other threads before a kernel thread polls for submissions.
const OTHER_CPUS: usize = 2;
/// Limit on the 99th percentile of the time until a polling thread has taken a request.
const POLLED_LIMIT_NS: u64 = 20_000;

/// How requests were handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Submission {
    /// Rings, each with a thread of its own.
    pub rings: usize,
    /// Whether kernel threads polled for submissions (`IORING_SETUP_SQPOLL`).
    pub polled: bool,
    /// Whether completions were polled for (`IORING_SETUP_IOPOLL`).
    #[serde(default)]
    pub poll_completions: bool,
    /// Whether completions were posted without interrupting the threads (`IORING_SETUP_COOP_TASKRUN`).
    pub cooperative: bool,
    /// Whether files were registered.
    pub fixed_files: bool,
    /// Whether memory was registered: data of requests beyond 32 MiB in flight is not in it.
    pub fixed_buffers: bool,
    /// Time from queueing an empty request to its completion: median before the first request. `None` if it was not measured,
    /// as the expected rate was not known.
    pub nothing_ns: Option<u64>,
    /// Time of a read of 4 KiB from the first target whose completion an interrupt reports: median before the first request.
    /// `None` if polling was no choice.
    #[serde(default)]
    pub interrupted_read_ns: Option<u64>,
    /// The same of a read whose completion is polled for.
    #[serde(default)]
    pub polled_read_ns: Option<u64>,
}

impl Submission {
    /// What these options want, or what fits this machine, by measurement. Reads the first target if its completions can be
    /// polled for.
    ///
    /// # Errors
    /// The kernel refuses a ring, a read fails, or completions of a target cannot be polled for.
    pub fn choose(options: &Options, targets: &Targets) -> Result<Self, Error> {
        let (rings, polled) = (options.rings.unwrap_or(1), options.polled.unwrap_or(false));
        let poll_completions = options.poll_completions.unwrap_or(false);
        if poll_completions {
            check_polling(targets)?;
        }
        let Some(peak_per_s) = options.peak_per_s else {
            return Ok(Submission { rings, polled, poll_completions, ..Submission::default() });
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let (nothing_ns, _) = cost_ns(&mut Ring::new(false, false)?)?;
        let busy = peak_per_s * (nothing_ns as f64 + DEVICE_NS) / 1e9;
        let most = if options.dependencies { 1 } else { (cpus / 2).max(1) };
        let rings = options.rings.unwrap_or(((busy / BUSY).ceil() as usize).clamp(1, most));
        let polled = match options.polled {
            Some(polled) => polled,
            None if cpus < 2 * rings + OTHER_CPUS => false,
            None => {
                let (median_ns, p99_ns) = cost_ns(&mut Ring::new(true, false)?)?;
                median_ns < nothing_ns + DEVICE_NS as u64 && p99_ns <= POLLED_LIMIT_NS
            }
        };
        // The thread of a ring that polls for completions occupies its CPU.
        let is_choice =
            options.poll_completions.is_none() && options.only_transfers && cpus >= rings + OTHER_CPUS;
        let (interrupted_read_ns, polled_read_ns) = if is_choice && check_polling(targets).is_ok() {
            (Some(read_ns(targets, false)?), Some(read_ns(targets, true)?))
        } else {
            (None, None)
        };
        Ok(Submission {
            rings,
            polled,
            poll_completions: poll_completions || polled_read_ns < interrupted_read_ns,
            nothing_ns: Some(nothing_ns),
            interrupted_read_ns,
            polled_read_ns,
            ..Submission::default()
        })
    }

    /// With what the kernel granted.
    pub(crate) fn with(self, ways: Ways) -> Self {
        let Ways { polled, poll_completions, cooperative, fixed_files, fixed_buffers } = ways;
        Submission { polled, poll_completions, cooperative, fixed_files, fixed_buffers, ..self }
    }
}

/// Median and 99th percentile of the time from queueing a request to its completion.
fn cost_ns(ring: &mut Ring) -> Result<(u64, u64), Error> {
    let mut completions = Vec::new();
    let mut took_ns = Vec::with_capacity(PROBES);
    for slot in 0..PROBES as u64 {
        let begin = monotonic_ns();
        ring.push_nothing(slot)?;
        while !ring.submit()? {}
        while !ring.has_completions() {
            std::hint::spin_loop();
        }
        ring.take(monotonic_ns, &mut completions);
        took_ns.push(u64::try_from(monotonic_ns() - begin).unwrap_or(0));
    }
    took_ns.sort_unstable();
    Ok((took_ns[PROBES / 2], took_ns[PROBES * 99 / 100]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    fn choose(options: &Options) -> Result<Submission, Error> {
        Submission::choose(options, &Targets::open(&Layout::default())?)
    }

    #[test]
    fn what_is_asked_for_is_done_and_the_rest_is_measured() {
        let asked =
            Options { rings: Some(3), polled: Some(false), peak_per_s: Some(1.0), ..Options::default() };
        let found = choose(&asked).unwrap();
        assert_eq!((found.rings, found.polled), (3, false));
        assert!((10..1_000_000).contains(&found.nothing_ns.unwrap()), "{found:?}");
        let unknown = choose(&Options::default()).unwrap();
        assert_eq!((unknown.rings, unknown.polled, unknown.nothing_ns), (1, false, None));
        let slow = choose(&Options { peak_per_s: Some(100.0), ..Options::default() }).unwrap();
        assert_eq!(slow.rings, 1);
        let cpus = std::thread::available_parallelism().unwrap().get();
        let fast = choose(&Options { peak_per_s: Some(1e9), ..Options::default() }).unwrap();
        assert_eq!(fast.rings, (cpus / 2).max(1));
    }
}
