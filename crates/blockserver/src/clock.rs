//! The clock, and sleeping on it until an absolute time.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to, and the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A place to sleep on until a time or until someone rings.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicU32);

impl Bell {
    /// What to give to [`sleep`](Self::sleep); take it before looking at what the ring is about.
    pub fn rings(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Wakes the sleeper.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // SAFETY: the futex word lives as long as `self`; waking takes no pointers but that.
        unsafe {
            libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
        }
    }

    /// Sleeps until `until_ns` (for ever if `None`) or a ring after `rings` was taken. True if the time has come.
    pub fn sleep(&self, rings: u32, until_ns: Option<u64>) -> bool {
        let time = until_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let time_pointer = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, so a late call shortens the sleep.
        // SAFETY: the futex word and the timespec outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                rings,
                time_pointer,
                std::ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            )
        };
        result != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
    }
}

/// Lets the calling thread's sleeps end on time rather than up to 50 us later.
pub(crate) fn sleep_exactly() {
    // SAFETY: sets an attribute of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Puts the calling thread ahead of all ordinary ones (SCHED_FIFO). False if this is not permitted.
pub(crate) fn run_first(priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters are valid for the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) == 0 }
}
