//! Size, times and counters of a flash device with a translation layer.

use crate::device::Op;
use crate::ftl::Victims;
use crate::steady::Preconditioning;

/// Bytes of a unit, the smallest thing that is mapped and written.
pub const UNIT_BYTES: u64 = 4096;

/// Size and times of a flash device with a translation layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashOptions {
    /// Channels, each with the same number of dies.
    pub channels: u32,
    /// Dies on a channel.
    pub dies_per_channel: u32,
    /// Units of 4 KiB in a page, which a die reads in one operation.
    pub page_units: u32,
    /// Units of 4 KiB in an erase block.
    pub block_units: u32,
    /// Flash beyond the capacity, as a share of it.
    pub spare_share: f64,
    /// Reading a page into the die's register.
    pub read_ns: u64,
    /// Whether a die reads the next page while the channel takes the one before from a second register.
    pub cache_register: bool,
    /// Writing one unit: a page's program time over the units of a page, since the controller fills pages.
    pub program_unit_ns: u64,
    /// Units that a die programs in one operation, which no read interrupts; at most `block_units`. A die waits until the buffer
    /// has so many for it, or is full; a program with fewer takes as long.
    pub program_units: u32,
    /// Erasing a block.
    pub erase_ns: u64,
    /// Number of erases of a die per `erase_ns`; the others take no time. 1, or more where blocks are smaller than the
    /// real ones, so that erases cost as much and are as long as on the whole device.
    pub erases_for_one: u64,
    /// A unit on the channel.
    pub transfer_unit_ns: u64,
    /// Between device and host, bytes a second in each direction.
    pub interface_bytes_per_s: f64,
    /// Controller time for each command, at the same time as that of others.
    pub command_overhead_ns: u64,
    /// Controller time for each command, one command after another: of reads, and of writes.
    pub controller_read_ns: u64,
    /// See `controller_read_ns`.
    pub controller_write_ns: u64,
    /// Units that may wait in the write buffer; 0: writes complete when the flash has them.
    pub buffer_units: u32,
    /// Choice of the block to clean.
    pub victims: Victims,
    /// Static wear levelling: the block with the fewest erases is emptied when another block has so many more; 0: never.
    pub wear_gap: u32,
    /// Where writes go.
    pub placement: WritePlacement,
    /// Cache of blocks with one bit per cell.
    pub slc: Option<SlcOptions>,
    /// Repeated reads of a page.
    pub retries: Option<Retries>,
}

impl FlashOptions {
    /// Time of the longest operation that writes for the host.
    pub(crate) fn program_ns(&self) -> u64 {
        u64::from(self.program_units.max(1)) * self.program_unit_ns
    }

    /// Controller time for each command of an operation, one command after another.
    pub(crate) fn controller_ns(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.controller_read_ns,
            Op::Write => self.controller_write_ns,
        }
    }

    /// Controller time for a command that is alone.
    pub(crate) fn lone_command_ns(&self, op: Op) -> u64 {
        self.command_overhead_ns + self.controller_ns(op)
    }

    /// Whether writes complete before the flash has them.
    pub(crate) fn is_buffered(&self) -> bool {
        self.buffer_units > 0
    }
}

/// Where the data of writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePlacement {
    /// To any block, one after another.
    Page,
    /// To blocks of the class of the request: flexible data placement (NVMe technical proposal 4146) with so many reclaim unit
    /// handles (at least 1), persistently isolated: also copies stay with their handle. Class n has handle n modulo their number.
    Fdp {
        /// Reclaim unit handles.
        handles: u8,
    },
    /// To zones (NVMe zoned namespace command set), each of one block on every die: the host writes them in order and resets
    /// them. The device neither maps nor copies.
    Zns,
}

/// Blocks with one bit per cell, which take writes first. While a die is idle, the data are moved to the other blocks. When
/// they are full, writes go to the other blocks directly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlcOptions {
    /// Size, as a share of the capacity.
    pub share: f64,
    /// Reading a page.
    pub read_ns: u64,
    /// Writing one unit.
    pub program_unit_ns: u64,
    /// Time without requests after which a die begins to move data.
    pub idle_ns: u64,
}

/// How often a page must be read again because its errors cannot be corrected. Each time takes `read_ns` more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// Share of reads of a page that are repeated.
    pub first_share: f64,
    /// Share of repetitions that are followed by another.
    pub next_share: f64,
}

/// Counts of a flash device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounts {
    /// Units of 4 KiB that were written for the host.
    pub host_units: u64,
    /// Units that were moved from the SLC cache.
    pub folded_units: u64,
    /// Units that garbage collection and wear levelling copied.
    pub copied_units: u64,
    /// Blocks that were erased.
    pub erased_blocks: u64,
    /// Erases of the block with the most, and of the one with the fewest.
    pub most_erases: u32,
    /// See `most_erases`.
    pub fewest_erases: u32,
    /// Repeated reads of pages.
    pub retries: u64,
    /// How the device was brought to its state at the start, if it was written at random.
    pub preconditioning: Option<Preconditioning>,
}

impl FlashCounts {
    /// Units written to flash for each unit of the host; 1 if there was none.
    pub fn write_amplification(&self) -> f64 {
        let more = self.copied_units + self.folded_units;
        if self.host_units == 0 { 1.0 } else { 1.0 + more as f64 / self.host_units as f64 }
    }
}
