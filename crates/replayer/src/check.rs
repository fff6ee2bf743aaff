//! Check of a stream before anything is sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_records::Request;

use crate::{Error, PeakRate, Targets};

/// Summary of a whole stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamSummary {
    /// Requests.
    pub requests: u64,
    /// Requests that change data: writes, discards, zeroings.
    pub writes: u64,
    /// Reads and writes: requests that transfer data.
    pub transfers: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// The earliest intended time, ns; `None` without requests.
    pub first_intended_ns: Option<i64>,
    /// The latest intended time, ns.
    pub last_intended_ns: Option<i64>,
    /// How much earlier than one of its predecessors a request is, at most, ns. Above 0 the stream
    /// must be read through [`crate::Reordered`].
    pub disorder_ns: i64,
    /// Most requests that are intended in any window of 10 ms, per second; of a stream out of order a lower bound.
    pub peak_per_s: f64,
    /// Requests by class.
    pub classes: BTreeMap<Arc<str>, u64>,
}

/// Checks a stream request by request against its targets.
#[derive(Debug)]
pub struct Check<'a> {
    targets: &'a Targets,
    summary: StreamSummary,
    peak: PeakRate,
}

impl<'a> Check<'a> {
    /// A check without requests.
    pub fn new(targets: &'a Targets) -> Self {
        Check { targets, summary: StreamSummary::default(), peak: PeakRate::default() }
    }

    /// Checks the next request of the stream.
    ///
    /// # Errors
    /// The request has no target, names an absent file, ends past the end of its target, transfers nothing or too much, or
    /// writes where writing is not allowed.
    pub fn add(&mut self, request: &Request) -> Result<(), Error> {
        self.targets.resolve(request).map_err(|reason| Error::Request {
            request: request.request,
            class: request.class.to_string(),
            reason,
        })?;
        let summary = &mut self.summary;
        summary.requests += 1;
        summary.writes += u64::from(request.op.changes_data());
        summary.transfers += u64::from(request.op.data().is_some());
        summary.bytes += request.size_bytes;
        let latest = summary.last_intended_ns.unwrap_or(request.intended_ns);
        summary.disorder_ns = summary.disorder_ns.max(latest.saturating_sub(request.intended_ns));
        summary.last_intended_ns = Some(latest.max(request.intended_ns));
        summary.first_intended_ns =
            Some(summary.first_intended_ns.unwrap_or(request.intended_ns).min(request.intended_ns));
        self.peak.add(request.intended_ns);
        match summary.classes.get_mut(&request.class) {
            Some(count) => *count += 1,
            None => {
                summary.classes.insert(Arc::clone(&request.class), 1);
            }
        }
        Ok(())
    }

    /// Summary of the stream.
    pub fn finish(self) -> StreamSummary {
        StreamSummary { peak_per_s: self.peak.per_s(), ..self.summary }
    }
}
