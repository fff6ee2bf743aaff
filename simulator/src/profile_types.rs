//! What a device profile file says, and the devices it makes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Device, SECTOR_BYTES};
use crate::disk_profile::DiskProfile;
use crate::instant::Instant;
use crate::profile::ProfileError;
use crate::ssd::{FlashTiming, Ssd};

/// A device profile: one YAML file in `profiles/`, or one of your own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Profile {
    /// A disk with one arm.
    Disk(Box<DiskProfile>),
    /// A flash device.
    Ssd(SsdProfile),
    /// No service time.
    Null(NullProfile),
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

    /// Checks every field, and that they fit together.
    ///
    /// # Errors
    /// [`ProfileError`] names the field and the remedy.
    pub fn check(&self) -> Result<(), ProfileError> {
        match self {
            Self::Disk(disk) => disk.check(),
            Self::Ssd(ssd) => ssd.check(),
            Self::Null(_) => Ok(()),
        }
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

impl SsdProfile {
    /// Makes the device.
    ///
    /// # Errors
    /// [`ProfileError::Field`].
    pub fn build(&self, capacity_bytes: u64) -> Result<Ssd, ProfileError> {
        self.check()?;
        let timing = FlashTiming {
            page_bytes: u64::from(self.page_kib) * 1024,
            read_latency_ns: ns(self.read_latency_us, 1e3),
            write_latency_ns: ns(self.write_latency_us, 1e3),
            channel_bytes_per_s: self.channel_mb_s * 1e6,
            command_overhead_ns: ns(self.command_overhead_us, 1e3),
        };
        Ok(Ssd::new(capacity_bytes, self.channels as usize, timing))
    }

    fn check(&self) -> Result<(), ProfileError> {
        within("channels", f64::from(self.channels), 1.0, 4096.0)?;
        within("page_kib", f64::from(self.page_kib), 1.0, 65536.0)?;
        within("read_latency_us", self.read_latency_us, 0.0, 1e6)?;
        within("write_latency_us", self.write_latency_us, 0.0, 1e6)?;
        within("channel_mb_s", self.channel_mb_s, 1e-3, 1e6)?;
        within("command_overhead_us", self.command_overhead_us, 0.0, 1e6)
    }
}

pub(crate) fn ns(value: f64, unit_ns: f64) -> u64 {
    (value * unit_ns).round() as u64
}

pub(crate) fn within(field: &'static str, value: f64, least: f64, most: f64) -> Result<(), ProfileError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(ProfileError::Field { field, value, least, most })
    }
}
