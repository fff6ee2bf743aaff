//! Leaky bucket for interactive requests.

use std::collections::VecDeque;

use crate::request::Request;

/// Reading of section 2.3 of Wijayaratne and Reddy: a "leaky bucket" by which "no more than 5 requests are released within
/// a second".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// At most `burst` requests in any window: the sentence, whenever the second begins.
    Sliding,
    /// At most `burst` requests in each window from time 0 on: "in a given time window".
    Fixed,
    /// A token for each request, made at the rate and kept up to `burst`: the leaky bucket as a meter.
    Tokens,
}

/// Interactive requests, first come, first served: released ones and held ones.
#[derive(Debug)]
pub(super) struct Interactive {
    limit: Limit,
    burst: usize,
    window_ns: u64,
    /// Time in which a token is made.
    token_ns: u64,
    /// Time at which the bucket is full again.
    full_ns: u64,
    /// Release times of the last `burst` requests.
    let_through_ns: VecDeque<u64>,
    held: VecDeque<Request>,
    released: VecDeque<Request>,
}

impl Interactive {
    /// Bucket of a rate and a size in requests.
    pub(super) fn new(limit: Limit, per_s: f64, burst: u64) -> Interactive {
        Interactive {
            limit,
            token_ns: (1e9 / per_s).ceil() as u64,
            full_ns: 0,
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
        self.full_ns = self.full_ns.max(at_ns).saturating_add(self.token_ns);
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
        let first_ns =
            self.let_through_ns.front().filter(|_| self.let_through_ns.len() >= self.burst).copied();
        let earliest_ns = match (self.limit, first_ns) {
            (Limit::Sliding, Some(first_ns)) => first_ns.saturating_add(self.window_ns),
            (Limit::Fixed, Some(first_ns)) => {
                (first_ns / self.window_ns).saturating_add(1).saturating_mul(self.window_ns)
            }
            (Limit::Tokens, _) => {
                self.full_ns.saturating_sub(self.token_ns.saturating_mul(self.burst as u64 - 1))
            }
            (Limit::Sliding | Limit::Fixed, None) => 0,
        };
        // Not before earlier ones.
        earliest_ns.max(self.let_through_ns.back().copied().unwrap_or(0))
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
        let mut interactive = Interactive::new(Limit::Sliding, 4.0, 2);
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

    #[test]
    fn each_reading_of_the_bucket_has_its_release_times() {
        // Two in half a second: any half second; those that begin at 0, 0.5, ... s; two tokens, one each 250 ms.
        let readings = [
            (Limit::Sliding, [10, 20, 500_000_010, 500_000_020, 1_000_000_010]),
            (Limit::Fixed, [10, 20, 500_000_000, 500_000_000, 1_000_000_000]),
            (Limit::Tokens, [10, 20, 250_000_010, 500_000_010, 750_000_010]),
        ];
        for (limit, times) in readings {
            let mut interactive = Interactive::new(limit, 4.0, 2);
            for arrived_ns in [10, 20, 30, 40, 50] {
                interactive.push(request(arrived_ns));
            }
            let released: Vec<u64> = std::iter::from_fn(|| interactive.release(2_000_000_000)).collect();
            assert_eq!(released, times, "{limit:?}");
        }
    }

    proptest! {
        #[test]
        fn no_window_has_more_than_the_burst(
            mut arrivals in prop::collection::vec(0u64..3_000, 1..100), burst in 1u64..8, per_s in 1u32..30, step in 1u64..700,
            limit in prop::sample::select(vec![Limit::Sliding, Limit::Fixed, Limit::Tokens]),
        ) {
            arrivals.sort_unstable();
            let mut interactive = Interactive::new(limit, f64::from(per_s), burst);
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
            for (place, times) in through.windows(burst as usize + 1).enumerate() {
                let (first, last) = (times[0], times[burst as usize]);
                match limit {
                    Limit::Sliding => prop_assert!(last - first >= window_ns),
                    Limit::Fixed => prop_assert!(last / interactive.window_ns > first / interactive.window_ns),
                    // Of the first `place + burst + 1` requests, `burst` found a token in the bucket.
                    Limit::Tokens => {
                        prop_assert!((last - through[0]) / interactive.token_ns > place as u64);
                    }
                }
            }
        }
    }
}
