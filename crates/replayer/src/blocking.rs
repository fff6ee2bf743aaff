//! Detection of targets whose submission blocks.

/// A submission has blocked if it slept (and did not only lose its CPU) and took longer than this.
pub(crate) const BLOCKED_NS: i64 = 500_000;
/// One request blocked for this long is enough: all requests due in this time were late.
const STALLED_NS: i64 = 5_000_000;
/// After this number of blocked requests the target's requests go to worker threads...
const BLOCKED: u32 = 3;
/// ... unless they are spread over more requests than this.
const AMONG: u32 = 1000;

/// Submission history of one target.
///
/// Block devices and most file systems accept a request without waiting, or pass it to a kernel worker thread. Where
/// submission waits (an I/O controller that throttles the caller, a driver that allocates), each stall of the pacing thread
/// makes later requests late: requests for this target then go to workers directly.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    blocked: u32,
    requests: u32,
    by_worker: bool,
}

impl Blocking {
    /// Records a submission that took `took_ns`, and whether it slept.
    pub fn note(&mut self, took_ns: i64, slept: bool) {
        self.requests += 1;
        self.blocked += u32::from(slept && took_ns > BLOCKED_NS);
        self.by_worker |= self.blocked >= BLOCKED || slept && took_ns > STALLED_NS;
        if self.requests == AMONG {
            (self.blocked, self.requests) = (0, 0);
        }
    }

    /// Whether requests must go to worker threads.
    pub fn by_worker(&self) -> bool {
        self.by_worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_sleep_is_enough() {
        let mut target = Blocking::default();
        target.note(6_000_000, false);
        assert!(!target.by_worker(), "the CPU was lost, nothing blocked");
        target.note(6_000_000, true);
        assert!(target.by_worker());
    }

    #[test]
    fn only_repeated_sleeps_count() {
        let mut busy_machine = Blocking::default();
        let mut rare = Blocking::default();
        for i in 0..100_000 {
            busy_machine.note(50_000_000, false);
            busy_machine.note(20_000, true);
            rare.note(if i % 500 == 0 { 2_000_000 } else { 5_000 }, true);
        }
        assert!(!busy_machine.by_worker() && !rare.by_worker());

        let mut blocked = Blocking::default();
        for _ in 0..3 {
            assert!(!blocked.by_worker());
            blocked.note(2_000_000, true);
        }
        assert!(blocked.by_worker());
        for _ in 0..10_000 {
            blocked.note(2_000, false);
        }
        assert!(blocked.by_worker(), "once is enough: the target has not changed");
    }
}
