//! A queue of BFQ: the requests of a stream, its budget, and how it thinks.

use std::collections::VecDeque;

use crate::by_offset::{ByOffset, Key};
use crate::request::{Op, Request};
use crate::share::{Pace, Weight};

/// How far back is still better than far ahead, and how many times as far a way back counts (`back_seek_max`,
/// `back_seek_penalty`).
const BACK_SEEK_MAX_BYTES: u64 = 16 << 20;
const BACK_SEEK_PENALTY: u64 = 2;
/// After this time a request is overdue (`fifo_expire_sync`, `fifo_expire_async`).
const EXPIRE_SYNC_NS: u64 = 125_000_000;
const EXPIRE_ASYNC_NS: u64 = 250_000_000;
/// Think times that are believed.
const ENOUGH_SAMPLES: u64 = 80;

/// Why a queue is not served any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Its next request did not come while the device waited for it.
    TooIdle,
    /// Its time was over.
    Timeout,
    /// Its next request is more than is left of its budget.
    Exhausted,
    /// It has no request, and its next is not waited for.
    Empty,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) weight: Weight,
    pub(crate) pace: Pace,
    /// Someone waits for its answers: reads, and writes past the page cache.
    pub(crate) sync: bool,
    /// Its sectors count so many times.
    charge_factor: u64,
    pub(crate) requests: ByOffset,
    /// In the order of arrival, with the time after which they are overdue, and some that were served already.
    fifo: VecDeque<(Key, u64)>,
    /// The end of the request that was served last.
    last_bytes: u64,
    /// Whether the oldest request was looked at since the queue was chosen.
    fifo_checked: bool,
    /// Sectors that it may be served when it is chosen next, and what is left to grow to.
    pub(crate) max_budget: u64,
    pub(crate) budget: u64,
    /// Sectors that it was served since it was chosen.
    pub(crate) service: u64,
    /// Virtual times.
    pub(crate) start: u128,
    pub(crate) finish: u128,
    /// Requests at the device.
    pub(crate) in_service: u64,
    pub(crate) thinking: Thinking,
}

/// The time between a completion and the next request, averaged as BFQ does.
#[derive(Debug, Default)]
pub(crate) struct Thinking {
    last_completed_ns: Option<u64>,
    samples: u64,
    total_ns: u64,
    mean_ns: u64,
}

impl Thinking {
    pub(crate) fn completed(&mut self, now_ns: u64) {
        self.last_completed_ns = Some(now_ns);
    }

    /// A request came; `slice_idle_ns` bounds what a sample says.
    fn arrived(&mut self, now_ns: u64, slice_idle_ns: u64) {
        let Some(completed_ns) = self.last_completed_ns else { return };
        let elapsed_ns = now_ns.saturating_sub(completed_ns).min(slice_idle_ns.saturating_mul(2));
        self.samples = (7 * self.samples + 256) / 8;
        self.total_ns = (7 * self.total_ns).saturating_add(elapsed_ns.saturating_mul(256)) / 8;
        self.mean_ns = (self.total_ns + 128) / self.samples.max(1);
    }

    /// Whether its next request is worth waiting for so long.
    pub(crate) fn is_short(&self, slice_idle_ns: u64) -> bool {
        self.samples <= ENOUGH_SAMPLES || self.mean_ns <= slice_idle_ns
    }
}

impl Queue {
    pub(crate) fn new(weight: Weight, sync: bool, charge_factor: u64, default_budget: u64) -> Self {
        Queue {
            weight,
            pace: weight.pace(),
            sync,
            charge_factor,
            requests: ByOffset::default(),
            fifo: VecDeque::new(),
            last_bytes: 0,
            fifo_checked: false,
            max_budget: default_budget,
            budget: 0,
            service: 0,
            start: 0,
            finish: 0,
            in_service: 0,
            thinking: Thinking::default(),
        }
    }

    pub(crate) fn arrive(&mut self, now_ns: u64, request: Request, slice_idle_ns: u64) {
        if self.requests.is_empty() && self.in_service == 0 {
            self.thinking.arrived(now_ns, slice_idle_ns);
        }
        let expire_ns = if self.sync { EXPIRE_SYNC_NS } else { EXPIRE_ASYNC_NS };
        let key = self.requests.insert(request);
        self.fifo.push_back((key, now_ns.saturating_add(expire_ns)));
    }

    /// The queue was chosen.
    pub(crate) fn begin(&mut self) {
        self.service = 0;
        self.fifo_checked = false;
    }

    /// Its next request: the oldest if that is overdue, once in a while, and else the one that is least far.
    pub(crate) fn choose(&mut self, now_ns: u64) -> Option<Key> {
        while let Some((key, _)) = self.fifo.front() {
            if self.requests.get(*key).is_some() {
                break;
            }
            self.fifo.pop_front();
        }
        let (oldest, expires_ns) = *self.fifo.front()?;
        if !self.fifo_checked {
            self.fifo_checked = true;
            if expires_ns <= now_ns {
                return Some(oldest);
            }
        }
        let ahead = self.requests.from((self.last_bytes, 0));
        let behind = self.requests.below(self.last_bytes);
        match (ahead, behind) {
            (Some(ahead), Some(behind)) => {
                let back_bytes = self.last_bytes - behind.0;
                let near = back_bytes <= BACK_SEEK_MAX_BYTES
                    && back_bytes.saturating_mul(BACK_SEEK_PENALTY) < ahead.0 - self.last_bytes;
                Some(if near { behind } else { ahead })
            }
            (Some(ahead), None) => Some(ahead),
            // None is ahead: a short way back, or else one long seek to the lowest.
            (None, Some(behind)) if self.last_bytes - behind.0 <= BACK_SEEK_MAX_BYTES => Some(behind),
            (None, _) => self.requests.lowest(),
        }
    }

    /// Sectors that a waiting request counts as.
    pub(crate) fn charge(&self, key: Key) -> u64 {
        let size_bytes = self.requests.get(key).map_or(0, |request| request.size_bytes);
        u64::from(size_bytes).div_ceil(512).max(1) * self.charge_factor
    }

    pub(crate) fn take(&mut self, key: Key) -> Option<Request> {
        let request = self.requests.remove(key)?;
        self.last_bytes = request.end_bytes();
        self.service += u64::from(request.size_bytes).div_ceil(512).max(1) * self.charge_factor;
        self.in_service += 1;
        Some(request)
    }

    /// Learns from a service that has ended what budget suits the queue. `most` is what a queue may have.
    pub(crate) fn learn(&mut self, expiry: Expiry, most: u64) {
        let least = (most / 32).max(1);
        self.max_budget = match expiry {
            _ if !self.sync => most,
            Expiry::TooIdle if self.in_service == 0 => {
                if self.max_budget > 5 * least {
                    self.max_budget - 4 * least
                } else {
                    least
                }
            }
            Expiry::TooIdle | Expiry::Timeout => (self.max_budget * 2).min(most),
            Expiry::Exhausted => (self.max_budget * 4).min(most),
            Expiry::Empty => self.service.clamp(least, most),
        };
    }
}

/// Whether someone waits for a request's answer.
pub(crate) fn is_sync(op: Op, writes_sync: bool) -> bool {
    op == Op::Read || writes_sync
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::read;

    fn queue() -> Queue {
        Queue::new(Weight::ONE, true, 1, 1000)
    }

    fn order(queue: &mut Queue, now_ns: u64) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(key) = queue.choose(now_ns) {
            order.extend(queue.take(key).map(|request| request.offset_bytes));
        }
        order
    }

    #[test]
    fn a_way_back_counts_twice() {
        let mut queue = queue();
        for offset in [1000, 1100, 850, 960, 2000] {
            queue.arrive(0, read(offset), 0);
        }
        queue.last_bytes = 1000;
        // From 1001 it is 99 ahead and 41 back, which counts 82; from 961 it is 139 ahead and 111 back.
        assert_eq!(order(&mut queue, 0), [1000, 960, 1100, 850, 2000]);
    }

    #[test]
    fn the_overdue_one_is_first_once() {
        let mut queue = queue();
        for offset in [500, 400, 10, 20] {
            queue.arrive(0, read(offset), 0);
        }
        assert_eq!(order(&mut queue, EXPIRE_SYNC_NS), [500, 400, 20, 10]);
    }

    #[test]
    fn budgets_follow_what_was_used() {
        let mut queue = queue();
        let mut learned = |expiry, service| {
            queue.service = service;
            queue.learn(expiry, 3200);
            queue.max_budget
        };
        assert_eq!(learned(Expiry::Exhausted, 1000), 3200);
        assert_eq!(learned(Expiry::TooIdle, 10), 2800);
        assert_eq!(learned(Expiry::Empty, 700), 700);
        assert_eq!(learned(Expiry::Timeout, 700), 1400);
        assert_eq!(learned(Expiry::Empty, 1), 100);
        assert_eq!(learned(Expiry::TooIdle, 1), 100);
    }

    #[test]
    fn long_thinkers_are_known_after_some_requests() {
        let mut thinking = Thinking::default();
        for n in 0..20 {
            thinking.completed(100 * n);
            thinking.arrived(100 * n + 30, 20);
            assert_eq!(thinking.is_short(20), n < 2, "{n}");
        }
        assert!(thinking.is_short(30));
    }
}
