//! Alarm: a thread that acts at a given instant of CLOCK_MONOTONIC.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_host::thread::{Scheduling, request_fifo, sleep_precisely};

use crate::clock::{Wakeup, now_ns};
use crate::engine::pacing::Margin;

/// Real-time priority of the timing thread; threads that receive requests have one less.
pub(crate) const TIMING_PRIORITY: i32 = 2;
/// No instant is set.
pub(crate) const NEVER: u64 = u64::MAX;

/// Next instant on CLOCK_MONOTONIC, and the thread that waits for it.
#[derive(Debug)]
pub(crate) struct Alarm {
    deadline_ns: AtomicU64,
    wakeup: Wakeup,
    stopping: AtomicBool,
    realtime: AtomicBool,
}

impl Alarm {
    pub fn new() -> Self {
        Alarm {
            deadline_ns: AtomicU64::new(NEVER),
            wakeup: Wakeup::default(),
            stopping: AtomicBool::new(false),
            realtime: AtomicBool::new(false),
        }
    }

    /// Sets the instant. True if it is earlier than the former one: then the caller must call [`ring`](Self::ring). Callers are
    /// serialised.
    #[must_use]
    pub fn set(&self, deadline_ns: u64) -> bool {
        // Usually nothing is set, before and after: a load costs less than a swap.
        if self.deadline_ns.load(Ordering::Relaxed) == deadline_ns {
            return false;
        }
        deadline_ns < self.deadline_ns.swap(deadline_ns, Ordering::AcqRel)
    }

    /// Wakes the thread. Not needed for a later instant.
    pub fn wake(&self) {
        self.wakeup.wake();
    }

    /// Whether the thread has real-time priority.
    pub fn is_realtime(&self) -> bool {
        self.realtime.load(Ordering::Relaxed)
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wakeup.wake();
    }

    /// Calls `act` at each instant, until [`stop`](Self::stop). It sleeps until shortly before, then spins. `act` sets the next
    /// instant.
    pub fn keep(&self, mut act: impl FnMut()) {
        sleep_precisely();
        self.realtime.store(request_fifo(TIMING_PRIORITY) == Scheduling::Fifo, Ordering::Relaxed);
        let mut margin = Margin::new();
        loop {
            let wakes = self.wakeup.wakes();
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            let deadline_ns = self.deadline_ns.load(Ordering::Acquire);
            if deadline_ns == NEVER {
                self.wakeup.sleep(wakes, None);
                continue;
            }
            let wake_ns = deadline_ns.saturating_sub(margin.ns());
            if now_ns() < wake_ns {
                if !self.wakeup.sleep(wakes, Some(wake_ns)) {
                    continue;
                }
                margin.observe(now_ns().saturating_sub(wake_ns));
            }
            // While spinning, the instant may become earlier, or be cleared.
            while now_ns() < self.deadline_ns.load(Ordering::Acquire) {
                if self.deadline_ns.load(Ordering::Acquire) == NEVER {
                    break;
                }
                std::hint::spin_loop();
            }
            act();
        }
    }
}
