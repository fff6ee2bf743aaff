//! Size, times and counters of a flash device with a translation layer.

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
    /// Writing one unit: a page's program time over the units of a page, since the controller fills pages.
    pub program_unit_ns: u64,
    /// Erasing a block.
    pub erase_ns: u64,
    /// Number of erases of a die per `erase_ns`; the others take no time. 1, or more where blocks are smaller than the
    /// real ones, so that erases cost as much and are as long as on the whole device.
    pub erases_for_one: u64,
    /// A unit on the channel.
    pub transfer_unit_ns: u64,
    /// Between device and host, bytes a second in each direction.
    pub interface_bytes_per_s: f64,
    /// Controller time for each command.
    pub command_overhead_ns: u64,
    /// Units that may wait in the write buffer.
    pub buffer_units: u32,
}

/// Counts of a flash device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounts {
    /// Units of 4 KiB that were written for the host.
    pub host_units: u64,
    /// Units that garbage collection copied.
    pub copied_units: u64,
    /// Blocks that were erased.
    pub erased_blocks: u64,
}

impl FlashCounts {
    /// Units written to flash for each unit of the host; 1 if there was none.
    pub fn write_amplification(&self) -> f64 {
        if self.host_units == 0 { 1.0 } else { 1.0 + self.copied_units as f64 / self.host_units as f64 }
    }
}
