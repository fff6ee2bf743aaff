//! Report of a run: figures of each class, and lateness of the client itself.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;
use weir_host::thread::Scheduling;

use crate::Error;
use crate::class::Options;

/// An hour: longer times are recorded as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of ns with three figures.
pub(crate) fn histogram() -> Result<Histogram<u64>, Error> {
    Ok(Histogram::new_with_bounds(1, LONGEST_NS, 3)?)
}

/// Figures of one class, of requests due in the measured interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassReport {
    /// Its name.
    pub class: String,
    /// The server's URL.
    pub server: String,
    /// Requests with an outcome, right or failed; each is a row.
    pub requests: u64,
    /// Requests with a right answer.
    pub answered: u64,
    /// Failed requests.
    pub failed: u64,
    /// Failed requests by `errno` (see [`crate::status`]).
    pub errors: BTreeMap<i32, u64>,
    /// The first failure of each kind, warm-up included: the path, and the status if there was one.
    pub first_failures: BTreeMap<i32, String>,
    /// Requests before the measured interval.
    pub warmup_requests: u64,
    /// Right answers per second.
    pub requests_per_s: f64,
    /// Bytes of their bodies per second.
    pub bytes_per_s: f64,
    /// Response times of right answers from the intended instant, ns.
    pub response: Quantiles,
    /// The same from the instant of sending: what a load generator with coordinated omission would report.
    pub service: Quantiles,
    /// Connections made.
    pub connections: u64,
    /// Requests that were sent again because the server had closed a kept connection.
    pub resent: u64,
    /// Requests of an open loop that waited for a connection because all were in use.
    pub held_back: u64,
    /// Connections with more bytes than the answer has.
    pub surplus: u64,
}

/// Mean and quantiles of a time, ns; all 0 where there is no value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Values.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl Quantiles {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Quantiles {
            count: histogram.len(),
            mean_ns: histogram.mean(),
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: histogram.max(),
        }
    }
}

/// Report of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The instant of `CLOCK_MONOTONIC` that all times are relative to.
    pub epoch_monotonic_ns: i64,
    /// The measured interval, s; shorter if the run was stopped.
    pub measured_s: f64,
    /// Each class.
    pub classes: Vec<ClassReport>,
    /// Lateness of the load generator itself after the warm-up: from the intended instant to the instant at which it
    /// handled the request with a free connection. Waiting for the server is not included (`held_back`).
    pub lateness: Quantiles,
    /// How long the answers that came together took to be dealt with: no stamp is later than its event by more than this.
    pub turn: Quantiles,
    /// CPU time of the sending threads, s.
    pub cpu_seconds: f64,
    /// Sending threads.
    pub threads: usize,
    /// Their scheduling class.
    pub scheduling: Scheduling,
    /// Whether the run was stopped early.
    pub stopped: bool,
    /// Times that sending waited for rows to be written.
    pub writer_waits: u64,
}

/// Sums of one thread for one class.
pub(crate) struct Tally {
    response: Histogram<u64>,
    service: Histogram<u64>,
    bytes: u64,
    errors: BTreeMap<i32, u64>,
    first_failures: BTreeMap<i32, (i64, String)>,
    failed: u64,
    warmup: u64,
    pub connections: u64,
    pub resent: u64,
    pub held_back: u64,
    pub surplus: u64,
}

impl Tally {
    pub fn new() -> Result<Self, Error> {
        Ok(Tally {
            response: histogram()?,
            service: histogram()?,
            bytes: 0,
            errors: BTreeMap::new(),
            first_failures: BTreeMap::new(),
            failed: 0,
            warmup: 0,
            connections: 0,
            resent: 0,
            held_back: 0,
            surplus: 0,
        })
    }

    /// Counts a request that ended. `path` is its path.
    pub fn add(&mut self, outcome: &crate::Outcome, path: &str) {
        if outcome.error != 0 {
            self.first_failures.entry(outcome.error).or_insert_with(|| {
                let status = match outcome.http_status {
                    0 => String::new(),
                    status => format!(" (status {status})"),
                };
                (outcome.intended_ns, format!("{} {path}{status}", outcome.method.name()))
            });
        }
        if outcome.warmup {
            self.warmup += 1;
        } else if outcome.error != 0 {
            self.failed += 1;
            *self.errors.entry(outcome.error).or_default() += 1;
        } else if let (Some(submitted), Some(completed)) = (outcome.submitted_ns, outcome.completed_ns) {
            let ns = |from| u64::try_from(completed - from).unwrap_or(0);
            self.response.saturating_record(ns(outcome.intended_ns));
            self.service.saturating_record(ns(submitted));
            self.bytes += outcome.body_bytes;
        }
    }

    pub fn merge(&mut self, other: &Tally) {
        // All histograms have the same bounds, so nothing can be out of them.
        let _ = self.response.add(&other.response);
        let _ = self.service.add(&other.service);
        self.bytes += other.bytes;
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
        for (errno, first) in &other.first_failures {
            let kept = self.first_failures.entry(*errno).or_insert_with(|| first.clone());
            if first.0 < kept.0 {
                *kept = first.clone();
            }
        }
        self.failed += other.failed;
        self.warmup += other.warmup;
        self.connections += other.connections;
        self.resent += other.resent;
        self.held_back += other.held_back;
        self.surplus += other.surplus;
    }

    pub fn finish(self, class: &str, server: &str, measured_s: f64) -> ClassReport {
        let answered = self.response.len();
        let rate = |count: u64| if measured_s > 0.0 { count as f64 / measured_s } else { 0.0 };
        ClassReport {
            class: class.to_owned(),
            server: server.to_owned(),
            requests: answered + self.failed,
            answered,
            failed: self.failed,
            errors: self.errors,
            first_failures: self.first_failures.into_iter().map(|(errno, (_, text))| (errno, text)).collect(),
            warmup_requests: self.warmup,
            requests_per_s: rate(answered),
            bytes_per_s: rate(self.bytes),
            response: Quantiles::of(&self.response),
            service: Quantiles::of(&self.service),
            connections: self.connections,
            resent: self.resent,
            held_back: self.held_back,
            surplus: self.surplus,
        }
    }
}

/// The measured interval of a run that ended at `end_ns`, s.
pub(crate) fn measured_s(options: &Options, end_ns: i64) -> f64 {
    let end = options.duration.as_secs_f64().min(end_ns as f64 / 1e9);
    (end - options.warmup.as_secs_f64()).max(0.0)
}
