//! Scheduling of the calling thread: precise sleeps, real-time priority, context switches; and the limit on open files.

use std::io;
use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{ClockId, Timespec};
use serde::{Deserialize, Serialize};

/// The scheduling class that a thread runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// `SCHED_FIFO`, ahead of ordinary threads.
    Fifo,
    /// The default class: other threads may delay it by milliseconds.
    Other,
}

/// Sets the timer slack of the calling thread to 1 ns: sleeps end on time rather than up to 50 us late.
pub fn sleep_precisely() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Sleeps for so many ns, or until a signal arrives.
pub fn sleep_ns(for_ns: i64) {
    let time = Timespec { tv_sec: for_ns / 1_000_000_000, tv_nsec: (for_ns % 1_000_000_000) as _ };
    // Who is woken early goes on.
    let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &time);
}

/// Asks for `SCHED_FIFO` at a priority from 1 to 99, for the calling thread. Threads that the kernel starts on its behalf stay in
/// the default class, so that they never run instead of it.
pub fn request_fifo(priority: i32) -> Scheduling {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: thread id 0 is the calling thread; `parameters` is valid for the call.
    let done =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) };
    if done == 0 { Scheduling::Fifo } else { Scheduling::Other }
}

/// Voluntary context switches of the calling thread so far.
pub fn voluntary_switches() -> i64 {
    // SAFETY: an all-zero rusage is a valid value; every field is an integer.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is only written to.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nvcsw
}

/// Raises the process's soft limit on open files to the hard one and returns it.
///
/// # Errors
/// The kernel refuses.
pub fn raise_open_files() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}
