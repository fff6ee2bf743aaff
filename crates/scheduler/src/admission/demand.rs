//! Demand of a stream per round.

use super::{AdmissionError, refused};

/// Blocks per round of a stream (Wijayaratne and Reddy, section 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemandTrace {
    blocks: Vec<u32>,
    total: u64,
    peak: u32,
}

impl DemandTrace {
    /// A trace of known numbers of blocks.
    ///
    /// # Errors
    /// All rounds have 0 blocks.
    pub fn new(blocks: Vec<u32>) -> Result<DemandTrace, AdmissionError> {
        let total = blocks.iter().map(|&blocks| u64::from(blocks)).sum();
        let peak = blocks.iter().copied().max().unwrap_or(0);
        if peak == 0 {
            return Err(refused("the demand of a stream", "0 blocks", "at least one block in some round"));
        }
        Ok(DemandTrace { blocks, total, peak })
    }

    /// Compacts frame sizes: each round has the blocks that its frames need beyond the blocks of earlier rounds. Remaining
    /// frames form a last round.
    ///
    /// # Errors
    /// A round of no frames, blocks of no bytes, no frames, or more blocks in one round than 32 bits count.
    pub fn from_frames(
        frames_bits: &[u64],
        frames_per_round: usize,
        block_bytes: u64,
    ) -> Result<DemandTrace, AdmissionError> {
        if frames_per_round == 0 {
            return Err(refused("frames_per_round", 0, "at least 1"));
        }
        if block_bytes == 0 {
            return Err(refused("block_bytes", 0, "at least 1"));
        }
        let block_bits = u128::from(block_bytes) * 8;
        let (mut needed_bits, mut fetched) = (0u128, 0u128);
        let mut blocks = Vec::with_capacity(frames_bits.len().div_ceil(frames_per_round));
        for round in frames_bits.chunks(frames_per_round) {
            needed_bits += round.iter().map(|&bits| u128::from(bits)).sum::<u128>();
            let until_here = needed_bits.div_ceil(block_bits);
            let now = u32::try_from(until_here - fetched)
                .map_err(|_| refused("the demand of a round", until_here - fetched, "below 2^32 blocks"))?;
            blocks.push(now);
            fetched = until_here;
        }
        DemandTrace::new(blocks)
    }

    /// Blocks of every round.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Rounds from the first to the last.
    pub fn rounds(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks in all rounds together.
    pub fn total_blocks(&self) -> u64 {
        self.total
    }

    /// Largest number of blocks in a round, reserved in every round by peak-rate allocation (section 4.2.1).
    pub fn peak_blocks(&self) -> u32 {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Claim W-C2: the example of section 2.2. (The paper's second line subtracts 3 * 1024 * 8 bits; three blocks of 4 KB
    /// are 3 * 4 * 1024 * 8.)
    #[test]
    fn the_example_of_the_paper_gives_3_and_1() {
        let trace = DemandTrace::from_frames(&[83_888, 9_960, 10_008, 27_044], 2, 4096).unwrap();
        assert_eq!(trace.blocks(), [3, 1]);
        assert_eq!((trace.total_blocks(), trace.peak_blocks()), (4, 3));
    }

    #[test]
    fn what_makes_no_trace_is_refused() {
        assert!(DemandTrace::from_frames(&[1], 0, 4096).is_err());
        assert!(DemandTrace::from_frames(&[1], 2, 0).is_err());
        assert!(DemandTrace::from_frames(&[], 2, 4096).is_err());
        assert!(DemandTrace::from_frames(&[u64::MAX; 2], 2, 1).unwrap_err().to_string().contains("2^32"));
    }

    proptest! {
        #[test]
        fn every_round_has_what_it_shows_and_less_than_a_block_more(
            frames in prop::collection::vec(0u64..300_000, 1..200), per_round in 1usize..30, block in 1u64..70_000,
        ) {
            prop_assume!(frames.iter().any(|&bits| bits > 0));
            let trace = DemandTrace::from_frames(&frames, per_round, block).unwrap();
            let (mut needed, mut fetched) = (0, 0);
            for (round, blocks) in frames.chunks(per_round).zip(trace.blocks()) {
                needed += round.iter().sum::<u64>();
                fetched += u64::from(*blocks) * block * 8;
                prop_assert!(fetched >= needed && fetched - needed < block * 8);
            }
            prop_assert_eq!(trace.rounds(), frames.len().div_ceil(per_round));
        }
    }
}
