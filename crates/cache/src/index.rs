//! A hash index from keys to slots of an arena: open addressing, linear probing, deletion by shifting back.
//!
//! An entry is the upper half of 64 bits of hash and a slot, so that probing touches the table only and the arena is
//! asked once, for the key that is almost surely the one. The home of an entry is the top of its hash: it can be moved
//! and the table can grow without the keys.

/// No slot.
pub const NIL: u32 = u32::MAX;
/// Slots that an index can tell apart at a load of one half.
pub const MAX_SLOTS: usize = 1 << 31;

const EMPTY: u64 = u64::MAX;
const SMALLEST: usize = 16;

/// See the head of this file.
#[derive(Debug)]
pub struct Index {
    entries: Vec<u64>,
    /// 32 minus the number of bits of a position.
    shift: u32,
    len: usize,
}

/// 32 well mixed bits of a key: the two halves of a product of 128 bits, folded.
#[inline]
pub fn hash(key: u64) -> u32 {
    let product = u128::from(key ^ 0x2d35_8dcc_aa6c_78a5) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
    ((product as u64 ^ (product >> 64) as u64) >> 32) as u32
}

impl Default for Index {
    fn default() -> Self {
        Index { entries: vec![EMPTY; SMALLEST], shift: 32 - SMALLEST.trailing_zeros(), len: 0 }
    }
}

impl Index {
    /// Whether it holds no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keys in the index.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    /// Begins to load what [`Index::find`] will ask for.
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint; it cannot fault whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch(self.entries.as_ptr().wrapping_add(self.home(hash)).cast(), _MM_HINT_T0);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = hash;
    }

    /// The slot of the first entry of this hash: most likely, not surely, the key's.
    #[inline]
    pub fn guess(&self, hash: u32) -> Option<u32> {
        let entry = self.entries[self.home(hash)];
        (entry != EMPTY && (entry >> 32) as u32 == hash).then_some(entry as u32)
    }

    /// The slot of a key; `is_key` says whether a slot holds it.
    #[inline]
    pub fn find(&self, hash: u32, is_key: impl Fn(u32) -> bool) -> Option<u32> {
        let entries = self.entries.as_slice();
        let mask = entries.len() - 1;
        let mut at = self.home(hash);
        loop {
            let entry = entries[at & mask];
            if entry == EMPTY {
                return None;
            }
            if (entry >> 32) as u32 == hash && is_key(entry as u32) {
                return Some(entry as u32);
            }
            at += 1;
        }
    }

    /// Adds a key that is not there, at a slot below [`MAX_SLOTS`].
    pub fn insert(&mut self, hash: u32, slot: u32) {
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow();
        }
        self.put(u64::from(hash) << 32 | u64::from(slot));
        self.len += 1;
    }

    fn put(&mut self, entry: u64) {
        let mask = self.entries.len() - 1;
        let mut at = self.home((entry >> 32) as u32);
        while self.entries[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.entries[at] = entry;
    }

    fn grow(&mut self) {
        let doubled = vec![EMPTY; self.entries.len() * 2];
        self.shift -= 1;
        for entry in std::mem::replace(&mut self.entries, doubled) {
            if entry != EMPTY {
                self.put(entry);
            }
        }
    }

    /// Takes out the key at a slot, which is there.
    pub fn remove(&mut self, hash: u32, slot: u32) {
        let mask = self.entries.len() - 1;
        let entry = u64::from(hash) << 32 | u64::from(slot);
        let mut hole = self.home(hash);
        while self.entries[hole] != entry {
            if self.entries[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let entry = self.entries[next];
            if entry == EMPTY {
                break;
            }
            let home = self.home((entry >> 32) as u32);
            // It may move unless that would put it before its home.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.entries[hole] = entry;
                hole = next;
            }
        }
        self.entries[hole] = EMPTY;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few distinct hashes, so that entries collide, wrap round the end and are shifted back.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u64..60, any::<bool>()), 0..400), spread in 0_u32..32) {
            let hash_of = |key: u64| (key as u32).wrapping_mul(0x9e37_79b9) | u32::MAX.checked_shl(spread).unwrap_or(0);
            let mut index = Index::default();
            let mut keys: Vec<u64> = Vec::new();
            let mut model: HashMap<u64, u32> = HashMap::new();
            for (key, add) in steps {
                let found = index.find(hash_of(key), |slot| keys[slot as usize] == key);
                prop_assert_eq!(found, model.get(&key).copied());
                match (add, found) {
                    (true, None) => {
                        index.insert(hash_of(key), keys.len() as u32);
                        model.insert(key, keys.len() as u32);
                        keys.push(key);
                    }
                    (false, Some(slot)) => {
                        index.remove(hash_of(key), slot);
                        model.remove(&key);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), model.len());
            }
        }
    }
}
