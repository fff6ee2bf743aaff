//! A queue of BFQ: requests of a stream, budget, think time.

use std::collections::VecDeque;

use super::bfq_device::Device;
use crate::by_offset::{ByOffset, Key};
use crate::request::{Op, Request};
use crate::share::{Pace, Weight};

/// Maximum distance of a backward seek, and its penalty factor (`back_seek_max`, `back_seek_penalty`).
const BACK_SEEK_MAX_BYTES: u64 = 16 << 20;
const BACK_SEEK_PENALTY: u64 = 2;
/// Expiry times of requests (`fifo_expire_sync`, `fifo_expire_async`).
const EXPIRE_SYNC_NS: u64 = 125_000_000;
const EXPIRE_ASYNC_NS: u64 = 250_000_000;
/// Minimum number of think-time samples.
const ENOUGH_SAMPLES: u64 = 80;
/// Distance from which a request is a seek, and number of seeks in the last 32 requests above which a queue is seeky. On
/// non-rotational devices large requests are no seeks.
const SEEK_BYTES: u64 = 800 * 512;
const SEEKS: u32 = 19;
const LARGE_BYTES: u32 = 256 * 512;

/// Reason for the end of a queue's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// No request arrived while the device idled.
    TooIdle,
    /// Timeout.
    Timeout,
    /// The next request exceeds the rest of the budget.
    Exhausted,
    /// The queue is empty, without idling.
    Empty,
    /// Preempted by another queue.
    Preempted,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) weight: Weight,
    pub(crate) pace: Pace,
    /// Synchronous requests: reads, and direct writes.
    pub(crate) sync: bool,
    /// Factor of its sectors.
    charge_factor: u64,
    pub(crate) requests: ByOffset,
    /// Requests in order of arrival with expiry times; may hold served ones.
    fifo: VecDeque<(Key, u64)>,
    /// Next request.
    next: Option<Key>,
    /// End of the last arrived request, if any.
    last_arrived_bytes: u64,
    /// One bit for each of the last 32 requests: whether it was a seek.
    seeks: u32,
    /// Whether the oldest request was checked in this turn.
    fifo_checked: bool,
    /// Budget of the next turn in sectors, and its limit.
    pub(crate) max_budget: u64,
    pub(crate) budget: u64,
    /// Sectors served in this turn.
    pub(crate) service: u64,
    /// Virtual times.
    pub(crate) start: u128,
    pub(crate) finish: u128,
    /// Requests in the device.
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

    /// A request arrived; `slice_idle_ns` limits a sample.
    fn arrived(&mut self, now_ns: u64, slice_idle_ns: u64) {
        let Some(completed_ns) = self.last_completed_ns else { return };
        let elapsed_ns = now_ns.saturating_sub(completed_ns).min(slice_idle_ns.saturating_mul(2));
        self.samples = (7 * self.samples + 256) / 8;
        self.total_ns = (7 * self.total_ns).saturating_add(elapsed_ns.saturating_mul(256)) / 8;
        self.mean_ns = (self.total_ns + 128) / self.samples.max(1);
    }

    /// Whether idling for its next request pays off.
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
            next: None,
            last_arrived_bytes: 0,
            seeks: 0,
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

    /// Takes a request. `head_bytes` is the end of the last dispatched request, from any queue.
    pub(crate) fn arrive(&mut self, now_ns: u64, request: Request, device: &Device, head_bytes: u64) {
        if self.requests.is_empty() && self.in_service == 0 {
            self.thinking.arrived(now_ns, device.slice_idle_ns);
        }
        let far = self.last_arrived_bytes > 0
            && request.offset_bytes.abs_diff(self.last_arrived_bytes) > SEEK_BYTES
            && (device.rotational || request.size_bytes < LARGE_BYTES);
        self.seeks = self.seeks << 1 | u32::from(far);
        self.last_arrived_bytes = request.end_bytes();
        let expire_ns = if self.sync { EXPIRE_SYNC_NS } else { EXPIRE_ASYNC_NS };
        let key = self.requests.insert(request);
        self.fifo.push_back((key, now_ns.saturating_add(expire_ns)));
        self.next = Some(self.next.map_or(key, |next| nearer(next, key, head_bytes)));
    }

    /// Whether the queue is seeky.
    pub(crate) fn seeks(&self) -> bool {
        self.seeks.count_ones() > SEEKS
    }

    /// Starts a turn.
    pub(crate) fn begin(&mut self) {
        self.service = 0;
        self.fifo_checked = false;
    }

    /// Its next request.
    pub(crate) fn next(&self) -> Option<Key> {
        self.next
    }

    /// Takes the next request out, and settles which one is next then: the oldest if that is overdue, once in a turn,
    /// and else the nearer of its neighbours.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<Request> {
        let taken = self.next?;
        let overdue = self.overdue(now_ns).filter(|oldest| *oldest != taken);
        let request = self.requests.remove(taken)?;
        let before = self.requests.before(taken);
        let after = self.requests.from(taken).or_else(|| self.requests.lowest());
        self.next = overdue.or(match (after, before) {
            (Some(after), Some(before)) => Some(nearer(after, before, taken.0)),
            (one, other) => one.or(other),
        });
        self.service += sectors(&request) * self.charge_factor;
        self.in_service += 1;
        Some(request)
    }

    /// The oldest request, if it is overdue and was not examined in this turn.
    fn overdue(&mut self, now_ns: u64) -> Option<Key> {
        if std::mem::replace(&mut self.fifo_checked, true) {
            return None;
        }
        while let Some((key, expires_ns)) = self.fifo.front().copied() {
            if self.requests.get(key).is_some() {
                return Some(key).filter(|_| expires_ns <= now_ns);
            }
            self.fifo.pop_front();
        }
        None
    }

    /// Sectors that a waiting request counts as.
    pub(crate) fn charge(&self, key: Key) -> u64 {
        self.requests.get(key).map_or(1, sectors) * self.charge_factor
    }

    /// Adapts the budget after a turn. `most` is the largest budget.
    pub(crate) fn learn(&mut self, expiry: Expiry, most: u64) {
        let least = (most / 32).max(1);
        self.max_budget = match expiry {
            Expiry::Preempted => self.max_budget,
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

/// Whether a request is synchronous.
pub(crate) fn is_sync(op: Op, writes_sync: bool) -> bool {
    op == Op::Read || writes_sync
}

fn sectors(request: &Request) -> u64 {
    u64::from(request.size_bytes).div_ceil(512).max(1)
}

/// Nearer one of two requests. Backward distances count twice, up to a limit; farther back counts as the end of the disk.
fn nearer(one: Key, other: Key, from_bytes: u64) -> Key {
    let way = |key: Key| match key.0.checked_sub(from_bytes) {
        Some(ahead_bytes) => (false, ahead_bytes),
        None if from_bytes - key.0 <= BACK_SEEK_MAX_BYTES => {
            (false, (from_bytes - key.0) * BACK_SEEK_PENALTY)
        }
        None => (true, key.0),
    };
    match way(one).cmp(&way(other)) {
        std::cmp::Ordering::Less => one,
        std::cmp::Ordering::Greater => other,
        std::cmp::Ordering::Equal => {
            if one.0 >= other.0 {
                one
            } else {
                other
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::read;

    fn queue() -> Queue {
        Queue::new(Weight::ONE, true, 1, 1000)
    }

    /// Arrivals at time 0, and then the order in which they are taken at a time.
    fn order(offsets: &[u64], now_ns: u64) -> Vec<u64> {
        let mut queue = queue();
        for offset in offsets {
            queue.arrive(0, read(*offset), &Device::new(0, true), 1000);
        }
        std::iter::from_fn(|| queue.take(now_ns)).map(|request| request.offset_bytes).collect()
    }

    #[test]
    fn a_way_back_counts_twice() {
        // From 1000 it is 100 ahead and 40 back, which counts 80; from 960 140 ahead and 110 back; from 1100 900 ahead
        // and 250 back.
        assert_eq!(order(&[1000, 1100, 850, 960, 2000], 0), [1000, 960, 1100, 850, 2000]);
    }

    #[test]
    fn the_overdue_one_is_first_once() {
        let offsets = [1500, 1400, 1010, 1020];
        assert_eq!(order(&offsets, EXPIRE_SYNC_NS - 1), [1010, 1020, 1400, 1500]);
        assert_eq!(order(&offsets, EXPIRE_SYNC_NS), [1010, 1500, 1400, 1020]);
    }

    #[test]
    fn a_queue_seeks_if_most_of_its_requests_do() {
        let mut queue = queue();
        for n in 1..=32 {
            queue.arrive(0, read(n * 1_000_000), &Device::new(0, true), 0);
            assert_eq!(queue.seeks(), n > 20, "{n}");
        }
        for n in 0..13 {
            assert!(queue.seeks(), "{n}");
            queue.arrive(0, read(32_000_000), &Device::new(0, true), 0);
        }
        assert!(!queue.seeks());
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
