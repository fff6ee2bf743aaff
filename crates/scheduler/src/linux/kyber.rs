//! Linux's Kyber.
//!
//! After the kernel's Documentation/block/kyber-iosched.rst and the behaviour of block/kyber-iosched.c (4.20 to 6.x). One
//! hardware queue; reads and writes are the two domains (there are no discards here, nor other operations). Left out:
//! merging, per-CPU queues, and the limit on the tags of asynchronous writes. The timer's
//! action runs at the first call after the timer's time; decisions are the same as with a real timer.

use std::collections::{BTreeMap, VecDeque};

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Op, Request};

const MS: u64 = 1_000_000;
/// Number of latency buckets, each a quarter of the target wide; the last one has all longer latencies.
const BUCKETS: usize = 8;
/// Buckets up to the target.
const GOOD: usize = 4;
/// Number of latencies for a percentile; after one second any number suffices.
const SAMPLES: u64 = 500;
const WINDOW_NS: u64 = 1000 * MS;
/// Time from the first completion to the adjustment.
const TIMER_NS: u64 = 100 * MS;

pub(crate) const ENTRY: Entry = Entry {
    name: "linux-kyber",
    label: "Kyber",
    about: "model of Linux's Kyber: a limit each on reads and writes in the device, lowered while latency targets are \
            missed",
    promises: "not work conserving where the device takes more than a domain's depth (at most 256 reads and 128 writes, \
               at least 1); reads in order of arrival, writes in order of arrival; at most 16 reads and 8 writes in a \
               row while both are eligible",
    settings: &[
        ("read_lat_nsec", "target latency of reads in ns; default 2000000"),
        ("write_lat_nsec", "target latency of writes in ns; default 10000000"),
    ],
    build: |_, settings| {
        let target = |key, default| settings.count(key, default, 1, 1_000_000_000_000);
        Ok(Box::new(Kyber {
            domains: [
                Domain::new(256, 16, target("read_lat_nsec", 2 * MS)?),
                Domain::new(128, 8, target("write_lat_nsec", 10 * MS)?),
            ],
            current: 0,
            batching: 0,
            timer_ns: None,
            issued_ns: BTreeMap::new(),
        }))
    },
};

#[derive(Debug)]
struct Domain {
    queue: VecDeque<Request>,
    /// Maximum number of requests in the device: current and largest limit.
    depth: u64,
    most: u64,
    in_service: u64,
    /// Maximum number of requests in a row.
    batch: u64,
    target_ns: u64,
    /// Latency in the device, and latency including the wait.
    device: Histogram,
    total: Histogram,
    /// Bucket of the last known 99th percentile of total latency, until it is used.
    p99: Option<usize>,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS],
    /// Time at which the samples suffice for a percentile.
    due_ns: Option<u64>,
}

impl Histogram {
    fn add(&mut self, latency_ns: u64, target_ns: u64) {
        let bucket = latency_ns.saturating_sub(1) / (target_ns / GOOD as u64).max(1);
        self.buckets[usize::try_from(bucket).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))] += 1;
    }

    /// Bucket of a percentile if there are enough samples; resets the count.
    fn take(&mut self, now_ns: u64, percent: u64) -> Option<usize> {
        let samples: u64 = self.buckets.iter().sum();
        if samples == 0 {
            return None;
        }
        let due_ns = *self.due_ns.get_or_insert(now_ns.saturating_add(WINDOW_NS));
        if samples < SAMPLES && now_ns < due_ns {
            return None;
        }
        let mut left = (samples * percent).div_ceil(100);
        let bucket = self.buckets.iter().position(|count| {
            let found = *count >= left;
            left = left.saturating_sub(*count);
            found
        });
        *self = Histogram::default();
        bucket
    }
}

impl Domain {
    fn new(depth: u64, batch: u64, target_ns: u64) -> Self {
        Domain {
            queue: VecDeque::new(),
            depth,
            most: depth,
            in_service: 0,
            batch,
            target_ns,
            device: Histogram::default(),
            total: Histogram::default(),
            p99: None,
        }
    }

    fn take(&mut self) -> Option<Request> {
        if self.in_service >= self.depth {
            return None;
        }
        let request = self.queue.pop_front()?;
        self.in_service += 1;
        Some(request)
    }

    /// Raises the depth of a domain that misses its target; lowers that of one that meets it if the device is congested.
    fn adjust(&mut self, now_ns: u64, congested: bool) {
        let mut p99 = self.total.take(now_ns, 99);
        if congested {
            // Domains seldom have enough samples at the same moment. The last observation counts, but only once.
            let last = self.p99.take();
            p99 = p99.or(last);
        } else if p99.is_some() {
            self.p99 = p99;
        }
        let Some(p99) = p99 else { return };
        if congested || p99 >= GOOD {
            let scaled = self.depth * (p99 as u64 + 1) / GOOD as u64;
            self.depth = scaled.clamp(1, self.most);
        }
    }
}

#[derive(Debug)]
struct Kyber {
    /// Reads and writes.
    domains: [Domain; 2],
    current: usize,
    /// Requests served in a row.
    batching: u64,
    timer_ns: Option<u64>,
    /// Dispatch times of requests in service, by tag.
    issued_ns: BTreeMap<u64, u64>,
}

impl Kyber {
    fn run_timer(&mut self, now_ns: u64) {
        let Some(timer_ns) = self.timer_ns.filter(|timer_ns| *timer_ns <= now_ns) else { return };
        self.timer_ns = None;
        let mut congested = false;
        for domain in &mut self.domains {
            congested |= domain.device.take(timer_ns, 90).is_some_and(|bucket| bucket >= GOOD);
        }
        for domain in &mut self.domains {
            domain.adjust(timer_ns, congested);
        }
    }

    fn dispatch(&mut self) -> Option<Request> {
        if self.batching < self.domains[self.current].batch
            && let Some(request) = self.domains[self.current].take()
        {
            self.batching += 1;
            return Some(request);
        }
        self.batching = 0;
        for _ in 0..self.domains.len() {
            self.current = (self.current + 1) % self.domains.len();
            if let Some(request) = self.domains[self.current].take() {
                self.batching = 1;
                return Some(request);
            }
        }
        None
    }
}

fn domain(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
    }
}

impl Policy for Kyber {
    fn arrive(&mut self, now_ns: u64, request: Request, _: &dyn ServiceModel) {
        self.run_timer(now_ns);
        self.domains[domain(request.op)].queue.push_back(request);
    }

    fn next(&mut self, now_ns: u64, _: &dyn ServiceModel) -> Decision {
        self.run_timer(now_ns);
        // Like the kernel, which dispatches only with requests: a batch continues after a moment without requests.
        if self.waiting() == 0 {
            return Decision::Idle;
        }
        match self.dispatch() {
            Some(request) => {
                self.issued_ns.insert(request.tag, now_ns);
                Decision::Serve(request)
            }
            // The depth can also grow when the timer runs.
            None => self.timer_ns.map_or(Decision::UNTIL_COMPLETION, Decision::WaitUntil),
        }
    }

    fn complete(&mut self, now_ns: u64, request: &Request, begun_ns: u64) {
        self.run_timer(now_ns);
        let issued_ns = self.issued_ns.remove(&request.tag).unwrap_or(begun_ns);
        let domain = &mut self.domains[domain(request.op)];
        domain.in_service = domain.in_service.saturating_sub(1);
        domain.device.add(now_ns.saturating_sub(issued_ns), domain.target_ns);
        domain.total.add(now_ns.saturating_sub(request.arrived_ns), domain.target_ns);
        self.timer_ns.get_or_insert(now_ns.saturating_add(TIMER_NS));
    }

    fn waiting(&self) -> usize {
        self.domains.iter().map(|domain| domain.queue.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{at, device, offsets, policy, read, write};

    #[test]
    fn sixteen_reads_and_eight_writes_in_turn() {
        let reads: Vec<u64> = (0..40).collect();
        let mut queue = at(&reads);
        queue.extend((100..120).map(write));
        let order = offsets(&mut *policy("linux-kyber", &[]), &queue, 0);
        let expected: Vec<u64> =
            (0..16).chain(100..108).chain(16..32).chain(108..116).chain(32..40).chain(116..120).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn percentiles_are_buckets_of_a_quarter_of_the_target() {
        let mut histogram = Histogram::default();
        for latency_ns in [0, 1, 25, 26, 50, 51, 75, 76, 100, 101] {
            histogram.add(latency_ns, 100);
        }
        assert_eq!(histogram.buckets, [3, 2, 2, 2, 1, 0, 0, 0]);
        assert_eq!(histogram.take(0, 90), None);
        assert_eq!(histogram.take(WINDOW_NS, 90), Some(3));
        histogram.add(1_000_000, 100);
        assert_eq!(histogram.take(WINDOW_NS, 99), None);
        assert_eq!(histogram.take(2 * WINDOW_NS, 99), Some(7));
    }

    /// Reads that take their time while writes are quick: the device is congested, and writes are throttled.
    #[test]
    fn congestion_throttles_the_domain_that_is_well() {
        let mut policy = policy("linux-kyber", &[("read_lat_nsec", "1000"), ("write_lat_nsec", "1000")]);
        let device = device(0);
        let mut finish = |request: Request, now_ns: u64, latency_ns: u64| {
            let request = Request { arrived_ns: now_ns - latency_ns, ..request };
            policy.arrive(now_ns - latency_ns, request, &device);
            assert_eq!(policy.next(now_ns - latency_ns, &device), Decision::Serve(request));
            policy.complete(now_ns, &request, now_ns - latency_ns);
        };
        for n in 0..600 {
            finish(read(n), 10_000 * (2 * n + 1), 5000);
            finish(write(n), 10_000 * (2 * n + 2), 400);
        }
        // The timer runs 100 ms after the first completion: writes had all latencies in the second quarter of their
        // target, and may have half of their 128.
        let now_ns = 10_000 + 5000 + TIMER_NS;
        for n in 0..200 {
            policy.arrive(now_ns, Request { tag: 1000 + n, ..write(n) }, &device);
        }
        let mut given = 0;
        while let Decision::Serve(_) = policy.next(now_ns, &device) {
            given += 1;
        }
        assert_eq!(given, 64);
        assert_eq!(policy.next(now_ns, &device), Decision::UNTIL_COMPLETION);
    }
}
