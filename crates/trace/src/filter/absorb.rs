//! Cache filter: hits do not reach the device (Shenoy et al., section 2.3, 64 MB of LRU).

use weir_cache::{Cache, Policy};

use super::{Bound, Step};
use crate::units::{Keys, Span, Unit};
use crate::{Devices, TraceRequest};

/// Treatment of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Like reads: a hit is absorbed, as in the papers. Dirty blocks are never written back.
    Absorb,
    /// Write-through: every write reaches the device and its blocks enter the cache.
    Through,
}

/// Passes cache misses.
pub struct Absorb {
    cache: Box<dyn Cache>,
    keys: Keys,
    writes: Writes,
    accesses: u64,
    hits: u64,
    partly: u64,
    /// First byte and end of the missed part of the current request.
    runs: Vec<(u64, u64)>,
}

impl Absorb {
    /// An empty cache. Units are blocks, or objects with the sizes of their requests.
    pub fn new(policy: Policy, capacity_bytes: u64, unit: Unit, writes: Writes) -> Self {
        let capacity = match unit {
            Unit::Block { bytes } => capacity_bytes / bytes.max(1),
            Unit::Object => capacity_bytes,
        };
        Absorb {
            cache: policy.cache(capacity),
            keys: Keys::new(unit),
            writes,
            accesses: 0,
            hits: 0,
            partly: 0,
            runs: Vec::new(),
        }
    }

    /// Looks up every block, and returns the runs of missed blocks as parts of the request.
    fn missed(&mut self, request: &TraceRequest, span: Span, bytes: u64, on: &mut Vec<TraceRequest>) {
        let (begin, end) = (request.offset_bytes, request.offset_bytes.saturating_add(request.size_bytes));
        let first_block = begin / bytes;
        let mut run: Option<(u64, u64)> = None;
        self.runs.clear();
        for place in 0..span.units {
            let key = self.keys.key(span, place);
            let hit = self.cache.request(key, 1);
            self.accesses += 1;
            self.hits += u64::from(hit);
            let from = ((first_block + place).saturating_mul(bytes)).max(begin);
            let to = (first_block + place).saturating_add(1).saturating_mul(bytes).min(end);
            match (&mut run, hit) {
                (Some((_, run_end)), false) => *run_end = to,
                (None, false) => run = Some((from, to)),
                (_, true) => self.runs.extend(run.take()),
            }
        }
        // The part beyond the examined units joins the last run, or is a run of its own.
        let looked_at = first_block.saturating_add(span.units).saturating_mul(bytes).min(end);
        if looked_at < end {
            match &mut run {
                Some((_, run_end)) => *run_end = end,
                None => run = Some((looked_at, end)),
            }
        }
        self.runs.extend(run);
        if request.op.is_write() && self.writes == Writes::Through || self.runs == [(begin, end)] {
            on.push(*request);
            return;
        }
        self.partly += u64::from(!self.runs.is_empty());
        on.extend(self.runs.drain(..).map(|(from, to)| TraceRequest {
            offset_bytes: from,
            size_bytes: to - from,
            // Of the whole request, not of this part of it.
            queueing_ns: None,
            response_ns: None,
            ..*request
        }));
    }
}

impl Step for Absorb {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn take(&mut self, request: TraceRequest, _: &Devices, on: &mut Vec<TraceRequest>) -> Result<(), Bound> {
        match (self.keys.unit(), self.keys.span(&request)) {
            (Unit::Block { bytes }, Some(span)) => self.missed(&request, span, bytes.max(1), on),
            (Unit::Object, Some(span)) => {
                let key = self.keys.key(span, 0);
                let hit = self.cache.request(key, request.size_bytes);
                self.accesses += 1;
                self.hits += u64::from(hit);
                if !hit || request.op.is_write() && self.writes == Writes::Through {
                    on.push(request);
                }
            }
            (_, None) => on.push(request),
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let unit = if self.keys.unit() == Unit::Object { "objects" } else { "blocks" };
        let misses = self.accesses - self.hits;
        let ratio = misses as f64 / self.accesses.max(1) as f64;
        let mut notes =
            vec![format!("{} {unit} accessed, {misses} missed (miss ratio {ratio:.6})", self.accesses)];
        if self.partly > 0 {
            notes.push(format!("{} requests were absorbed in part", self.partly));
        }
        notes
    }
}
