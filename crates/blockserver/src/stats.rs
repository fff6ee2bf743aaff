//! Statistics of a server: counts, and errors of its completion times against the model.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpCount {
    /// Number of completed requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl OpCount {
    /// Adds a request.
    pub(crate) fn add(&mut self, bytes: u32) {
        self.requests += 1;
        self.bytes += u64::from(bytes);
    }
}

/// A distribution of times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// How many values.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub median_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Statistics of a server since its start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Reads answered.
    pub read: OpCount,
    /// Writes answered.
    pub write: OpCount,
    /// Completed discards and zeroings (without service time).
    pub discard: OpCount,
    /// Completed flushes (without service time: nothing is cached, every completed write is on the modelled medium).
    pub flush: u64,
    /// Failed requests: out of range, or the backing failed.
    pub errors: u64,
    /// Time from the model's completion to that seen by the kernel, of each timed request.
    pub service_error: LatencySummary,
    /// The model's service time, from service start to completion.
    pub service: LatencySummary,
    /// From arrival to the model's completion: queueing delay and service time.
    pub response: LatencySummary,
    /// Maximum outstanding requests.
    pub max_queue_length: u64,
    /// Time with at least one outstanding request.
    pub busy_ns: u64,
    /// Whether service times are on.
    pub timing: bool,
    /// Whether the timing threads have real-time priority.
    pub realtime: bool,
}

/// Counts, kept without a lock.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub reads: Counter,
    pub writes: Counter,
    pub discards: Counter,
    flushes: AtomicU64,
    errors: AtomicU64,
}

/// Requests of one kind.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    pub fn flush(&self) {
        self.flushes.fetch_add(1, Relaxed);
    }

    pub fn error(&self) {
        self.errors.fetch_add(1, Relaxed);
    }

    /// Fills in the counts.
    pub fn show(&self, stats: &mut Stats) {
        stats.read = self.reads.get();
        stats.write = self.writes.get();
        stats.discard = self.discards.get();
        stats.flush = self.flushes.load(Relaxed);
        stats.errors = self.errors.load(Relaxed);
    }

    pub fn reset(&self) {
        for Counter { requests, bytes } in [&self.reads, &self.writes, &self.discards] {
            requests.store(0, Relaxed);
            bytes.store(0, Relaxed);
        }
        self.flushes.store(0, Relaxed);
        self.errors.store(0, Relaxed);
    }
}

impl Counter {
    /// Adds a request.
    pub fn add(&self, bytes: u64) {
        self.requests.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn get(&self) -> OpCount {
        OpCount { requests: self.requests.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// Occupancy of a device: maximum outstanding requests, and busy time.
#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    most: u64,
    busy_ns: u64,
    since_ns: Option<u64>,
}

impl Occupancy {
    /// Records an arrival, with the number of outstanding requests.
    pub fn came(&mut self, now_ns: u64, outstanding: usize) {
        self.most = self.most.max(outstanding as u64);
        self.since_ns.get_or_insert(now_ns);
    }

    /// Records that no request is outstanding.
    pub fn empty(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.since_ns.take() {
            self.busy_ns += now_ns.saturating_sub(since_ns);
        }
    }

    /// Fills in the statistics.
    pub fn show(&self, now_ns: u64, stats: &mut Stats) {
        stats.max_queue_length = self.most;
        stats.busy_ns = self.busy_ns + self.since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
    }

    /// Resets the statistics, with this number of outstanding requests.
    pub fn reset(&mut self, now_ns: u64, outstanding: usize) {
        let since_ns = self.since_ns.map(|_| now_ns);
        *self = Self { most: outstanding as u64, busy_ns: 0, since_ns };
    }
}

/// Times of the requests that the model served.
#[derive(Debug)]
pub(crate) struct Times {
    service_error: Option<Histogram<u64>>,
    service: Option<Histogram<u64>>,
    response: Option<Histogram<u64>>,
}

impl Default for Times {
    fn default() -> Self {
        // Three significant digits up to a minute: 0.1 % of any value. These arguments are always accepted.
        let histogram = || Histogram::new_with_max(60_000_000_000, 3).ok();
        Self { service_error: histogram(), service: histogram(), response: histogram() }
    }
}

impl Times {
    /// Adds a request.
    pub fn record(&mut self, error_ns: u64, service_ns: u64, response_ns: u64) {
        for (histogram, value_ns) in [
            (&mut self.service_error, error_ns),
            (&mut self.service, service_ns),
            (&mut self.response, response_ns),
        ] {
            if let Some(histogram) = histogram {
                histogram.saturating_record(value_ns);
            }
        }
    }

    /// Fills in the distributions.
    pub fn show(&self, stats: &mut Stats) {
        stats.service_error = summary(self.service_error.as_ref());
        stats.service = summary(self.service.as_ref());
        stats.response = summary(self.response.as_ref());
    }

    pub fn reset(&mut self) {
        let Self { service_error, service, response } = self;
        [service_error, service, response].into_iter().flatten().for_each(Histogram::reset);
    }
}

fn summary(histogram: Option<&Histogram<u64>>) -> LatencySummary {
    histogram.filter(|h| !h.is_empty()).map_or_else(LatencySummary::default, |h| LatencySummary {
        count: h.len(),
        mean_ns: h.mean(),
        median_ns: h.value_at_quantile(0.5),
        p99_ns: h.value_at_quantile(0.99),
        max_ns: h.max(),
    })
}
