//! What a device profile file says, and the devices it makes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Device, SECTOR_BYTES};
use crate::disk::{Disk, QueueOrder};
use crate::geometry::Geometry;
use crate::instant::Instant;
use crate::mechanism::Mechanism;
use crate::profile::ProfileError;
use crate::rotation::Rotation;
use crate::seek::{LEAST_CYLINDERS, SeekCurve};
use crate::ssd::{FlashTiming, Ssd};

/// A device profile: one YAML file in `profiles/`, or one of your own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Profile {
    /// A disk with one arm.
    Disk(DiskProfile),
    /// A flash device.
    Ssd(SsdProfile),
    /// No service time.
    Null(NullProfile),
}

/// A disk's figures, as a data sheet gives them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskProfile {
    /// One line for people.
    pub description: String,
    /// Capacity of the real disk in 10^9 bytes: no larger device can be made.
    pub capacity_gb: f64,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Heads, that is tracks in a cylinder.
    pub heads: u32,
    /// Zones from the outer edge inwards; their shares add up to 1.
    pub zones: Vec<ZoneProfile>,
    /// Seek to the next cylinder.
    pub seek_min_ms: f64,
    /// Mean seek of a read over all pairs of cylinders.
    pub seek_avg_ms: f64,
    /// Seek across all cylinders.
    pub seek_max_ms: f64,
    /// What a write adds to a seek of more than one cylinder.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Changing to another head.
    pub head_switch_ms: f64,
    /// How much later the next head's track begins; at least `head_switch_ms`, or sequential streams lose revolutions.
    pub head_skew_ms: f64,
    /// How much later the next cylinder begins; at least `seek_min_ms` and `head_switch_ms`.
    pub cylinder_skew_ms: f64,
    /// Controller time for each command; overlaps with the work on earlier ones.
    pub command_overhead_us: f64,
    /// How fast buffered data reach the host, in 10^6 bytes a second.
    pub interface_mb_s: f64,
    /// How far the disk reads ahead after a read; 0 for not at all.
    #[serde(default)]
    pub read_ahead_kib: u32,
    /// Order of the disk's own queue.
    #[serde(default)]
    pub queue_order: QueueOrder,
}

/// One zone of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneProfile {
    /// Share of the cylinders, 0 to 1.
    pub share: f64,
    /// Sectors of 512 bytes on each track.
    pub sectors_per_track: u32,
}

/// A flash device's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SsdProfile {
    /// One line for people.
    pub description: String,
    /// Channels that work at the same time.
    pub channels: u32,
    /// Page size in KiB.
    pub page_kib: u32,
    /// Flash read time.
    pub read_latency_us: f64,
    /// Flash program time.
    pub write_latency_us: f64,
    /// Transfer rate of one channel in 10^6 bytes a second.
    pub channel_mb_s: f64,
    /// Controller time for each command.
    pub command_overhead_us: f64,
}

/// A device without service time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullProfile {
    /// One line for people.
    pub description: String,
}

impl Profile {
    /// One line for people.
    pub fn description(&self) -> &str {
        match self {
            Self::Disk(disk) => &disk.description,
            Self::Ssd(ssd) => &ssd.description,
            Self::Null(null) => &null.description,
        }
    }

    /// Whether every request completes at its arrival.
    pub fn is_instant(&self) -> bool {
        matches!(self, Self::Null(_))
    }

    /// Makes a device of `capacity_bytes`, a multiple of 512.
    ///
    /// A disk is scaled, not cut: it gets the fewest cylinders that hold the capacity, with all zones and the arm's whole
    /// stroke, so random requests cost what they cost on the real disk whatever the size.
    ///
    /// # Errors
    /// [`ProfileError::Field`] if a field of the profile is out of range, [`ProfileError::Capacity`] if the profile cannot
    /// have that capacity.
    pub fn build(&self, capacity_bytes: u64) -> Result<Box<dyn Device>, ProfileError> {
        if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(SECTOR_BYTES) {
            let least_bytes = SECTOR_BYTES;
            return Err(ProfileError::Capacity { capacity_bytes, least_bytes, most_bytes: u64::MAX });
        }
        Ok(match self {
            Self::Disk(disk) => Box::new(disk.build(capacity_bytes)?),
            Self::Ssd(ssd) => Box::new(ssd.build(capacity_bytes)?),
            Self::Null(_) => Box::new(Instant::new(capacity_bytes)),
        })
    }
}

impl DiskProfile {
    /// Makes the disk, as [`Profile::build`] says.
    ///
    /// # Errors
    /// As [`Profile::build`].
    pub fn build(&self, capacity_bytes: u64) -> Result<Disk, ProfileError> {
        self.check()?;
        let zones: Vec<_> = self.zones.iter().map(|zone| (zone.share, zone.sectors_per_track)).collect();
        let mean_track: f64 = zones.iter().map(|(share, per_track)| share * f64::from(*per_track)).sum();
        let cylinder_bytes = mean_track * f64::from(self.heads) * SECTOR_BYTES as f64;
        let least_bytes = (cylinder_bytes * f64::from(LEAST_CYLINDERS)).ceil() as u64;
        let most_bytes = (self.capacity_gb * 1e9) as u64;
        if !(least_bytes..=most_bytes).contains(&capacity_bytes) {
            return Err(ProfileError::Capacity { capacity_bytes, least_bytes, most_bytes });
        }
        let geometry = Geometry::fitting(capacity_bytes / SECTOR_BYTES, self.heads, &zones);
        let rotation = Rotation {
            revolution_ns: (60e9 / self.rpm).round() as u64,
            head_skew_ns: ns(self.head_skew_ms, 1e6),
            cylinder_skew_ns: ns(self.cylinder_skew_ms, 1e6),
            heads: self.heads,
        };
        let seek = SeekCurve::solve(
            geometry.cylinders(),
            self.seek_min_ms * 1e6,
            self.seek_avg_ms * 1e6,
            self.seek_max_ms * 1e6,
        )?;
        let mechanism = Mechanism {
            geometry,
            rotation,
            seek,
            head_switch_ns: ns(self.head_switch_ms, 1e6),
            write_settle_ns: ns(self.write_settle_ms, 1e6),
        };
        Ok(Disk::new(
            mechanism,
            capacity_bytes,
            self.queue_order,
            ns(self.command_overhead_us, 1e3),
            self.interface_mb_s * 1e6,
            u64::from(self.read_ahead_kib) * 1024 / SECTOR_BYTES,
        ))
    }

    fn check(&self) -> Result<(), ProfileError> {
        let revolution_ms = 60e3 / self.rpm;
        within("capacity_gb", self.capacity_gb, f64::MIN_POSITIVE, 1e6)?;
        within("rpm", self.rpm, 60.0, 1e6)?;
        within("heads", f64::from(self.heads), 1.0, 1000.0)?;
        within("number of zones", self.zones.len() as f64, 1.0, 1000.0)?;
        for zone in &self.zones {
            within("zones.share", zone.share, 0.0, 1.0)?;
            within("zones.sectors_per_track", f64::from(zone.sectors_per_track), 1.0, 1e6)?;
        }
        within("sum of zones.share", self.zones.iter().map(|zone| zone.share).sum(), 0.999_999, 1.000_001)?;
        within("seek_min_ms", self.seek_min_ms, 0.0, 1e4)?;
        within("seek_avg_ms", self.seek_avg_ms, self.seek_min_ms, 1e4)?;
        within("seek_max_ms", self.seek_max_ms, self.seek_avg_ms, 1e4)?;
        within("write_settle_ms", self.write_settle_ms, 0.0, 1e4)?;
        within("head_switch_ms", self.head_switch_ms, 0.0, 1e4)?;
        within("head_skew_ms", self.head_skew_ms, self.head_switch_ms, revolution_ms)?;
        let least_skew_ms = self.seek_min_ms.max(self.head_switch_ms);
        within("cylinder_skew_ms", self.cylinder_skew_ms, least_skew_ms, revolution_ms)?;
        within("command_overhead_us", self.command_overhead_us, 0.0, 1e6)?;
        within("interface_mb_s", self.interface_mb_s, 1e-3, 1e6)
    }
}

impl SsdProfile {
    /// Makes the device.
    ///
    /// # Errors
    /// [`ProfileError::Field`].
    pub fn build(&self, capacity_bytes: u64) -> Result<Ssd, ProfileError> {
        within("channels", f64::from(self.channels), 1.0, 4096.0)?;
        within("page_kib", f64::from(self.page_kib), 1.0, 65536.0)?;
        within("read_latency_us", self.read_latency_us, 0.0, 1e6)?;
        within("write_latency_us", self.write_latency_us, 0.0, 1e6)?;
        within("channel_mb_s", self.channel_mb_s, 1e-3, 1e6)?;
        within("command_overhead_us", self.command_overhead_us, 0.0, 1e6)?;
        let timing = FlashTiming {
            page_bytes: u64::from(self.page_kib) * 1024,
            read_latency_ns: ns(self.read_latency_us, 1e3),
            write_latency_ns: ns(self.write_latency_us, 1e3),
            channel_bytes_per_s: self.channel_mb_s * 1e6,
            command_overhead_ns: ns(self.command_overhead_us, 1e3),
        };
        Ok(Ssd::new(capacity_bytes, self.channels as usize, timing))
    }
}

fn ns(value: f64, unit_ns: f64) -> u64 {
    (value * unit_ns).round() as u64
}

fn within(field: &'static str, value: f64, least: f64, most: f64) -> Result<(), ProfileError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(ProfileError::Field { field, value, least, most })
    }
}
