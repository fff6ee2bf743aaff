//! Working set and reuse distances, exactly, in one pass (Mattson et al. 1970; in the way of Bennett and Kruskal 1975).
//!
//! The reuse distance (LRU stack distance) of an access is the number of distinct units that were accessed since the last
//! access to the same unit: an LRU cache of that many units or fewer misses it. Every unit marks the time of its last
//! access in a string of bits; the distance is the number of marks behind its own. Marks are counted by a Fenwick tree
//! over words of 512 bits, an access costs O(log n) and few cache lines. When the string is full the marks are compacted:
//! memory is bounded by distinct units (some 30 bytes each), not by the length of the trace.

use weir_cache::index::{Index, MAX_SLOTS, hash};

use super::histogram::Histogram;

/// Bits of the string that the tree counts together.
const GROUP_BITS: usize = 512;
const WORDS: usize = GROUP_BITS / 64;
/// Shortest string.
const SHORTEST: usize = 1 << 14;

/// Time of the last access to each unit.
#[derive(Debug)]
pub struct Reuse {
    index: Index,
    /// By slot: the unit's key, and the place of its mark.
    keys: Vec<u64>,
    marks: Vec<u64>,
    /// By position: the slot of its last mark.
    slots: Vec<u32>,
    bits: Vec<u64>,
    /// Marks in groups, as a Fenwick tree; entry 0 is not used.
    tree: Vec<u32>,
    /// Position of the next mark.
    next: usize,
    distances: Histogram,
    accesses: u64,
    untracked: u64,
}

impl Default for Reuse {
    fn default() -> Self {
        let mut reuse = Reuse {
            index: Index::default(),
            keys: Vec::new(),
            marks: Vec::new(),
            slots: Vec::new(),
            bits: Vec::new(),
            tree: Vec::new(),
            next: 0,
            distances: Histogram::default(),
            accesses: 0,
            untracked: 0,
        };
        reuse.grow(SHORTEST);
        reuse
    }
}

impl Reuse {
    /// Records an access to a unit. Returns its reuse distance, or `None` at its first access.
    pub fn access(&mut self, key: u64) -> Option<u64> {
        self.accesses += 1;
        if self.next == self.slots.len() {
            self.compact();
        }
        let hashed = hash(key);
        let found = self.index.find(hashed, |slot| self.keys[slot as usize] == key);
        let (slot, distance) = match found {
            Some(slot) => {
                let place = self.marks[slot as usize] as usize;
                let distance = self.keys.len() as u64 - self.marks_to(place);
                self.clear(place);
                self.distances.add(distance);
                (slot, Some(distance))
            }
            None if self.keys.len() >= MAX_SLOTS - 1 => {
                self.untracked += 1;
                return None;
            }
            None => {
                let slot = self.keys.len() as u32;
                self.index.insert(hashed, slot);
                self.keys.push(key);
                self.marks.push(0);
                (slot, None)
            }
        };
        self.set(self.next, slot);
        self.next += 1;
        distance
    }

    /// Marks at a place and before it.
    fn marks_to(&self, place: usize) -> u64 {
        let group = place / GROUP_BITS;
        let mut count = 0_u64;
        let mut at = group;
        while at > 0 {
            count += u64::from(self.tree[at]);
            at &= at - 1;
        }
        let last = place / 64;
        for word in &self.bits[group * WORDS..last] {
            count += u64::from(word.count_ones());
        }
        count + u64::from((self.bits[last] << (63 - place % 64)).count_ones())
    }

    fn set(&mut self, place: usize, slot: u32) {
        self.bits[place / 64] |= 1 << (place % 64);
        self.slots[place] = slot;
        self.marks[slot as usize] = place as u64;
        let mut at = place / GROUP_BITS + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn clear(&mut self, place: usize) {
        self.bits[place / 64] &= !(1 << (place % 64));
        let mut at = place / GROUP_BITS + 1;
        while at < self.tree.len() {
            self.tree[at] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Moves the marks together, in a string that has room for as many again.
    fn compact(&mut self) {
        let mut marked = 0;
        for word in 0..self.bits.len() {
            let mut bits = self.bits[word];
            while bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                // Never beyond the unread part.
                self.slots[marked] = self.slots[place];
                self.marks[self.slots[place] as usize] = marked as u64;
                marked += 1;
            }
        }
        self.grow((marked * 2).max(SHORTEST));
        self.next = marked;
        self.bits.fill(0);
        self.bits[..marked / 64].fill(u64::MAX);
        if marked % 64 > 0 {
            self.bits[marked / 64] = (1 << (marked % 64)) - 1;
        }
        self.tree.fill(0);
        for group in 1..self.tree.len() {
            let first = (group - 1) * WORDS;
            let own: u32 = self.bits[first..first + WORDS].iter().map(|word| word.count_ones()).sum();
            self.tree[group] += own;
            let above = group + (group & group.wrapping_neg());
            if above < self.tree.len() {
                self.tree[above] += self.tree[group];
            }
        }
    }

    fn grow(&mut self, places: usize) {
        let groups = places.div_ceil(GROUP_BITS);
        self.slots.resize(groups * GROUP_BITS, 0);
        self.bits.resize(groups * WORDS, 0);
        self.tree.resize(groups + 1, 0);
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Distinct units so far.
    pub fn distinct(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Accesses to units beyond the limit of 2^31 distinct units.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Distances of all accesses but the first ones.
    pub fn distances(&self) -> &Histogram {
        &self.distances
    }

    /// Miss ratio of an LRU cache of a size in units, exact for `n * 2^k` with `n` up to 256.
    pub fn miss_ratio(&self, units: u64) -> f64 {
        1.0 - self.distances.below(units) as f64 / self.accesses.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use weir_cache::{Cache, Lru};

    #[test]
    fn distances_of_a_short_string() {
        let mut reuse = Reuse::default();
        let found: Vec<_> = b"abcabba".iter().map(|key| reuse.access(u64::from(*key))).collect();
        assert_eq!(found, [None, None, None, Some(2), Some(2), Some(0), Some(1)]);
        assert_eq!((reuse.distinct(), reuse.accesses()), (3, 7));
        assert!((reuse.miss_ratio(2) - 5.0 / 7.0).abs() < 1e-12);
    }

    /// Many more accesses than the string is long, to compact it many times.
    #[test]
    fn the_curve_is_that_of_lru_caches() {
        let mut state = 7_u64;
        let keys: Vec<u64> = (0..200_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let uniform = (state >> 40) as f64 / (1 << 24) as f64;
                (uniform * uniform * uniform * 30_000.0) as u64
            })
            .collect();
        let mut reuse = Reuse::default();
        keys.iter().for_each(|key| _ = reuse.access(*key));
        for capacity in [1, 2, 64, 1000, 1024, 8192, 20_480, 1 << 20] {
            let mut cache = Lru::new(capacity);
            let misses = keys.iter().filter(|key| !cache.request(**key, 1)).count();
            let ratio = misses as f64 / keys.len() as f64;
            assert!((reuse.miss_ratio(capacity) - ratio).abs() < 1e-12, "{capacity}");
        }
    }

    proptest! {
        #[test]
        fn distances_are_those_of_a_stack(keys in prop::collection::vec(0_u64..50, 0..500)) {
            let mut reuse = Reuse::default();
            let mut stack: Vec<u64> = Vec::new();
            for key in keys {
                let place = stack.iter().rev().position(|other| *other == key);
                prop_assert_eq!(reuse.access(key), place.map(|place| place as u64));
                stack.retain(|other| *other != key);
                stack.push(key);
            }
        }
    }
}
