//! Fit test of a stream for a given start round.

use super::{Committed, LoadTable, Placement, Visit};

/// Dropped blocks of a stream with a statistical guarantee, chosen at admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Round of the stream, from 0.
    pub round: u32,
    /// Disk without room for the blocks.
    pub disk: u32,
    /// Number of dropped blocks.
    pub blocks: u32,
}

/// Reason for a rejected stream, for the start round with which the stream fits longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "disk {disk} exceeds its capacity in round {round} by {shortfall_ns} ns for a stream that starts in round {start_round}, the \
     best of {tried} rounds within the latency target"
)]
pub struct Refused {
    /// Start round of the stream.
    pub start_round: u64,
    /// Round without room.
    pub round: u64,
    /// Disk without room.
    pub disk: u32,
    /// Load above the capacity, in ns.
    pub shortfall_ns: u64,
    /// Number of tested start rounds.
    pub tried: u64,
}

/// Where a stream fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub visit: Visit,
    pub shortfall_ns: u64,
}

/// The highest load on any disk in any round that the stream reads from, in ns, if it begins at `start`.
///
/// At each disk and round it drops the minimum number of blocks that makes the rest fit, until `may_drop` are dropped;
/// after that, the first block that does not fit ends the test.
pub(super) fn fit(
    table: &LoadTable,
    placement: &Placement,
    start: u64,
    mut may_drop: u64,
    dropped: &mut Vec<Dropped>,
    watch_load: bool,
) -> Result<u64, Failure> {
    dropped.clear();
    let disks = table.disks() as usize;
    let (front, back) = table.from(start);
    let mut highest_ns = 0;
    for &visit in &placement.visits {
        let at = visit.round as usize * disks + visit.disk as usize;
        let committed = match front.get(at) {
            Some(cell) => *cell,
            None => back.get(at - front.len()).copied().unwrap_or_default(),
        };
        let room = table.room_blocks(committed);
        let mut blocks = visit.blocks;
        if room < blocks {
            let without = blocks - room;
            if u64::from(without) > may_drop {
                return Err(failure(table, committed, visit));
            }
            may_drop -= u64::from(without);
            dropped.push(Dropped { round: visit.round, disk: visit.disk, blocks: without });
            blocks = room;
        }
        if watch_load && blocks > 0 {
            highest_ns = highest_ns.max(table.load_with_ns(committed, blocks));
        }
    }
    Ok(highest_ns)
}

fn failure(table: &LoadTable, committed: Committed, visit: Visit) -> Failure {
    let load_ns = table.load_with_ns(committed, visit.blocks);
    Failure { visit, shortfall_ns: load_ns.saturating_sub(table.capacity_ns()) }
}
