//! Types of device profiles, and the devices they make.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Device, SECTOR_BYTES};
use crate::disk_profile::DiskProfile;
use crate::flash::FlashSsd;
use crate::flash_options::{FlashOptions, Retries, SlcOptions, WritePlacement};
use crate::ftl::Victims;
use crate::instant::Instant;
use crate::profile::ProfileError;
use crate::ssd::{FlashTiming, Ssd};
use crate::submission_queues::QueueOptions;

/// The map of a larger flash device (spare flash included) would take more than two GiB of memory.
const MOST_FLASH_BYTES: f64 = 1.2 * (1u64 << 40) as f64;

/// Maximum dies of a device; each die has its own map.
const MOST_DIES: f64 = 16_384.0;

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
    /// Controller time for each command, at the same time as that of others.
    pub command_overhead_us: f64,
    /// Dies behind the channels; without them each channel is one queue that is always ready to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashProfile>,
    /// Submission queues, one for each class of a study; only with `flash`. Without them the controller takes each command as it
    /// comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Box<QueuesProfile>>,
}

/// Submission queues of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueuesProfile {
    /// Commands that the controller works on at the same time.
    pub slots: u32,
    /// Commands that it fetches from one queue in its turn, for each unit of the queue's weight.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub burst: u32,
    /// Weights of the queues in the order of the study's classes, 1 for those that are not listed: weighted round robin. Without
    /// weights: round robin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// Queues of the urgent class, by the number of the study's class from 0: while they have commands, no other is fetched. Their
    /// weights do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urgent: Vec<u32>,
}

/// The flash behind the channels, with its translation layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashProfile {
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Size of an erase block. A device with few of them gets smaller ones, at least 32 for each die, of which only so many
    /// take time to erase as there are blocks of this size.
    pub block_kib: u32,
    /// Erasing a block.
    pub erase_ms: f64,
    /// Flash beyond the capacity, in percent of it.
    pub over_provisioning_percent: f64,
    /// What may wait to be written; a write completes when its data are there. 0: a write completes when the flash has it.
    pub write_buffer_kib: u32,
    /// Between device and host, in 10^6 bytes a second.
    pub interface_mb_s: f64,
    /// Controller time for each command, one command after another: limits their rate.
    #[serde(default, skip_serializing_if = "is_default")]
    pub controller_us: f64,
    /// The same for writes, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_write_us: Option<f64>,
    /// Data that a die programs in one operation, which no read interrupts: a multiple of 4 KiB, at most a block. A die waits until the
    /// write buffer has so much for it, or is full; a program with less takes as long. Not for writes to the SLC cache.
    #[serde(default = "unit_kib", skip_serializing_if = "is_unit_kib")]
    pub program_kib: u32,
    /// Whether a die reads the next page while the channel takes the one before from a second register (the cache reads of ONFI).
    /// Without it the die waits for the channel.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub cache_register: bool,
    /// The block that is cleaned next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub garbage_collection: Victims,
    /// Wear levelling: the block of a die with the fewest erases is emptied when another block has so many more; 0: never.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wear_gap_erases: u32,
    /// State at the start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: FlashStart,
    /// Where the data of writes go.
    #[serde(default, skip_serializing_if = "is_default")]
    pub placement: Placement,
    /// Reclaim unit handles, with `placement: fdp`; class n of a study has handle n modulo their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_unit_handles: Option<u32>,
    /// Blocks with one bit per cell, which take writes first; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<SlcProfile>,
    /// Reads that are repeated because of their errors; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_retry: Option<RetryProfile>,
}

/// Where the data of writes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// To any block.
    #[default]
    Page,
    /// To blocks of the class of the request (flexible data placement): data of different handles are never in one block, copies
    /// included.
    Fdp,
    /// To zones, each of one block on every die, which the host writes in order and resets by a discard. Only in virtual time.
    Zns,
}

/// State of a flash device at the start of a run. All of it has data, and its SLC cache is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlashStart {
    /// Written once, in order.
    #[default]
    Written,
    /// Written at random until write amplification is steady, as SNIA's performance test specification 2.0.2 defines it.
    Steady,
}

/// An SLC cache. A die moves its data to the other blocks while it has no requests. When the cache is full, writes go to the
/// other blocks directly. Its own erases take no time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcProfile {
    /// Size, in percent of the capacity; in addition to the flash beyond the capacity.
    pub capacity_percent: f64,
    /// Read time of a page.
    pub read_latency_us: f64,
    /// Program time of a page.
    pub write_latency_us: f64,
    /// Time without requests after which a die begins to move data.
    pub idle_ms: f64,
}

/// Repeated reads of a page; each takes the read time again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryProfile {
    /// Reads that are repeated, in percent.
    pub first_percent: f64,
    /// Repetitions that are followed by another, in percent; at most 10 follow each other.
    pub next_percent: f64,
}

fn unit_kib() -> u32 {
    4
}

fn is_unit_kib(value: &u32) -> bool {
    *value == unit_kib()
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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

    /// The text of a profile's file.
    ///
    /// # Errors
    /// [`ProfileError::Parse`] if a value cannot be written as YAML.
    pub fn to_yaml(&self) -> Result<String, ProfileError> {
        serde_saphyr::to_string(self).map_err(|error| ProfileError::Parse {
            file: self.description().to_owned(),
            message: error.to_string(),
        })
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

    /// Checks whether a device of `capacity_bytes` can be made, without making it.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn check_capacity(&self, capacity_bytes: u64) -> Result<(), ProfileError> {
        let (least_bytes, most_bytes) = match self {
            Self::Disk(disk) => disk.least_and_most_bytes()?,
            Self::Ssd(ssd) => (SECTOR_BYTES, ssd.most_bytes()),
            Self::Null(_) => (SECTOR_BYTES, u64::MAX / SECTOR_BYTES * SECTOR_BYTES),
        };
        let possible = (least_bytes..=most_bytes).contains(&capacity_bytes);
        if possible && capacity_bytes.is_multiple_of(SECTOR_BYTES) {
            return Ok(());
        }
        Err(ProfileError::Capacity { capacity_bytes, least_bytes, most_bytes })
    }

    /// Makes a device of `capacity_bytes`, a multiple of 512.
    ///
    /// A disk is scaled, not cut: it gets the fewest cylinders that hold the capacity, with all zones and the arm's whole
    /// stroke, so random requests cost what they cost on the real disk whatever the size.
    ///
    /// # Errors
    /// [`ProfileError::Field`] if a field of the profile is out of range, [`ProfileError::Capacity`] if the profile cannot
    /// have that capacity, [`ProfileError::Missing`] for zones.
    pub fn build(&self, capacity_bytes: u64) -> Result<Box<dyn Device>, ProfileError> {
        self.check_capacity(capacity_bytes)?;
        if let Self::Ssd(SsdProfile { flash: Some(FlashProfile { placement: Placement::Zns, .. }), .. }) =
            self
        {
            return Err(ProfileError::Missing {
                problem: "a block device takes writes at any address, and `flash.placement: zns` only at write pointers",
                remedy: "take `placement: page` or `fdp`, or a study with `testbed: simulator`",
            });
        }
        Ok(match self {
            Self::Disk(disk) => Box::new(disk.build(capacity_bytes)?),
            Self::Ssd(ssd) => match ssd.build_flash(capacity_bytes, 0)? {
                Some(flash) => Box::new(flash),
                None => Box::new(ssd.build(capacity_bytes)?),
            },
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

    /// Makes the device with its translation layer, if the profile has `flash`; `seed` is for its repeated reads.
    ///
    /// # Errors
    /// [`ProfileError::Field`], or [`ProfileError::Capacity`] above 1 TiB of flash: the map would not fit into memory.
    pub fn build_flash(&self, capacity_bytes: u64, seed: u64) -> Result<Option<FlashSsd>, ProfileError> {
        self.check()?;
        let Some(flash) = self.flash else { return Ok(None) };
        let (least_bytes, most_bytes) = (SECTOR_BYTES, self.most_bytes());
        if !(least_bytes..=most_bytes).contains(&capacity_bytes) {
            return Err(ProfileError::Capacity { capacity_bytes, least_bytes, most_bytes });
        }
        let device = FlashSsd::new(capacity_bytes, self.flash_options(&flash, capacity_bytes)?, seed);
        let mut device = self.with_queues(device);
        if flash.start == FlashStart::Steady {
            device.precondition(seed);
        }
        Ok(Some(device))
    }

    /// A device with the submission queues of the profile, if it has any.
    pub(crate) fn with_queues(&self, device: FlashSsd) -> FlashSsd {
        let Some(queues) = &self.queues else { return device };
        let QueuesProfile { slots, burst, weights, urgent } = queues.as_ref().clone();
        device.with_queues(QueueOptions { slots, burst, weights, urgent })
    }

    /// Size and times of a device of `capacity_bytes` with this flash.
    ///
    /// # Errors
    /// [`ProfileError::Field`].
    pub(crate) fn flash_options(
        &self,
        flash: &FlashProfile,
        capacity_bytes: u64,
    ) -> Result<FlashOptions, ProfileError> {
        self.check()?;
        let page_units = self.page_kib / 4;
        let dies = u64::from(self.channels) * u64::from(flash.dies_per_channel);
        let units_of_die = capacity_bytes.div_ceil(4096).div_ceil(dies);
        let block_units = u64::from(flash.block_kib / 4).min(units_of_die / 32).max(1);
        let program_unit_ns = |page_us: f64| ns(page_us / f64::from(page_units), 1e3);
        Ok(FlashOptions {
            channels: self.channels,
            dies_per_channel: flash.dies_per_channel,
            page_units,
            block_units: block_units as u32,
            spare_share: flash.over_provisioning_percent / 100.0,
            read_ns: ns(self.read_latency_us, 1e3),
            program_unit_ns: program_unit_ns(self.write_latency_us),
            // A small device has smaller blocks.
            program_units: (flash.program_kib / 4).min(block_units as u32),
            cache_register: flash.cache_register,
            erases_for_one: u64::from(flash.block_kib / 4).div_ceil(block_units),
            erase_ns: ns(flash.erase_ms, 1e6),
            transfer_unit_ns: ns(4096.0 / self.channel_mb_s, 1e3),
            interface_bytes_per_s: flash.interface_mb_s * 1e6,
            command_overhead_ns: ns(self.command_overhead_us, 1e3),
            controller_read_ns: ns(flash.controller_us, 1e3),
            controller_write_ns: ns(flash.controller_write_us.unwrap_or(flash.controller_us), 1e3),
            buffer_units: flash.write_buffer_kib / 4,
            victims: flash.garbage_collection,
            wear_gap: flash.wear_gap_erases,
            placement: match flash.placement {
                Placement::Page => WritePlacement::Page,
                Placement::Fdp => {
                    WritePlacement::Fdp { handles: flash.reclaim_unit_handles.unwrap_or(1) as u8 }
                }
                Placement::Zns => WritePlacement::Zns,
            },
            slc: flash.slc.map(|slc| SlcOptions {
                share: slc.capacity_percent / 100.0,
                read_ns: ns(slc.read_latency_us, 1e3),
                program_unit_ns: program_unit_ns(slc.write_latency_us),
                idle_ns: ns(slc.idle_ms, 1e6),
            }),
            retries: flash.read_retry.map(|retry| Retries {
                first_share: retry.first_percent / 100.0,
                next_share: retry.next_percent / 100.0,
            }),
        })
    }

    /// The largest device: limited by memory if it has a translation layer.
    fn most_bytes(&self) -> u64 {
        let Some(flash) = &self.flash else { return u64::MAX / SECTOR_BYTES * SECTOR_BYTES };
        let bytes = MOST_FLASH_BYTES / (1.0 + flash.over_provisioning_percent / 100.0);
        (bytes as u64).min(1 << 40) / SECTOR_BYTES * SECTOR_BYTES
    }

    fn check(&self) -> Result<(), ProfileError> {
        if let Some(queues) = &self.queues {
            if self.flash.is_none() {
                return Err(ProfileError::Missing {
                    problem: "`queues` without `flash`",
                    remedy: "leave `queues` out, or describe the flash",
                });
            }
            within("queues.slots", f64::from(queues.slots), 1.0, 65_536.0)?;
            within("queues.burst", f64::from(queues.burst), 1.0, 128.0)?;
            for weight in &queues.weights {
                within("queues.weights", f64::from(*weight), 1.0, 256.0)?;
            }
            for class in &queues.urgent {
                within("queues.urgent", f64::from(*class), 0.0, 65_535.0)?;
            }
        }
        if let Some(flash) = &self.flash {
            let dies = f64::from(self.channels) * f64::from(flash.dies_per_channel);
            within("channels x flash.dies_per_channel", dies, 1.0, MOST_DIES)?;
            if !self.page_kib.is_multiple_of(4) || !flash.block_kib.is_multiple_of(self.page_kib.max(1)) {
                return Err(ProfileError::Missing {
                    problem: "`page_kib` is not a multiple of 4, or `flash.block_kib` not one of `page_kib`",
                    remedy: "give pages of 4 KiB or a multiple, and blocks of whole pages",
                });
            }
            flash.check_placement()?;
            within("flash.dies_per_channel", f64::from(flash.dies_per_channel), 1.0, 1024.0)?;
            within("flash.block_kib", f64::from(flash.block_kib), 4.0, 1e6)?;
            within("flash.erase_ms", flash.erase_ms, 0.0, 1e4)?;
            within("flash.over_provisioning_percent", flash.over_provisioning_percent, 0.0, 1e3)?;
            let least_kib = if flash.write_buffer_kib == 0 { 0.0 } else { 4.0 };
            within("flash.write_buffer_kib", f64::from(flash.write_buffer_kib), least_kib, 1e8)?;
            within("flash.interface_mb_s", flash.interface_mb_s, 1e-3, 1e6)?;
            within("flash.controller_us", flash.controller_us, 0.0, 1e6)?;
            within("flash.controller_write_us", flash.controller_write_us.unwrap_or(0.0), 0.0, 1e6)?;
            flash.check_program()?;
            if let Some(slc) = &flash.slc {
                within("flash.slc.capacity_percent", slc.capacity_percent, 0.0, 100.0)?;
                within("flash.slc.read_latency_us", slc.read_latency_us, 0.0, 1e6)?;
                within("flash.slc.write_latency_us", slc.write_latency_us, 0.0, 1e6)?;
                within("flash.slc.idle_ms", slc.idle_ms, 0.0, 1e6)?;
            }
            if let Some(retry) = &flash.read_retry {
                within("flash.read_retry.first_percent", retry.first_percent, 0.0, 100.0)?;
                within("flash.read_retry.next_percent", retry.next_percent, 0.0, 100.0)?;
            }
            within("page_kib (with flash)", f64::from(self.page_kib), 4.0, 1024.0)?;
        }
        within("channels", f64::from(self.channels), 1.0, 4096.0)?;
        within("page_kib", f64::from(self.page_kib), 1.0, 65536.0)?;
        within("read_latency_us", self.read_latency_us, 0.0, 1e6)?;
        within("write_latency_us", self.write_latency_us, 0.0, 1e6)?;
        within("channel_mb_s", self.channel_mb_s, 1e-3, 1e6)?;
        within("command_overhead_us", self.command_overhead_us, 0.0, 1e6)
    }
}

impl FlashProfile {
    /// Checks what a die programs at once.
    fn check_program(&self) -> Result<(), ProfileError> {
        within("flash.program_kib", f64::from(self.program_kib), 4.0, f64::from(self.block_kib))?;
        if !self.program_kib.is_multiple_of(4) {
            return Err(ProfileError::Missing {
                problem: "`flash.program_kib` is not a multiple of 4",
                remedy: "give a multiple, such as all planes' pages",
            });
        }
        if self.program_kib > unit_kib() && self.placement != Placement::Page {
            return Err(ProfileError::Missing {
                problem: "`flash.program_kib` with `flash.placement: fdp` or `zns`, whose data would share a program",
                remedy: "leave it out, or take `placement: page`",
            });
        }
        Ok(())
    }

    /// Checks that the other fields fit the placement.
    fn check_placement(&self) -> Result<(), ProfileError> {
        let missing = |problem, remedy| Err(ProfileError::Missing { problem, remedy });
        match (self.placement, self.reclaim_unit_handles) {
            (Placement::Fdp, Some(handles)) => {
                within("flash.reclaim_unit_handles", f64::from(handles), 1.0, 128.0)?;
            }
            (Placement::Fdp, None) => {
                return missing(
                    "`flash.placement: fdp` without `flash.reclaim_unit_handles`",
                    "give their number, such as that of the classes",
                );
            }
            (_, Some(_)) => {
                return missing(
                    "`flash.reclaim_unit_handles` without `flash.placement: fdp`",
                    "leave the handles out, or take that placement",
                );
            }
            (_, None) => {}
        }
        if self.placement != Placement::Page && (self.slc.is_some() || self.wear_gap_erases > 0) {
            return missing(
                "`flash.placement: fdp` or `zns` with `flash.slc` or `flash.wear_gap_erases`, which would mix the data",
                "leave these out, or take `placement: page`",
            );
        }
        if self.placement == Placement::Zns && self.start == FlashStart::Steady {
            return missing(
                "`flash.start: steady` with `flash.placement: zns`: zones cannot be written at random",
                "leave `start` out",
            );
        }
        Ok(())
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
