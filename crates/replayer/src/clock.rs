//! The clock of a replay, and the scheduling class of the pacing thread.

use std::io;

use serde::{Deserialize, Serialize};

/// Nanoseconds of `CLOCK_MONOTONIC` now.
pub fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that the call only writes to; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// CPU time used by the calling thread, in seconds.
pub fn thread_cpu_seconds() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `monotonic_ns`; the thread clock always exists for the calling thread.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Times that the calling thread has gone to sleep of its own accord.
pub(crate) fn voluntary_switches() -> i64 {
    // SAFETY: an all-zero rusage is a valid value; every field is an integer.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is only written to.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nvcsw
}

/// The scheduling class that the pacing thread ran in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// `SCHED_FIFO`, ahead of ordinary threads.
    Fifo,
    /// The default class: other threads may delay the pacing thread by milliseconds.
    Other,
}

/// Prepares the calling thread for waking on time: timer slack of 1 ns, and `SCHED_FIFO` at the given
/// priority (1 to 99) if one is asked for and permitted. Threads that the kernel starts on its behalf stay
/// in the default class, so that they never run instead of it.
pub fn prepare_thread(fifo_priority: Option<i32>) -> Scheduling {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches only the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
    let Some(priority) = fifo_priority else { return Scheduling::Other };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: thread id 0 is the calling thread; `parameters` is valid for the call.
    let refused =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) }
            != 0;
    if refused { Scheduling::Other } else { Scheduling::Fifo }
}

/// Raises the soft limit on open files to the hard one and returns it.
///
/// # Errors
/// The system refuses.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call only writes to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is a valid rlimit that the call only reads.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}
