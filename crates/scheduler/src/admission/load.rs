//! Committed load of disks per round.

use std::collections::VecDeque;

use super::{AdmissionError, Dropped, Placement, RoundBound, refused};

/// Committed load of a disk in a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Committed {
    /// Number of requests: one per stream that reads from the disk.
    pub requests: u32,
    /// Blocks of all requests together.
    pub blocks: u32,
}

/// Load of every disk in future rounds: the paper's load traces (Wijayaratne and Reddy, section 2.2).
#[derive(Debug, Clone)]
pub struct LoadTable {
    disks: u32,
    bound: RoundBound,
    capacity_ns: u64,
    /// Blocks that fit, by number of requests.
    most_blocks: Vec<u32>,
    first_round: u64,
    /// Round after round, the disks of each together.
    cells: VecDeque<Committed>,
}

impl LoadTable {
    /// A table of idle disks. `capacity_ns` is the part of a round for streams: its length, or their share of it.
    ///
    /// # Errors
    /// No disks.
    pub fn new(disks: u32, bound: RoundBound, capacity_ns: u64) -> Result<LoadTable, AdmissionError> {
        if disks == 0 {
            return Err(refused("disks", 0, "at least 1"));
        }
        let most_blocks = bound.most_blocks(capacity_ns);
        Ok(LoadTable { disks, bound, capacity_ns, most_blocks, first_round: 0, cells: VecDeque::new() })
    }

    /// Number of disks.
    pub fn disks(&self) -> u32 {
        self.disks
    }

    /// Part of a round for streams, in ns.
    pub fn capacity_ns(&self) -> u64 {
        self.capacity_ns
    }

    /// First round in the table.
    pub fn first_round(&self) -> u64 {
        self.first_round
    }

    /// The round after the last one with a commitment.
    pub fn end_round(&self) -> u64 {
        self.first_round + (self.cells.len() / self.disks as usize) as u64
    }

    /// Committed load of a disk in a round; none outside the table.
    pub fn committed(&self, disk: u32, round: u64) -> Committed {
        if disk >= self.disks {
            return Committed::default();
        }
        self.index(disk, round).and_then(|index| self.cells.get(index)).copied().unwrap_or_default()
    }

    /// The load of a disk in a round: its worst-case service time, in ns.
    pub fn load_ns(&self, disk: u32, round: u64) -> u64 {
        let Committed { requests, blocks } = self.committed(disk, round);
        self.bound.service_ns(requests, blocks)
    }

    /// Removes past rounds.
    pub fn forget_before(&mut self, round: u64) {
        let past = round.saturating_sub(self.first_round);
        let past = usize::try_from(past).unwrap_or(usize::MAX).saturating_mul(self.disks as usize);
        self.cells.drain(..past.min(self.cells.len()));
        self.first_round = self.first_round.max(round);
    }

    /// The load with one more request, in ns.
    pub(super) fn load_with_ns(&self, committed: Committed, blocks: u32) -> u64 {
        self.bound.service_ns(committed.requests.saturating_add(1), committed.blocks.saturating_add(blocks))
    }

    /// Blocks that fit in one more request.
    #[inline]
    pub(super) fn room_blocks(&self, committed: Committed) -> u32 {
        let most = self.most_blocks.get(committed.requests as usize + 1).copied().unwrap_or(0);
        most.saturating_sub(committed.blocks)
    }

    /// The cells of a stream that begins at a round that is still stored, from its first round on. Beyond the end of
    /// either part there are no commitments.
    pub(super) fn from(&self, round: u64) -> (&[Committed], &[Committed]) {
        let (front, back) = self.cells.as_slices();
        let skip = self.index(0, round).unwrap_or(usize::MAX).min(self.cells.len());
        match skip.checked_sub(front.len()) {
            Some(skip) => (&back[skip..], &[]),
            None => (&front[skip..], back),
        }
    }

    /// Commits the disks to a stream, without its dropped blocks.
    pub(super) fn commit(&mut self, placement: &Placement, start: u64, dropped: &[Dropped]) {
        let mut dropped = dropped.iter().peekable();
        for visit in &placement.visits {
            let round = start + u64::from(visit.round);
            let without = match dropped.peek() {
                Some(drop) if drop.round == visit.round && drop.disk == visit.disk => {
                    dropped.next().map_or(0, |drop| drop.blocks)
                }
                _ => 0,
            };
            let blocks = visit.blocks.saturating_sub(without);
            let Some(index) = self.index(visit.disk, round) else { continue };
            if blocks == 0 {
                continue;
            }
            if index >= self.cells.len() {
                let disks = self.disks as usize;
                self.cells.resize((index / disks + 1) * disks, Committed::default());
            }
            let cell = &mut self.cells[index];
            cell.requests += 1;
            cell.blocks += blocks;
        }
    }

    fn index(&self, disk: u32, round: u64) -> Option<usize> {
        let ahead = usize::try_from(round.checked_sub(self.first_round)?).ok()?;
        ahead.checked_mul(self.disks as usize)?.checked_add(disk as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{DemandTrace, Layout};

    #[test]
    fn streams_add_up_and_the_past_is_forgotten() {
        let bound = RoundBound::new(|_| 10, 100, 5, 1_000_000_000, 1, 100).unwrap();
        let mut table = LoadTable::new(2, bound, 100).unwrap();
        let trace = DemandTrace::new(vec![4, 2, 1]).unwrap();
        let placement = Placement::of_trace(&trace, Layout::Bctl, 2, 0).unwrap();
        table.commit(&placement, 3, &[]);
        table.commit(&placement, 4, &[Dropped { round: 0, disk: 0, blocks: 1 }]);
        assert_eq!(table.committed(0, 3), Committed { requests: 1, blocks: 4 });
        assert_eq!(table.committed(0, 4), Committed { requests: 1, blocks: 3 });
        assert_eq!(table.load_ns(1, 4), 15 + 2);
        assert_eq!((table.load_ns(1, 99), table.load_ns(7, 4), table.end_round()), (0, 0, 7));
        table.forget_before(4);
        assert_eq!((table.load_ns(0, 3), table.load_ns(1, 4), table.end_round()), (0, 17, 7));
        assert_eq!(table.room_blocks(table.committed(1, 4)), 100 - 30 - 2);
    }
}
