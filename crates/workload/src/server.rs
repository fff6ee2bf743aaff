//! Specification of a file server's day, midnight to midnight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The disks of a server over the day, by statistics of published disk traces: a total and a busiest minute for each
/// disk, an hourly profile, bursts of reads that follow each other and of writes that are flushed together.
///
/// Totals, busiest minutes and known hours are met exactly on every day; the rest is random. File k of the class is disk k. Each
/// midnight begins another day of the same kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerDay {
    /// Time of day at which the stream begins, in seconds since midnight; a multiple of 20.
    #[serde(default)]
    pub start_s: u32,
    /// Relative load of the 24 hours.
    pub hours: Vec<f64>,
    /// A daily job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spike: Option<Spike>,
    /// Coefficient of variation of the load of 20-second cells around the profile.
    pub cell_cov: f64,
    /// Time over which that variation decays to 1/e, in seconds.
    pub cell_memory_s: f64,
    /// The disks, one for each file.
    pub disks: Vec<Disk>,
    /// The disks in use, by their numbers from 0: file k of the class is the k-th of them. Absent: all.
    #[serde(default)]
    pub only: Option<Vec<u8>>,
    /// A part of the day for which more is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// How reads come.
    pub reads: Trains,
    /// How writes come.
    pub writes: Flushes,
    /// Share of the requests that begin where the one before them on the same disk ended.
    pub sequential: ReadWrite,
    /// Where the other requests fall.
    pub hot: Hot,
}

/// A daily job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spike {
    /// When it begins, in seconds since midnight.
    pub from_s: u32,
    /// When it ends.
    pub to_s: u32,
    /// Relative load, in the unit of the hours' weights.
    pub weight: f64,
}

/// A disk's day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Requests of the day.
    pub requests: u32,
    /// Requests in its busiest minute.
    pub peak_per_minute: u32,
    /// Requests in its longest flush, which falls into the busiest minute; 0: none is prescribed.
    #[serde(default)]
    pub longest_flush: u32,
    /// Its part of the window.
    #[serde(default)]
    pub window: DiskWindow,
    /// Hours whose number of requests is known, in order; the other hours share the rest of the day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_hours: Vec<KnownHour>,
}

/// An hour of a disk's day whose number of requests is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownHour {
    /// Hour of the day, 0 to 23: 16 is 4 to 5 PM.
    pub hour: u8,
    /// Its requests, those of the window and of the busiest minute included.
    pub requests: u32,
}

/// A part of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// When it begins, in seconds since midnight; a multiple of 20.
    pub from_s: u32,
    /// When it ends; a multiple of 20.
    pub to_s: u32,
}

/// A disk's requests within the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskWindow {
    /// How many.
    pub requests: u32,
    /// How many in the busiest second.
    pub peak_per_s: u32,
}

/// Reads, each issued when the one before is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trains {
    /// Mean number of reads in a train.
    pub mean_length: f64,
    /// Mean time between them, in ms.
    pub gap_ms: f64,
    /// Standard deviation of that time, in ms.
    pub gap_std_ms: f64,
}

/// Writes, flushed by the system in bursts of bounded Pareto length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flushes {
    /// Exponent of the number of writes in a flush.
    pub shape: f64,
    /// Fewest writes in a flush.
    pub shortest: u32,
    /// Most writes in a flush.
    pub longest: u32,
    /// Share of the writes that come at the same instant as the one before.
    pub together: f64,
    /// Mean time between the others, in ms; exponential.
    pub gap_ms: f64,
}

/// A share of the reads and one of the writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadWrite {
    /// Of the reads.
    pub read: f64,
    /// Of the writes.
    pub write: f64,
}

/// A region with more requests than the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hot {
    /// Share of the requests that fall into it.
    pub requests: f64,
    /// Its share of the disk, from the first byte.
    pub space: f64,
}

impl ServerDay {
    /// The disks in use, with their numbers among all.
    pub(crate) fn asked(&self) -> Vec<(u8, &Disk)> {
        let all = (0u8..).zip(&self.disks);
        match &self.only {
            None => all.collect(),
            Some(only) => {
                only.iter().filter_map(|place| Some((*place, self.disks.get(usize::from(*place))?))).collect()
            }
        }
    }
}

impl Window {
    /// Its length, in seconds.
    pub(crate) fn length_s(&self) -> u32 {
        self.to_s.saturating_sub(self.from_s)
    }
}
