//! Counters of the BPF programs, per device and CPU.

use serde::Serialize;

/// The number of groups that `/sys/block/DEV/stat` tells apart: reads, writes, discards, flushes.
pub(crate) const GROUPS: usize = 4;

/// The group of a request (`op_stat_group` of the kernel).
pub(crate) fn group_of(cmd_flags: u32) -> usize {
    match cmd_flags & 0xff {
        2 => 3,
        3 => 2,
        op => (op & 1) as usize,
    }
}

/// What the programs counted (`struct counters` of `block.h`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Bios that arrived.
    pub bios_queued: u64,
    /// Requests handed to the driver, each time they were.
    pub issued: u64,
    /// Requests finished, of the kinds that the kernel's statistics count: reads, writes, discards, flushes.
    pub completed: [u64; GROUPS],
    /// 512-byte sectors of those, in the same order.
    pub sectors: [u64; GROUPS],
    /// Requests finished that the kernel's statistics leave out.
    pub completed_uncounted: u64,
    /// Completions of requests that had been issued to the driver.
    pub driver_completions: u64,
    /// Completed, but begun before the recording was.
    pub before_start: u64,
    /// Completed while the recording was being ended, but begun after its end.
    pub after_stop: u64,
    /// Issued, but their arrival was not seen: rows without `queued_ns`.
    pub arrival_unknown: u64,
    /// Completed, but neither arrival nor issue was seen: no rows.
    pub unseen_until_completion: u64,
    /// Completions lost because the ring buffer was full: no rows.
    pub completions_ring_full: u64,
    /// Hidden completions that could not be written for the same reason: no rows.
    pub reuses_ring_full: u64,
    /// Requests forgotten because the table was full.
    pub evicted: u64,
    /// Requests whose bio was used again without their completion having been seen, by group: rows without
    /// `completed_ns`.
    pub hidden: [u64; GROUPS],
    /// Requests that the driver gave back.
    pub requeued: u64,
    /// Bios merged behind a request.
    pub bio_back_merges: u64,
    /// Bios merged in front of a request.
    pub bio_front_merges: u64,
    /// Requests merged into their neighbour.
    pub request_merges: u64,
    /// Bios split.
    pub splits: u64,
}

impl Counters {
    /// All requests finished.
    pub fn completions(&self) -> u64 {
        self.completed.iter().sum::<u64>() + self.completed_uncounted
    }

    /// All merges, as the kernel counts them.
    pub fn merges(&self) -> u64 {
        self.bio_back_merges + self.bio_front_merges + self.request_merges
    }

    pub(crate) fn combine(&self, other: &Self, with: impl Fn(u64, u64) -> u64) -> Self {
        let groups = |a: &[u64; GROUPS], b: &[u64; GROUPS]| std::array::from_fn(|at| with(a[at], b[at]));
        Counters {
            bios_queued: with(self.bios_queued, other.bios_queued),
            issued: with(self.issued, other.issued),
            completed: groups(&self.completed, &other.completed),
            sectors: groups(&self.sectors, &other.sectors),
            completed_uncounted: with(self.completed_uncounted, other.completed_uncounted),
            driver_completions: with(self.driver_completions, other.driver_completions),
            before_start: with(self.before_start, other.before_start),
            after_stop: with(self.after_stop, other.after_stop),
            arrival_unknown: with(self.arrival_unknown, other.arrival_unknown),
            unseen_until_completion: with(self.unseen_until_completion, other.unseen_until_completion),
            completions_ring_full: with(self.completions_ring_full, other.completions_ring_full),
            reuses_ring_full: with(self.reuses_ring_full, other.reuses_ring_full),
            evicted: with(self.evicted, other.evicted),
            hidden: groups(&self.hidden, &other.hidden),
            requeued: with(self.requeued, other.requeued),
            bio_back_merges: with(self.bio_back_merges, other.bio_back_merges),
            bio_front_merges: with(self.bio_front_merges, other.bio_front_merges),
            request_merges: with(self.request_merges, other.request_merges),
            splits: with(self.splits, other.splits),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.combine(other, u64::wrapping_add)
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        self.combine(earlier, u64::wrapping_sub)
    }
}
