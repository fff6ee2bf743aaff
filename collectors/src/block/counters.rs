//! Counters of the BPF programs, per device and CPU.

use serde::Serialize;

/// Number of groups in `/sys/block/DEV/stat`: reads, writes, discards, flushes.
pub(crate) const GROUPS: usize = 4;

/// Group of a request (`op_stat_group` of the kernel).
pub(crate) fn group_of(cmd_flags: u32) -> usize {
    match cmd_flags & 0xff {
        2 => 3,
        3 => 2,
        op => (op & 1) as usize,
    }
}

/// Counters of the programs (`struct counters` of `block.h`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Bios that arrived.
    pub bios_queued: u64,
    /// Submissions of requests to the driver, including repeated ones.
    pub issued: u64,
    /// Finished requests in the kernel's statistics: reads, writes, discards, flushes.
    pub completed: [u64; GROUPS],
    /// 512-byte sectors of these requests, in the same order.
    pub sectors: [u64; GROUPS],
    /// Finished requests outside the kernel's statistics.
    pub completed_uncounted: u64,
    /// Completions of requests that were issued to the driver.
    pub driver_completions: u64,
    /// Completed requests that began before the recording.
    pub before_start: u64,
    /// Requests that completed while the recording was ended, but began after its end.
    pub after_stop: u64,
    /// Issued requests without a seen arrival: rows without `queued_ns`.
    pub arrival_unknown: u64,
    /// Completed requests without a seen arrival or issue: no rows.
    pub unseen_until_completion: u64,
    /// Completions lost because the ring buffer was full: no rows.
    pub completions_ring_full: u64,
    /// Hidden completions lost for the same reason: no rows.
    pub reuses_ring_full: u64,
    /// Requests dropped because the table was full.
    pub evicted: u64,
    /// Requests whose bio was reused before their completion was seen, by group: rows without `completed_ns`.
    pub hidden: [u64; GROUPS],
    /// Requests that the driver returned for requeueing.
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
