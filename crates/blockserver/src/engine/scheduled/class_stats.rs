//! Class statistics of a server with a scheduler.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::classes::ClassSpec;
use super::tally::Finished;

/// Window of rates.
const WINDOW_NS: u64 = 1_000_000_000;

/// Current state of a live server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulingStats {
    /// The policy, as requested.
    pub policy: String,
    /// Time since the server's start, in s.
    pub uptime_s: f64,
    /// Requests that are not done.
    pub outstanding: u64,
    /// Classes, in their order.
    pub classes: Vec<ClassStats>,
    /// Heads.
    pub heads: Vec<HeadStats>,
}

/// A class, since the server's start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassStats {
    /// Its name.
    pub name: String,
    /// Requests done.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that were done after their deadlines.
    pub misses: u64,
    /// Requests that are not done.
    pub queue: u64,
    /// Requests done in a second, of the last whole one.
    pub requests_per_s: f64,
    /// Bytes done in a second, of the last whole one.
    pub bytes_per_s: f64,
    /// Its part of the bytes of all classes in that second; 0 if there were none.
    pub share: f64,
    /// Mean response time in ms, from arrival to the answer.
    pub mean_ms: f64,
    /// Its 99th percentile, in ms.
    pub p99_ms: f64,
    /// Its greatest, in ms.
    pub max_ms: f64,
    /// Its accounts in the policies, summed over heads: `tokens_kb` and others.
    pub accounts: BTreeMap<String, f64>,
}

/// A head, since its policy was last set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadStats {
    /// Parts of requests that were done.
    pub requests: u64,
    /// Parts that wait in the policy.
    pub waiting: u64,
    /// Parts that the device has.
    pub in_service: u64,
    /// Time with at least one part in the device, in ms.
    pub busy_ms: f64,
    /// Slack of the policy's guarantees (deltaL), in ms.
    pub slack_ms: Option<f64>,
    /// Accounts of the policy for all classes together: `slack_left_ms`, `tokens_kb`.
    pub accounts: BTreeMap<String, f64>,
}

/// Requests and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    bytes: u64,
}

/// Counters of a class.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) spec: ClassSpec,
    pub(super) deadline_after_ns: Option<u64>,
    pub(super) queue: u64,
    done: Sum,
    errors: u64,
    misses: u64,
    response: Option<Histogram<u64>>,
    window_ns: u64,
    in_window: Sum,
    /// The window before.
    last: Sum,
}

impl Counts {
    pub(super) fn new(spec: &ClassSpec) -> Self {
        Counts {
            deadline_after_ns: spec.deadline_after_ns(),
            spec: spec.clone(),
            queue: 0,
            done: Sum::default(),
            errors: 0,
            misses: 0,
            // Three significant digits up to a minute; these arguments are always accepted.
            response: Histogram::new_with_max(60_000_000_000, 3).ok(),
            window_ns: 0,
            in_window: Sum::default(),
            last: Sum::default(),
        }
    }

    /// The class has changed; its counters are kept.
    pub(super) fn set(&mut self, spec: &ClassSpec) {
        self.spec = spec.clone();
        self.deadline_after_ns = spec.deadline_after_ns();
    }

    fn roll(&mut self, now_ns: u64) {
        let window_ns = now_ns / WINDOW_NS;
        if window_ns != self.window_ns {
            let is_next = window_ns == self.window_ns + 1;
            self.last = if is_next { self.in_window } else { Sum::default() };
            self.in_window = Sum::default();
            self.window_ns = window_ns;
        }
    }

    /// A request of the class is done.
    pub(super) fn add(&mut self, request: &Finished) {
        self.roll(request.done_ns);
        self.queue = self.queue.saturating_sub(1);
        self.misses += u64::from(request.is_late);
        if request.has_failed {
            self.errors += 1;
            return;
        }
        for sum in [&mut self.done, &mut self.in_window] {
            sum.requests += 1;
            sum.bytes += u64::from(request.size_bytes);
        }
        if let Some(response) = &mut self.response {
            response.saturating_record(request.response_ns);
        }
    }

    pub(super) fn reset(&mut self) {
        (self.done, self.errors, self.misses) = (Sum::default(), 0, 0);
        self.response.iter_mut().for_each(Histogram::reset);
    }

    pub(super) fn stats(&mut self, now_ns: u64) -> ClassStats {
        self.roll(now_ns);
        let ms = |ns: f64| ns / 1e6;
        let response = self.response.as_ref().filter(|response| !response.is_empty());
        ClassStats {
            name: self.spec.name.clone(),
            requests: self.done.requests,
            bytes: self.done.bytes,
            errors: self.errors,
            misses: self.misses,
            queue: self.queue,
            requests_per_s: self.last.requests as f64,
            bytes_per_s: self.last.bytes as f64,
            share: 0.0,
            mean_ms: response.map_or(0.0, |response| ms(response.mean())),
            p99_ms: response.map_or(0.0, |response| ms(response.value_at_quantile(0.99) as f64)),
            max_ms: response.map_or(0.0, |response| ms(response.max() as f64)),
            accounts: BTreeMap::new(),
        }
    }
}

/// Computes each class's share of the last second.
pub(super) fn share_out(classes: &mut [ClassStats]) {
    let all: f64 = classes.iter().map(|class| class.bytes_per_s).sum();
    if all > 0.0 {
        classes.iter_mut().for_each(|class| class.share = class.bytes_per_s / all);
    }
}
