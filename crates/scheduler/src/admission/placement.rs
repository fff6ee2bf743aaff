//! Placement of a stream's blocks on disks.

use super::{AdmissionError, DemandTrace, refused};

/// Layout of a stream's data over disks (Wijayaratne and Reddy, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Constant data length: block after block on disk after disk; a round's blocks are on as many disks as it has
    /// blocks, and lie together on each.
    Cdl,
    /// Block-constrained constant time length: all blocks of a round on one disk, the next round's on the next.
    Bctl,
}

/// Request of a stream at one disk in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Round of the stream, from 0.
    pub round: u32,
    /// The disk.
    pub disk: u32,
    /// Blocks, at least 1.
    pub blocks: u32,
}

/// A stream's demand, laid out over disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub(crate) visits: Vec<Visit>,
    disks: u32,
    rounds: u32,
    blocks: u64,
}

impl Placement {
    /// Blocks of each round, for trace-based admission. The stream's first block is on `first_disk`.
    ///
    /// # Errors
    /// No disks, a first disk that is none of them, or more rounds than 32 bits count.
    pub fn of_trace(
        trace: &DemandTrace,
        layout: Layout,
        disks: u32,
        first_disk: u32,
    ) -> Result<Placement, AdmissionError> {
        place(trace, layout, disks, first_disk, |blocks| blocks)
    }

    /// The peak number of blocks in each round, for peak-rate admission.
    ///
    /// # Errors
    /// Same as [`Placement::of_trace`].
    pub fn of_peak(
        trace: &DemandTrace,
        layout: Layout,
        disks: u32,
        first_disk: u32,
    ) -> Result<Placement, AdmissionError> {
        place(trace, layout, disks, first_disk, |_| trace.peak_blocks())
    }

    /// Requests in the order of the stream's rounds.
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// Number of disks.
    pub fn disks(&self) -> u32 {
        self.disks
    }

    /// Rounds of the stream.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Blocks in all rounds together.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }
}

fn place(
    trace: &DemandTrace,
    layout: Layout,
    disks: u32,
    first_disk: u32,
    reserved: impl Fn(u32) -> u32,
) -> Result<Placement, AdmissionError> {
    if disks == 0 {
        return Err(refused("disks", 0, "at least 1"));
    }
    if first_disk >= disks {
        return Err(refused("first_disk", first_disk, format!("below the number of disks, {disks}")));
    }
    let rounds = u32::try_from(trace.rounds())
        .map_err(|_| refused("the rounds of a stream", trace.rounds(), "below 2^32"))?;
    let mut visits = Vec::with_capacity(match layout {
        Layout::Bctl => trace.rounds(),
        Layout::Cdl => trace.rounds() * (disks.min(trace.peak_blocks()) as usize),
    });
    let mut disk = first_disk;
    for (round, &needed) in (0..rounds).zip(trace.blocks()) {
        let blocks = reserved(needed);
        match layout {
            Layout::Bctl => {
                if blocks > 0 {
                    visits.push(Visit { round, disk, blocks });
                }
                disk = (disk + 1) % disks;
            }
            Layout::Cdl => {
                let (each, more) = (blocks / disks, blocks % disks);
                for nth in 0..disks.min(blocks) {
                    let disk = ((u64::from(disk) + u64::from(nth)) % u64::from(disks)) as u32;
                    visits.push(Visit { round, disk, blocks: each + u32::from(nth < more) });
                }
                disk = ((u64::from(disk) + u64::from(needed)) % u64::from(disks)) as u32;
            }
        }
    }
    let blocks = visits.iter().map(|visit| u64::from(visit.blocks)).sum();
    Ok(Placement { visits, disks, rounds, blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(layout: Layout, blocks: &[u32], disks: u32, first: u32) -> Vec<(u32, u32, u32)> {
        let trace = DemandTrace::new(blocks.to_vec()).unwrap();
        let placement = Placement::of_trace(&trace, layout, disks, first).unwrap();
        placement.visits().iter().map(|visit| (visit.round, visit.disk, visit.blocks)).collect()
    }

    /// The example of section 3.2: 2 and 3 blocks on disks A, B, C and D.
    #[test]
    fn the_example_of_the_paper() {
        assert_eq!(visits(Layout::Bctl, &[2, 3], 4, 0), [(0, 0, 2), (1, 1, 3)]);
        assert_eq!(
            visits(Layout::Cdl, &[2, 3], 4, 0),
            [(0, 0, 1), (0, 1, 1), (1, 2, 1), (1, 3, 1), (1, 0, 1)]
        );
    }

    /// The example of section 4.1: 10 blocks from 8 disks are a request at each.
    #[test]
    fn ten_blocks_visit_eight_disks_once_each() {
        let found = visits(Layout::Cdl, &[10, 0, 1], 8, 6);
        assert_eq!(found.len(), 9);
        assert_eq!(&found[..3], [(0, 6, 2), (0, 7, 2), (0, 0, 1)]);
        assert_eq!(found[8], (2, 0, 1));
    }

    #[test]
    fn a_peak_reserves_the_peak_where_the_stream_is() {
        let trace = DemandTrace::new(vec![1, 3]).unwrap();
        let peak = Placement::of_peak(&trace, Layout::Cdl, 4, 0).unwrap();
        let found: Vec<_> = peak.visits().iter().map(|visit| (visit.round, visit.disk)).collect();
        assert_eq!(found, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]);
        assert!(Placement::of_trace(&trace, Layout::Cdl, 4, 4).is_err());
        assert!(Placement::of_trace(&trace, Layout::Cdl, 0, 0).is_err());
    }
}
