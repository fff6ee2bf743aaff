//! Report of trace statistics (JSON). Fields without data in the trace are absent.

use std::collections::BTreeMap;

use serde::Serialize;

use super::course::Load;
use super::histogram::Distribution;
use super::hurst::Hurst;
use super::reuse::Reuse;
use super::scales::AtScale;
use super::sequence::Sequentiality;
use super::windows::Peak;
use crate::units::{Keys, Unit};

/// All statistics of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Requests.
    pub requests: u64,
    /// Records that were damaged.
    pub skipped: Skipped,
    /// Peculiarities that are not damage, and their counts.
    pub noted: BTreeMap<&'static str, u64>,
    /// Description in the trace's header.
    pub header: BTreeMap<String, String>,
    /// Arrival of the first request of the file, since the origin of its format.
    pub first_arrival_ns: Option<i64>,
    /// From the first to the latest arrival.
    pub duration_ns: i64,
    /// Mean rate; absent if all arrive at the same instant.
    pub requests_per_s: Option<f64>,
    /// Mean rate of bytes read and written.
    pub bytes_per_s: Option<f64>,
    /// Reads among reads and writes.
    pub read_share: Option<f64>,
    /// By kind of request.
    pub ops: BTreeMap<&'static str, OpCount>,
    /// Devices with requests.
    pub devices: u64,
    /// Devices that `device` leaves out.
    pub devices_not_listed: u64,
    /// The devices with the most requests.
    pub device: Vec<DeviceCount>,
    /// Of reads and writes.
    pub size_bytes: Option<Distribution>,
    /// Of reads.
    pub read_size_bytes: Option<Distribution>,
    /// Of writes.
    pub write_size_bytes: Option<Distribution>,
    /// Times between requests.
    pub arrivals: Arrivals,
    /// Rates at many scales.
    pub burstiness: Burstiness,
    /// Rates over time.
    pub load: Load,
    /// Absent if the trace has objects without offsets.
    pub sequentiality: Option<Sequentiality>,
    /// Popularity of units.
    pub working_set: WorkingSet,
    /// Queueing and service times, if recorded.
    pub times: Times,
}

/// Damaged records.
#[derive(Debug, Clone, Serialize)]
pub struct Skipped {
    /// How many were passed over.
    pub records: u64,
    /// Error of the first one.
    pub first: Option<String>,
}

/// Requests of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OpCount {
    /// Requests.
    pub requests: u64,
    /// Requested bytes.
    pub bytes: u64,
}

/// Requests of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCount {
    /// Its name in the trace.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Highest byte that was read or written, plus one.
    pub end_bytes: u64,
}

/// Whether requests are in the order of their times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Requests that are earlier than one before them; in all that follows they arrive at the time of that one.
    pub early: u64,
    /// By how much, at most.
    pub most_early_ns: i64,
}

/// Times between requests.
#[derive(Debug, Clone, Serialize)]
pub struct Arrivals {
    /// Order of the file.
    pub order: Order,
    /// From one arrival to the next.
    pub gap_ns: Option<Distribution>,
    /// Requests at the very time of the one before, to the trace's resolution.
    pub zero_gaps: u64,
}

/// Rates at many scales.
#[derive(Debug, Clone, Serialize)]
pub struct Burstiness {
    /// At 1 s and at 1 min, where the trace is longer.
    pub peaks: Vec<Peak>,
    /// From 1 ms, by doubling.
    pub scales: Vec<AtScale>,
    /// By each method that has enough scales.
    pub hurst: Vec<Hurst>,
}

/// Popularity of units.
#[derive(Debug, Clone, Serialize)]
pub struct WorkingSet {
    /// `block` or `object`.
    pub unit: &'static str,
    /// Bytes of a block; absent where units are objects.
    pub unit_bytes: Option<u64>,
    /// Units that requests touched, counting each time.
    pub accesses: u64,
    /// Distinct units.
    pub distinct: u64,
    /// Distinct units times their size, where they have one.
    pub distinct_bytes: Option<u64>,
    /// Requests of which only the first blocks were examined; see [`crate::Keys::cut`].
    pub cut_requests: u64,
    /// Accesses to units beyond the limit of 2^31 distinct units: not in the distances.
    pub untracked: u64,
    /// Distinct other units between two accesses to a unit.
    pub reuse_distance: Option<Distribution>,
    /// Miss ratios of LRU caches by size in units, exact from the distances.
    pub lru: Vec<MissRatio>,
}

/// The miss ratio of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MissRatio {
    /// Units that it holds.
    pub units: u64,
    /// Misses among all accesses, the first ones included.
    pub ratio: f64,
}

/// Queueing and service times, if recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    /// Requests in the queue that each one found.
    pub queue_length: Option<Distribution>,
    /// From arrival to the start of service.
    pub queueing_ns: Option<Distribution>,
    /// From arrival to completion.
    pub response_ns: Option<Distribution>,
    /// Times below 0, which are in neither.
    pub negative: u64,
}

pub(super) fn working_set(reuse: &Reuse, keys: &Keys) -> WorkingSet {
    let bytes = match keys.unit() {
        Unit::Block { bytes } => Some(bytes.max(1)),
        Unit::Object => None,
    };
    let distinct = reuse.distinct();
    // Half doublings from 1 unit to the whole working set: `n * 2^k`, so each is exact.
    let sizes = (0..40).flat_map(|power| [1_u64 << power, (1 << power) + (1 << power) / 2]);
    let mut lru: Vec<MissRatio> = Vec::new();
    for units in sizes {
        if lru.last().is_some_and(|last| last.units >= distinct || last.units >= units) {
            continue;
        }
        lru.push(MissRatio { units, ratio: reuse.miss_ratio(units) });
    }
    WorkingSet {
        unit: if bytes.is_some() { "block" } else { "object" },
        unit_bytes: bytes,
        accesses: reuse.accesses(),
        distinct,
        distinct_bytes: bytes.map(|bytes| distinct.saturating_mul(bytes)),
        cut_requests: keys.cut(),
        untracked: reuse.untracked(),
        reuse_distance: reuse.distances().distribution(),
        lru: if reuse.accesses() > 0 { lru } else { Vec::new() },
    }
}
