//! Clock of the server, and sleeping until an absolute time.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// CLOCK_MONOTONIC in nanoseconds, the unit of models and schedulers.
pub(crate) fn now_ns() -> u64 {
    weir_host::clock::monotonic_ns() as u64
}

/// A thread sleeps until a time or until another thread wakes it.
#[derive(Debug, Default)]
pub(crate) struct Wakeup(AtomicU32);

impl Wakeup {
    /// Number of wake-ups for [`sleep`](Self::sleep); read it before the state that a wake-up announces.
    pub fn wakes(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Wakes the sleeper.
    pub fn wake(&self) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Sleeps until `until_ns` (forever if `None`) or a wake-up after `wakes` was read. True if the time has come.
    pub fn sleep(&self, wakes: u32, until_ns: Option<u64>) -> bool {
        let time = until_ns
            .map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
        // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, so a late call shortens the sleep.
        let any = NonZeroU32::MAX;
        let slept = futex::wait_bitset(&self.0, futex::Flags::PRIVATE, wakes, time.as_ref(), any);
        slept == Err(Errno::TIMEDOUT)
    }
}
