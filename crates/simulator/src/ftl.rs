//! Flash translation layer of a die: logical to physical units, written in blocks, cleaned by garbage collection.

/// No unit or block.
const NONE: u32 = u32::MAX;

/// Blocks that are kept erased in addition to the two open ones.
const RESERVE_BLOCKS: u32 = 2;

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
/// erased). Room is made by greedy garbage collection: the block with the fewest valid units is copied together and erased.
/// Copies go to a block of their own.
#[derive(Clone, Debug)]
pub(crate) struct Ftl {
    block_units: u32,
    /// For each logical unit its physical one.
    physical: Vec<u32>,
    /// For each physical unit its logical one, or `NONE` if it is free or out of date.
    logical: Vec<u32>,
    valid_in_block: Vec<u32>,
    erased: Vec<u32>,
    host: Frontier,
    copies: Frontier,
    victim: Option<Frontier>,
    /// Units that were written for the host.
    pub host_units: u64,
    /// Units that were copied to make room.
    pub copied_units: u64,
    /// Blocks that were erased.
    pub erased_blocks: u64,
}

/// A block and how far it is written, or read.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    block: u32,
    next: u32,
}

impl Ftl {
    /// A die of `logical_units` units (at least 1) in blocks of `block_units` (at least 1), with `spare_share` more than it
    /// shows. All of it has been written once, in order.
    pub fn new(logical_units: u32, block_units: u32, spare_share: f64) -> Self {
        let shown = f64::from(logical_units) * (1.0 + spare_share);
        let data_blocks = (shown / f64::from(block_units)).ceil().max(1.0) as u32;
        // At least one block's worth is spare, or cleaning would find only full blocks.
        let data_blocks = data_blocks.max(logical_units.div_ceil(block_units) + 1);
        let blocks = data_blocks + RESERVE_BLOCKS + 2;
        let mut ftl = Self {
            block_units,
            physical: vec![NONE; logical_units as usize],
            logical: vec![NONE; blocks as usize * block_units as usize],
            valid_in_block: vec![0; blocks as usize],
            erased: (2..blocks).rev().collect(),
            host: Frontier { block: 0, next: 0 },
            copies: Frontier { block: 1, next: 0 },
            victim: None,
            host_units: 0,
            copied_units: 0,
            erased_blocks: 0,
        };
        (0..logical_units).for_each(|unit| ftl.write(unit));
        ftl.host_units = 0;
        ftl
    }

    /// Units that hold data when every block but those in reserve is in use, for each unit that is shown.
    #[cfg(test)]
    fn fullness(&self) -> f64 {
        let blocks = self.valid_in_block.len() as f64 - f64::from(RESERVE_BLOCKS) - 1.0;
        blocks * f64::from(self.block_units) / self.physical.len() as f64
    }

    /// Whether something must be done before the next unit is written, and what.
    pub fn cleaning(&self) -> Cleaning {
        match self.victim {
            Some(victim) if self.valid_in_block[victim.block as usize] > 0 => Cleaning::Copy,
            Some(_) => Cleaning::Erase,
            None if self.erased.len() >= RESERVE_BLOCKS as usize => Cleaning::None,
            // Room is short, but a block without valid units costs no copy.
            None => match self.fewest_valid() {
                Some(block) if self.valid_in_block[block as usize] == 0 => Cleaning::Erase,
                Some(_) => Cleaning::Copy,
                None => Cleaning::None,
            },
        }
    }

    /// Does one step of [`cleaning`](Self::cleaning).
    pub fn clean(&mut self) {
        let Some(mut victim) =
            self.victim.or_else(|| self.fewest_valid().map(|block| Frontier { block, next: 0 }))
        else {
            return;
        };
        if self.valid_in_block[victim.block as usize] == 0 {
            self.victim = None;
            self.erased.push(victim.block);
            self.erased_blocks += 1;
            return;
        }
        let first = victim.block * self.block_units;
        while self.logical[(first + victim.next) as usize] == NONE {
            victim.next += 1;
        }
        let unit = self.logical[(first + victim.next) as usize];
        let mut frontier = self.copies;
        self.place(&mut frontier, unit);
        self.copies = frontier;
        self.copied_units += 1;
        self.victim = Some(victim);
    }

    /// Writes a logical unit to its new place. There must be room: see [`cleaning`](Self::cleaning).
    pub fn write(&mut self, unit: u32) {
        let mut frontier = self.host;
        self.place(&mut frontier, unit);
        self.host = frontier;
        self.host_units += 1;
    }

    fn place(&mut self, frontier: &mut Frontier, unit: u32) {
        if frontier.next == self.block_units {
            let Some(block) = self.erased.pop() else { return };
            *frontier = Frontier { block, next: 0 };
        }
        let old = self.physical[unit as usize];
        if old != NONE {
            self.logical[old as usize] = NONE;
            self.valid_in_block[(old / self.block_units) as usize] -= 1;
        }
        let new = frontier.block * self.block_units + frontier.next;
        self.physical[unit as usize] = new;
        self.logical[new as usize] = unit;
        self.valid_in_block[frontier.block as usize] += 1;
        frontier.next += 1;
    }

    /// The block to clean: the one with the fewest valid units of those that are full.
    fn fewest_valid(&self) -> Option<u32> {
        let open = [self.host.block, self.copies.block];
        (0..self.valid_in_block.len() as u32)
            .filter(|block| !open.contains(block) && !self.is_erased(*block))
            .min_by_key(|block| self.valid_in_block[*block as usize])
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

    fn write(ftl: &mut Ftl, unit: u32) {
        while ftl.cleaning() != Cleaning::None {
            ftl.clean();
        }
        ftl.write(unit);
    }

    fn check(ftl: &Ftl) {
        for (unit, physical) in ftl.physical.iter().enumerate() {
            assert_eq!(ftl.logical[*physical as usize], unit as u32);
        }
        let valid = ftl.logical.iter().filter(|unit| **unit != NONE).count();
        assert_eq!(valid, ftl.physical.len());
        assert_eq!(ftl.valid_in_block.iter().map(|count| *count as usize).sum::<usize>(), valid);
    }

    /// Copies for each host write, after the start has been forgotten.
    fn amplification(ftl: &mut Ftl, writes: u32, mut next: impl FnMut() -> u32) -> f64 {
        (0..writes).for_each(|_| write(ftl, next()));
        let before = (ftl.host_units, ftl.copied_units);
        (0..writes).for_each(|_| write(ftl, next()));
        check(ftl);
        1.0 + (ftl.copied_units - before.1) as f64 / (ftl.host_units - before.0) as f64
    }

    #[test]
    fn sequential_writes_are_not_amplified() {
        let mut ftl = Ftl::new(50_000, 128, 0.1);
        let mut unit = 0;
        let factor = amplification(&mut ftl, 200_000, || {
            unit = (unit + 1) % 50_000;
            unit
        });
        assert_eq!(factor, 1.0);
    }

    #[test]
    fn random_writes_are_amplified_as_theory_says() {
        // W. Bux, I. Iliadis, Performance Evaluation 67(11), 2010, and P. Desnoyers, SYSTOR 2012: with uniform writes and
        // large blocks greedy cleaning finds a share x of a block valid, where x = exp(-(1 - x) a) and a is all units
        // divided by the exported ones; each write costs 1 / (1 - x).
        for spare in [0.07, 0.15, 0.28, 0.5] {
            let mut ftl = Ftl::new(100_000, 256, spare);
            let a = ftl.fullness();
            let mut x = 0.5;
            for _ in 0..10_000 {
                x = (-(1.0_f64 - x) * a).exp();
            }
            let expected = 1.0 / (1.0 - x);
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let factor = amplification(&mut ftl, 600_000, || rng.random_range(0..100_000));
            assert!((factor / expected - 1.0).abs() < 0.1, "{spare}: {factor}, theory {expected}");
        }
    }

    #[test]
    fn the_smallest_die_works() {
        for (units, block_units) in [(1, 1), (1, 8), (9, 8), (100, 1)] {
            let mut ftl = Ftl::new(units, block_units, 0.0);
            (0..1000).for_each(|i| write(&mut ftl, i % units));
            check(&ftl);
        }
    }
}
