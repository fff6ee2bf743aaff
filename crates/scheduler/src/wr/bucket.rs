//! Leaky bucket for interactive requests.

use std::collections::VecDeque;

use crate::request::Request;

/// Interactive requests, first come, first served: released ones and held ones.
///
/// It releases at most `burst` requests in any `window_ns` (Wijayaratne and Reddy, section 2.3: "no more than
/// 5 requests are released within a second").
#[derive(Debug)]
pub(super) struct Interactive {
    burst: usize,
    window_ns: u64,
    /// Release times of the last `burst` requests.
    let_through_ns: VecDeque<u64>,
    held: VecDeque<Request>,
    released: VecDeque<Request>,
}

impl Interactive {
    /// Bucket of a rate and a size in requests.
    pub(super) fn new(per_s: f64, burst: u64) -> Interactive {
        Interactive {
            burst: usize::try_from(burst.max(1)).unwrap_or(usize::MAX),
            window_ns: (burst.max(1) as f64 / per_s * 1e9).ceil() as u64,
            let_through_ns: VecDeque::new(),
            held: VecDeque::new(),
            released: VecDeque::new(),
        }
    }

    pub(super) fn push(&mut self, request: Request) {
        self.held.push_back(request);
    }

    /// Returns a request to the front.
    pub(super) fn push_front(&mut self, request: Request) {
        self.released.push_front(request);
    }

    /// Releases requests up to now, each at its own release time, independent of the time of the call.
    pub(super) fn update(&mut self, now_ns: u64) {
        while self.release(now_ns).is_some() {}
    }

    /// Releases the first request if due; returns its release time.
    fn release(&mut self, now_ns: u64) -> Option<u64> {
        let at_ns = self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        if self.let_through_ns.len() >= self.burst {
            self.let_through_ns.pop_front();
        }
        self.let_through_ns.push_back(at_ns);
        self.released.extend(self.held.pop_front());
        Some(at_ns)
    }

    /// Release time of the first held request.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.held.front().map(|request| self.earliest_ns().max(request.arrived_ns))
    }

    /// First released request.
    pub(super) fn front(&self) -> Option<&Request> {
        self.released.front()
    }

    pub(super) fn pop(&mut self) -> Option<Request> {
        self.released.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len() + self.released.len()
    }

    fn earliest_ns(&self) -> u64 {
        match self.let_through_ns.front() {
            Some(first_ns) if self.let_through_ns.len() >= self.burst => {
                // Not before earlier ones.
                let last_ns = self.let_through_ns.back().copied().unwrap_or(0);
                first_ns.saturating_add(self.window_ns).max(last_ns)
            }
            _ => self.let_through_ns.back().copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::Op;

    fn request(arrived_ns: u64) -> Request {
        Request {
            tag: arrived_ns,
            class: 0,
            stream: 0,
            op: Op::Read,
            offset_bytes: 0,
            size_bytes: 1,
            arrived_ns,
            deadline_ns: None,
        }
    }

    #[test]
    fn a_burst_goes_through_and_the_next_waits_a_window() {
        let mut interactive = Interactive::new(4.0, 2);
        for arrived_ns in [10, 20, 30, 40] {
            interactive.push(request(arrived_ns));
        }
        interactive.update(40);
        assert_eq!((interactive.released.len(), interactive.next_ns()), (2, Some(500_000_010)));
        interactive.update(500_000_010);
        assert_eq!((interactive.released.len(), interactive.next_ns()), (3, Some(500_000_020)));
        // Polled late, it nevertheless has released at the right times.
        interactive.update(9_000_000_000);
        assert_eq!(interactive.let_through_ns, [500_000_010, 500_000_020]);
    }

    proptest! {
        #[test]
        fn no_window_has_more_than_the_burst(
            mut arrivals in prop::collection::vec(0u64..3_000, 1..100), burst in 1u64..8, per_s in 1u32..30, step in 1u64..700,
        ) {
            arrivals.sort_unstable();
            let mut interactive = Interactive::new(f64::from(per_s), burst);
            let mut through = Vec::new();
            let mut arrivals = arrivals.into_iter().map(|ms| request(ms * 1_000_000)).peekable();
            for now_ns in (0..).map(|nth| nth * step * 1_000_000) {
                while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
                    interactive.push(request);
                }
                while let Some(at_ns) = interactive.release(now_ns) {
                    through.push(at_ns);
                }
                if arrivals.peek().is_none() && interactive.held.is_empty() {
                    break;
                }
            }
            prop_assert!(through.is_sorted());
            let window_ns = burst * 1_000_000_000 / u64::from(per_s);
            for times in through.windows(burst as usize + 1) {
                prop_assert!(times[burst as usize] - times[0] >= window_ns);
            }
        }
    }
}
