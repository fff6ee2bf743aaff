//! What a server has done: counts, and how exactly it kept the model's times.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpCount {
    /// How many were answered.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
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
    /// Greatest.
    pub max_ns: u64,
}

/// What a server has done since its start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Reads answered.
    pub read: OpCount,
    /// Writes answered.
    pub write: OpCount,
    /// Discards and zeroings answered (at once: they cost no time).
    pub discard: OpCount,
    /// Flushes answered (at once: nothing is cached, every answered write is on the modelled platter).
    pub flush: u64,
    /// Requests refused, because they were out of range or the backing failed.
    pub errors: u64,
    /// How much later than the model's completion the answer was given to the kernel, of each timed request.
    pub service_error: LatencySummary,
    /// The model's service time, from service start to completion.
    pub service: LatencySummary,
    /// From arrival to the model's completion: waiting in the device's queue, and service.
    pub response: LatencySummary,
    /// Most requests in the device at once.
    pub max_queue_length: u64,
    /// Time with at least one request in the device.
    pub busy_ns: u64,
    /// Whether requests take the model's time (or none).
    pub timing: bool,
    /// Whether the threads that keep time run ahead of ordinary ones.
    pub realtime: bool,
}

/// Three significant digits up to a minute: 0.1 % of any value.
pub(crate) fn histogram() -> Option<Histogram<u64>> {
    Histogram::new_with_max(60_000_000_000, 3).ok()
}

pub(crate) fn summary(histogram: Option<&Histogram<u64>>) -> LatencySummary {
    histogram.filter(|h| !h.is_empty()).map_or_else(LatencySummary::default, |h| LatencySummary {
        count: h.len(),
        mean_ns: h.mean(),
        median_ns: h.value_at_quantile(0.5),
        p99_ns: h.value_at_quantile(0.99),
        max_ns: h.max(),
    })
}
