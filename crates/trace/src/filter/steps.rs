//! Per-request steps of a [`super::Pipeline`].

use std::collections::{BTreeSet, HashMap};

use super::ratio::Ratio;
use super::{Bound, Step};
use crate::{Devices, TraceRequest};

/// Keeps requests in a time range, relative to the first request of the trace.
#[derive(Debug)]
pub struct TimeRange {
    /// Start of the range.
    pub from_ns: i64,
    /// End of the range, exclusive.
    pub to_ns: i64,
}

impl Step for TimeRange {
    fn name(&self) -> &'static str {
        "time range"
    }

    fn take(&mut self, request: TraceRequest, _: &Devices, on: &mut Vec<TraceRequest>) -> Result<(), Bound> {
        if (self.from_ns..self.to_ns).contains(&request.arrival_ns) {
            on.push(request);
        }
        Ok(())
    }
}

/// Keeps the requests of some devices.
#[derive(Debug)]
pub struct OfDevices {
    names: BTreeSet<String>,
    /// Whether a device is kept, by index.
    known: Vec<Option<bool>>,
    seen: BTreeSet<String>,
}

impl OfDevices {
    /// A step that keeps devices of these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        OfDevices { names: names.into_iter().collect(), known: Vec::new(), seen: BTreeSet::new() }
    }
}

impl Step for OfDevices {
    fn name(&self) -> &'static str {
        "device"
    }

    fn take(
        &mut self,
        request: TraceRequest,
        devices: &Devices,
        on: &mut Vec<TraceRequest>,
    ) -> Result<(), Bound> {
        let number = request.device as usize;
        if number >= self.known.len() {
            self.known.resize(number + 1, None);
        }
        let kept = *self.known[number].get_or_insert_with(|| {
            let name = devices.name(request.device);
            let kept = self.names.contains(&name);
            if kept {
                self.seen.insert(name);
            }
            kept
        });
        if kept {
            on.push(request);
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.names.difference(&self.seen).map(|name| format!("the trace has no device {name}")).collect()
    }
}

/// Scales times: `S > 1` makes arrivals rarer, `S < 1` more frequent (Shenoy et al., section 3.3). Recorded response and
/// queueing times belong to the original load and are removed.
#[derive(Debug)]
pub struct ScaleTime {
    factor: Ratio,
    origin_ns: Option<i64>,
    cleared: u64,
}

impl ScaleTime {
    /// A step that multiplies times since its first request.
    pub fn new(factor: Ratio) -> Self {
        ScaleTime { factor, origin_ns: None, cleared: 0 }
    }
}

impl Step for ScaleTime {
    fn name(&self) -> &'static str {
        "time scale"
    }

    fn take(&mut self, request: TraceRequest, _: &Devices, on: &mut Vec<TraceRequest>) -> Result<(), Bound> {
        let origin_ns = *self.origin_ns.get_or_insert(request.arrival_ns);
        let scaled = request
            .arrival_ns
            .checked_sub(origin_ns)
            .and_then(|since_ns| self.factor.times(since_ns))
            .and_then(|since_ns| since_ns.checked_add(origin_ns));
        let arrival_ns = scaled.ok_or(Bound("its scaled time"))?;
        self.cleared += u64::from(
            request.response_ns.is_some() || request.queueing_ns.is_some() || request.queue_length.is_some(),
        );
        on.push(TraceRequest {
            arrival_ns,
            response_ns: None,
            queueing_ns: None,
            queue_length: None,
            ..request
        });
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let note = format!(
            "{} requests lost their response times and queue lengths: they belong to the load of the original",
            self.cleared
        );
        if self.cleared > 0 { vec![note] } else { Vec::new() }
    }
}

/// Scales addresses by a factor, or to fit a size.
///
/// Sizes are unchanged. A request that continued the previous one on its device continues it after scaling: sequential
/// runs remain. Any other begins at its offset times the factor, rounded down to 512 bytes.
#[derive(Debug)]
pub struct ScaleAddress {
    factor: Option<Ratio>,
    /// Maximum end of a request, if set.
    end_bytes: Option<u64>,
    /// By device and file: where the last request ended, before and after.
    ends: HashMap<(u32, Option<u64>), (u64, u64)>,
    shortened: u64,
}

const SECTOR_BYTES: u64 = 512;

impl ScaleAddress {
    /// Multiplies offsets.
    pub fn by(factor: Ratio) -> Self {
        ScaleAddress { factor: Some(factor), end_bytes: None, ends: HashMap::new(), shortened: 0 }
    }

    /// Fits requests that end at `extent_bytes` at most into `to_bytes`: offsets are multiplied by the ratio of the two
    /// if `to_bytes` is smaller, else unchanged.
    pub fn fit(extent_bytes: u64, to_bytes: u64) -> Self {
        let factor = if extent_bytes > to_bytes { Ratio::new(to_bytes, extent_bytes) } else { None };
        ScaleAddress { factor, end_bytes: Some(to_bytes), ends: HashMap::new(), shortened: 0 }
    }
}

impl Step for ScaleAddress {
    fn name(&self) -> &'static str {
        "address scale"
    }

    fn take(
        &mut self,
        mut request: TraceRequest,
        _: &Devices,
        on: &mut Vec<TraceRequest>,
    ) -> Result<(), Bound> {
        let old = request.offset_bytes;
        let old_end = old.saturating_add(request.size_bytes);
        let most = self.end_bytes.unwrap_or(u64::MAX);
        if request.size_bytes > most {
            request.size_bytes = most;
            self.shortened += 1;
        }
        let latest = most - request.size_bytes;
        let scaled = match self.factor {
            Some(factor) => {
                factor.times_down(old).ok_or(Bound("its scaled offset"))? / SECTOR_BYTES * SECTOR_BYTES
            }
            None => old,
        };
        let before = self.ends.get(&(request.device, request.object));
        let follows = before.filter(|(end, _)| *end == old).map(|(_, end)| *end);
        request.offset_bytes = match follows {
            Some(end) if end <= latest => end,
            // At the end of what there is, on a boundary of sectors where the original was on one.
            _ if scaled > latest && old.is_multiple_of(SECTOR_BYTES) => latest / SECTOR_BYTES * SECTOR_BYTES,
            _ => scaled.min(latest),
        };
        let end = request.offset_bytes.saturating_add(request.size_bytes);
        self.ends.insert((request.device, request.object), (old_end, end));
        on.push(request);
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let note = format!("{} requests were longer than the whole and were shortened", self.shortened);
        if self.shortened > 0 { vec![note] } else { Vec::new() }
    }
}

/// Shifts times to begin with the first request of the step.
#[derive(Debug, Default)]
pub struct Rebase {
    origin_ns: Option<i64>,
}

impl Step for Rebase {
    fn name(&self) -> &'static str {
        "times from the first left"
    }

    fn take(&mut self, request: TraceRequest, _: &Devices, on: &mut Vec<TraceRequest>) -> Result<(), Bound> {
        let origin_ns = *self.origin_ns.get_or_insert(request.arrival_ns);
        let arrival_ns = request.arrival_ns.checked_sub(origin_ns).ok_or(Bound("its time"))?;
        on.push(TraceRequest { arrival_ns, ..request });
        Ok(())
    }
}
