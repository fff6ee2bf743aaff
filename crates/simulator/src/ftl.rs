//! Flash translation layer of a die: logical to physical units, written in blocks, cleaned by garbage collection.

use serde::{Deserialize, Serialize};

/// No unit or block.
const NONE: u32 = u32::MAX;

/// Blocks that are kept erased in addition to the two open ones.
const RESERVE_BLOCKS: u32 = 2;

/// The block that garbage collection takes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victims {
    /// The one with the fewest valid units.
    #[default]
    Greedy,
    /// The one with the greatest age x (1 - u) / 2u, where u is the valid share and the age counts from the block's last write
    /// (A. Kawaguchi, S. Nishioka, H. Motoda, USENIX 1995).
    CostBenefit,
}

/// Size and rules of a translation layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FtlOptions {
    /// Units in an erase block (at least 1).
    pub block_units: u32,
    /// Flash beyond the shown units, as a share of them.
    pub spare_share: f64,
    pub victims: Victims,
    /// The block that was erased least is emptied when another one was erased so much more often; 0 for never.
    pub wear_gap: u32,
    /// Reclaim unit handles (at least 1): data of different handles are never in the same block. More than one only without
    /// wear levelling.
    pub handles: u8,
}

/// Next step of a die's garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleaning {
    /// None: enough free space.
    None,
    /// Copy one valid unit.
    Copy,
    /// Erase the block that has been emptied.
    Erase,
}

/// The translation layer of one die: units (the smallest thing that is mapped) in blocks (the smallest thing that is
/// erased). Garbage collection copies the valid units of a block ([`Victims`]) and erases the block.
#[derive(Clone, Debug)]
pub(crate) struct Ftl {
    options: FtlOptions,
    /// For each logical unit its physical one, or `NONE` if it has none.
    physical: Vec<u32>,
    /// For each physical unit its logical one, or `NONE` if it is free or out of date.
    logical: Vec<u32>,
    valid_in_block: Vec<u32>,
    /// Number of erases of each block.
    erases: Vec<u32>,
    most_erases: u32,
    /// Erases before the last block that was emptied for its wear.
    levelled_at: u64,
    /// Units written before the last write of each block.
    written_at: Vec<u64>,
    written: u64,
    erased: Vec<u32>,
    /// Open blocks, by [`Stream::place`].
    open: Vec<Frontier>,
    /// Handle of the data in each block.
    handle_of_block: Vec<u8>,
    victim: Option<Frontier>,
    /// Whether the victim is emptied for its wear.
    is_for_wear: bool,
    /// Units that were copied to make room.
    pub copied_units: u64,
    /// Blocks that were erased.
    pub erased_blocks: u64,
}

/// Which open block a unit goes to. Units of different streams are written again after different times: together they would
/// leave holes in all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    /// Writes of the host through a handle.
    Host(u8),
    /// Copies of garbage collection, of data of a handle.
    Copies(u8),
    /// Copies of wear levelling: data that are seldom written.
    Cold,
}

impl Stream {
    /// Place of its open block: two for each handle; with wear levelling there is one handle.
    fn place(self) -> usize {
        match self {
            Stream::Host(handle) => 2 * usize::from(handle),
            Stream::Copies(handle) => 2 * usize::from(handle) + 1,
            Stream::Cold => 2,
        }
    }

    fn handle(self) -> u8 {
        match self {
            Stream::Host(handle) | Stream::Copies(handle) => handle,
            Stream::Cold => 0,
        }
    }
}

/// A block and how far it is written, or read.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    block: u32,
    next: u32,
}

impl Ftl {
    /// A die of `logical_units` units (at least 1). All of it has been written once, in order.
    pub fn new(logical_units: u32, options: FtlOptions) -> Self {
        let block_units = options.block_units;
        let shown = f64::from(logical_units) * (1.0 + options.spare_share);
        let data_blocks = (shown / f64::from(block_units)).ceil().max(1.0) as u32;
        // At least one block's worth is spare, or cleaning would find only full blocks.
        let data_blocks = data_blocks.max(logical_units.div_ceil(block_units) + 1);
        // Open blocks: of each handle for the host and for copies, and with wear levelling for data that are seldom written.
        let open = if options.wear_gap > 0 { 3 } else { 2 * u32::from(options.handles.max(1)) };
        let blocks = data_blocks + RESERVE_BLOCKS + open;
        let mut ftl = Self {
            options,
            physical: vec![NONE; logical_units as usize],
            logical: vec![NONE; blocks as usize * block_units as usize],
            valid_in_block: vec![0; blocks as usize],
            erases: vec![0; blocks as usize],
            most_erases: 0,
            levelled_at: 0,
            written_at: vec![0; blocks as usize],
            written: 0,
            erased: (open..blocks).rev().collect(),
            open: (0..open).map(|block| Frontier { block, next: 0 }).collect(),
            handle_of_block: (0..blocks)
                // With wear levelling there is one handle; its third block is for data that are seldom written.
                .map(|block| if block < open && options.wear_gap == 0 { (block / 2) as u8 } else { 0 })
                .collect(),
            victim: None,
            is_for_wear: false,
            copied_units: 0,
            erased_blocks: 0,
        };
        (0..logical_units).for_each(|unit| ftl.write(unit, 0));
        ftl
    }

    /// Units that hold data when every block but those in reserve is in use, for each unit that is shown.
    #[cfg(test)]
    fn fullness(&self) -> f64 {
        let blocks = self.valid_in_block.len() as f64 - f64::from(RESERVE_BLOCKS) - 1.0;
        blocks * f64::from(self.options.block_units) / self.physical.len() as f64
    }

    /// The fewest and the most erases of a block.
    pub fn wear(&self) -> (u32, u32) {
        (self.erases.iter().copied().min().unwrap_or(0), self.most_erases)
    }

    /// What must be done before the next unit is written.
    pub fn cleaning(&self) -> Cleaning {
        match self.victim {
            Some(victim) if self.valid_in_block[victim.block as usize] > 0 => Cleaning::Copy,
            Some(_) => Cleaning::Erase,
            None if self.erased.len() >= RESERVE_BLOCKS as usize => Cleaning::None,
            // Room is short, but a block without valid units costs no copy.
            None => match self.next_victim() {
                Some((block, _)) if self.valid_in_block[block as usize] == 0 => Cleaning::Erase,
                Some(_) => Cleaning::Copy,
                None => Cleaning::None,
            },
        }
    }

    /// Does one step of [`cleaning`](Self::cleaning).
    pub fn clean(&mut self) {
        let mut victim = match self.victim {
            Some(victim) => victim,
            None => {
                let Some((block, is_for_wear)) = self.next_victim() else { return };
                self.is_for_wear = is_for_wear;
                if is_for_wear {
                    self.levelled_at = self.erased_blocks;
                }
                Frontier { block, next: 0 }
            }
        };
        if self.valid_in_block[victim.block as usize] == 0 {
            self.victim = None;
            self.erased.push(victim.block);
            self.erased_blocks += 1;
            let erases = &mut self.erases[victim.block as usize];
            *erases += 1;
            self.most_erases = self.most_erases.max(*erases);
            return;
        }
        let first = victim.block * self.options.block_units;
        while self.logical[(first + victim.next) as usize] == NONE {
            victim.next += 1;
        }
        let unit = self.logical[(first + victim.next) as usize];
        let handle = self.handle_of_block[victim.block as usize];
        self.place(if self.is_for_wear { Stream::Cold } else { Stream::Copies(handle) }, unit);
        self.copied_units += 1;
        self.victim = Some(victim);
    }

    /// Writes a logical unit to its new place, through a handle. There must be room: see [`cleaning`](Self::cleaning).
    pub fn write(&mut self, unit: u32, handle: u8) {
        self.place(Stream::Host(handle), unit);
    }

    /// Forgets the data of a logical unit.
    pub fn discard(&mut self, unit: u32) {
        let old = std::mem::replace(&mut self.physical[unit as usize], NONE);
        self.outdate(old);
    }

    /// Whether a logical unit has data here.
    pub fn is_mapped(&self, unit: u32) -> bool {
        self.physical[unit as usize] != NONE
    }

    fn outdate(&mut self, physical: u32) {
        if physical != NONE {
            self.logical[physical as usize] = NONE;
            self.valid_in_block[(physical / self.options.block_units) as usize] -= 1;
        }
    }

    fn place(&mut self, stream: Stream, unit: u32) {
        let mut frontier = self.open[stream.place()];
        if frontier.next == self.options.block_units {
            let Some(block) = self.take_erased(stream) else { return };
            frontier = Frontier { block, next: 0 };
            self.handle_of_block[block as usize] = stream.handle();
        }
        self.outdate(self.physical[unit as usize]);
        let new = frontier.block * self.options.block_units + frontier.next;
        self.physical[unit as usize] = new;
        self.logical[new as usize] = unit;
        self.valid_in_block[frontier.block as usize] += 1;
        self.written += 1;
        self.written_at[frontier.block as usize] = self.written;
        self.open[stream.place()] = Frontier { next: frontier.next + 1, ..frontier };
    }

    /// An erased block: the last one; with wear levelling the one with the most erases for cold data, otherwise with the fewest.
    fn take_erased(&mut self, stream: Stream) -> Option<u32> {
        let last = self.erased.len().checked_sub(1)?;
        let erases = |place: &usize| self.erases[self.erased[*place] as usize];
        let place = match stream {
            _ if self.options.wear_gap == 0 => last,
            Stream::Cold => (0..=last).max_by_key(erases)?,
            Stream::Host(_) | Stream::Copies(_) => (0..=last).rev().min_by_key(erases)?,
        };
        Some(self.erased.remove(place))
    }

    /// The block to clean, of those that are full, and whether it is for its wear.
    fn next_victim(&self) -> Option<(u32, bool)> {
        let is_open = |block: u32| self.open.iter().any(|frontier| frontier.block == block);
        let full = || {
            (0..self.valid_in_block.len() as u32).filter(|block| !is_open(*block) && !self.is_erased(*block))
        };
        // The data that were written longest ago, of the blocks that are too little worn. Not at each erase: until a block that was
        // emptied so is worn like the others, it is itself among the least worn, with data that are often written.
        if self.options.wear_gap > 0
            && self.erased_blocks >= self.levelled_at + u64::from(self.options.wear_gap / 4)
        {
            let unworn = full()
                .filter(|block| self.most_erases - self.erases[*block as usize] > self.options.wear_gap);
            if let Some(block) = unworn.min_by_key(|block| self.written_at[*block as usize]) {
                return Some((block, true));
            }
        }
        let fewest = full().min_by_key(|block| self.valid_in_block[*block as usize])?;
        if self.options.victims == Victims::Greedy || self.valid_in_block[fewest as usize] == 0 {
            return Some((fewest, false));
        }
        // Without benefit (all are full of valid units, or as young as can be) the one with the fewest.
        let best = full().filter(|block| self.benefit(*block).0 > 0).fold(fewest, |best, block| {
            let ((best_gain, best_cost), (gain, cost)) = (self.benefit(best), self.benefit(block));
            if gain * best_cost > best_gain * cost { block } else { best }
        });
        Some((best, false))
    }

    /// Age times free units of a block, and twice its valid ones.
    fn benefit(&self, block: u32) -> (u128, u128) {
        let valid = self.valid_in_block[block as usize];
        let age = self.written - self.written_at[block as usize];
        let free = self.options.block_units - valid;
        (u128::from(age) * u128::from(free), 2 * u128::from(valid))
    }

    /// Blocks with a valid unit are not erased, so the short list is searched only for the others.
    fn is_erased(&self, block: u32) -> bool {
        self.valid_in_block[block as usize] == 0 && self.erased.contains(&block)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn new(units: u32, block_units: u32, spare_share: f64) -> Ftl {
        Ftl::new(
            units,
            FtlOptions { block_units, spare_share, victims: Victims::Greedy, wear_gap: 0, handles: 1 },
        )
    }

    /// Writes a unit; returns how many were copied for it.
    fn write(ftl: &mut Ftl, unit: u32) -> u64 {
        let before = ftl.copied_units;
        while ftl.cleaning() != Cleaning::None {
            ftl.clean();
        }
        ftl.write(unit, 0);
        ftl.copied_units - before
    }

    fn check(ftl: &Ftl) {
        for (unit, physical) in ftl.physical.iter().enumerate().filter(|(_, physical)| **physical != NONE) {
            assert_eq!(ftl.logical[*physical as usize], unit as u32);
        }
        let valid = ftl.logical.iter().filter(|unit| **unit != NONE).count();
        assert_eq!(valid, ftl.physical.iter().filter(|physical| **physical != NONE).count());
        assert_eq!(ftl.valid_in_block.iter().map(|count| *count as usize).sum::<usize>(), valid);
        assert_eq!(ftl.erases.iter().map(|count| u64::from(*count)).sum::<u64>(), ftl.erased_blocks);
    }

    /// Units written for each one of the host, after the start has been forgotten.
    fn amplification(ftl: &mut Ftl, writes: u32, mut next: impl FnMut() -> u32) -> f64 {
        (0..writes).for_each(|_| _ = write(ftl, next()));
        let copied: u64 = (0..writes).map(|_| write(ftl, next())).sum();
        check(ftl);
        1.0 + copied as f64 / f64::from(writes)
    }

    #[test]
    fn sequential_writes_are_not_amplified() {
        let mut ftl = new(50_000, 128, 0.1);
        let mut unit = 0;
        let factor = amplification(&mut ftl, 200_000, || {
            unit = (unit + 1) % 50_000;
            unit
        });
        assert_eq!(factor, 1.0);
    }

    /// W. Bux, I. Iliadis, Performance Evaluation 67(11), 2010, and P. Desnoyers, SYSTOR 2012: with uniform writes and large
    /// blocks greedy cleaning finds a share x of a block valid, where x = exp(-(1 - x) a) and a is all units divided by
    /// the exported ones; each write costs 1 / (1 - x).
    fn theory(a: f64) -> f64 {
        let mut x = 0.5;
        for _ in 0..10_000 {
            x = (-(1.0_f64 - x) * a).exp();
        }
        1.0 / (1.0 - x)
    }

    #[test]
    fn random_writes_are_amplified_as_theory_says() {
        for spare in [0.07, 0.15, 0.28, 0.5] {
            let mut ftl = new(100_000, 256, spare);
            let expected = theory(ftl.fullness());
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let factor = amplification(&mut ftl, 600_000, || rng.random_range(0..100_000));
            assert!((factor / expected - 1.0).abs() < 0.1, "{spare}: {factor}, theory {expected}");
        }
    }

    #[test]
    fn cost_benefit_copies_less_where_a_tenth_of_the_data_gets_most_writes() {
        // Kawaguchi, Nishioka and Motoda 1995, sections 3 and 5: with locality of reference their policy does better than
        // greedy; without, as well as it.
        let amplified = |victims, hot_share: f64| {
            let options = FtlOptions { block_units: 128, spare_share: 0.1, victims, wear_gap: 0, handles: 1 };
            let mut rng = ChaCha8Rng::seed_from_u64(4);
            amplification(&mut Ftl::new(50_000, options), 600_000, || {
                if rng.random_bool(hot_share) {
                    rng.random_range(0..5_000)
                } else {
                    rng.random_range(5_000..50_000)
                }
            })
        };
        let skewed = [Victims::Greedy, Victims::CostBenefit].map(|victims| amplified(victims, 0.9));
        assert!(skewed[1] < 0.9 * skewed[0], "{skewed:?}");
        let uniform = [Victims::Greedy, Victims::CostBenefit].map(|victims| amplified(victims, 0.1));
        assert!((uniform[1] / uniform[0] - 1.0).abs() < 0.1, "{uniform:?}");
    }

    /// A tenth of the data gets nine tenths of the writes; hot data have the last handle, cold data the first.
    fn hot_and_cold(handles: u8) -> (Ftl, f64) {
        let options =
            FtlOptions { block_units: 64, spare_share: 0.1, victims: Victims::Greedy, wear_gap: 0, handles };
        let mut ftl = Ftl::new(20_000, options);
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        let (mut host, mut copied) = (0, 0);
        for i in 0..600_000 {
            let is_hot = rng.random_bool(0.9);
            let unit = if is_hot { rng.random_range(0..2_000) } else { rng.random_range(2_000..20_000) };
            let before = ftl.copied_units;
            while ftl.cleaning() != Cleaning::None {
                ftl.clean();
            }
            ftl.write(unit, if is_hot { handles - 1 } else { 0 });
            if i >= 300_000 {
                host += 1;
                copied += ftl.copied_units - before;
            }
        }
        check(&ftl);
        (ftl, 1.0 + copied as f64 / f64::from(host))
    }

    #[test]
    fn data_of_different_handles_are_in_different_blocks_and_need_fewer_copies() {
        let (_, mixed) = hot_and_cold(1);
        let (ftl, apart) = hot_and_cold(2);
        // All units were written since the start: those of a block are all hot or all cold.
        for (block, handle) in ftl.handle_of_block.iter().enumerate() {
            let units = &ftl.logical[block * 64..(block + 1) * 64];
            assert!(units.iter().all(|unit| *unit == NONE || (*unit < 2_000) == (*handle == 1)), "{block}");
        }
        assert!(apart < 0.8 * mixed, "apart {apart}, mixed {mixed}");
    }

    #[test]
    fn handles_by_hand() {
        // 4 units in blocks of 2, four blocks open: units 0 to 3 were written through handle 0, to blocks 0 and another.
        let options = FtlOptions {
            block_units: 2,
            spare_share: 0.0,
            victims: Victims::Greedy,
            wear_gap: 0,
            handles: 2,
        };
        let mut ftl = Ftl::new(4, options);
        write_through(&mut ftl, 0, 1);
        write_through(&mut ftl, 1, 0);
        write_through(&mut ftl, 2, 1);
        let block = |unit: usize| ftl.physical[unit] / 2;
        // Handle 1 has block 2 open from the start.
        assert_eq!((block(0), block(2)), (2, 2));
        assert_ne!(block(1), block(0));
        assert_eq!(ftl.handle_of_block[block(0) as usize], 1);
        assert_eq!(ftl.handle_of_block[block(1) as usize], 0);
    }

    fn write_through(ftl: &mut Ftl, unit: u32, handle: u8) {
        while ftl.cleaning() != Cleaning::None {
            ftl.clean();
        }
        ftl.write(unit, handle);
    }

    #[test]
    fn wear_levelling_bounds_the_gap_between_blocks() {
        // A twentieth of the data is written all the time: without levelling, the blocks of the rest are never erased.
        let worn = |wear_gap| {
            let options = FtlOptions {
                block_units: 64,
                spare_share: 0.1,
                victims: Victims::Greedy,
                wear_gap,
                handles: 1,
            };
            let mut ftl = Ftl::new(20_000, options);
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let factor = amplification(&mut ftl, 1_000_000, || rng.random_range(0..1_000));
            (ftl.wear(), factor)
        };
        let ((fewest, most), free) = worn(0);
        assert!(fewest == 0 && most > 100, "{fewest} to {most}");
        for gap in [10, 50] {
            let ((fewest, most), factor) = worn(gap);
            // A block that is open or erased is not emptied for its wear.
            assert!(most - fewest <= gap + 2, "{fewest} to {most}");
            assert!(factor < free + 0.5, "{factor}, without {free}");
        }
    }

    #[test]
    fn discarded_units_need_no_copies() {
        // Half of the data discarded: as if the device had so much more spare flash.
        let mut ftl = new(100_000, 256, 0.1);
        (50_000..100_000).for_each(|unit| ftl.discard(unit));
        ftl.discard(60_000);
        assert!(!ftl.is_mapped(60_000) && ftl.is_mapped(1));
        let expected = theory(ftl.fullness() * 2.0);
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let factor = amplification(&mut ftl, 600_000, || rng.random_range(0..50_000));
        assert!((factor / expected - 1.0).abs() < 0.1, "{factor}, theory {expected}");
        write(&mut ftl, 60_000);
        assert!(ftl.is_mapped(60_000));
        check(&ftl);
    }

    #[test]
    fn greedy_cleaning_without_wear_levelling_keeps_its_counts() {
        // Of the version that had neither wear levelling nor discards.
        let mut ftl = new(20_000, 128, 0.1);
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        (0..200_000).for_each(|_| _ = write(&mut ftl, rng.random_range(0..20_000)));
        assert_eq!((ftl.copied_units, ftl.erased_blocks), (801_149, 7_804));
        assert!(ftl.wear().0 > 0, "every block was used again");
    }

    #[test]
    fn the_smallest_die_works() {
        for victims in [Victims::Greedy, Victims::CostBenefit] {
            for (units, block_units) in [(1, 1), (1, 8), (9, 8), (100, 1)] {
                for (wear_gap, handles) in [(0, 1), (1, 1), (0, 5)] {
                    let options = FtlOptions { block_units, spare_share: 0.0, victims, wear_gap, handles };
                    let mut ftl = Ftl::new(units, options);
                    (0..1000)
                        .for_each(|i| write_through(&mut ftl, i % units, (i % u32::from(handles)) as u8));
                    check(&ftl);
                }
            }
        }
    }
}
