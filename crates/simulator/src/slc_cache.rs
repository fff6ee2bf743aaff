//! SLC cache of a die: units written with one bit per cell, moved to the other blocks while the die is idle.

use std::collections::{HashMap, VecDeque};

/// Units in the SLC blocks of a die, in the order of their writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlcCache {
    room: usize,
    /// Unit and number of each write, oldest first.
    written: VecDeque<(u32, u64)>,
    /// Number of the last write of each unit that is here.
    latest: HashMap<u32, u64>,
    writes: u64,
}

impl SlcCache {
    pub fn new(room_units: usize) -> Self {
        Self { room: room_units, ..Self::default() }
    }

    /// Whether there is room for a unit. Old versions of units take room until their turn comes.
    pub fn has_room(&self) -> bool {
        self.written.len() < self.room
    }

    pub fn contains(&self, unit: u32) -> bool {
        self.latest.contains_key(&unit)
    }

    pub fn write(&mut self, unit: u32) {
        self.writes += 1;
        self.written.push_back((unit, self.writes));
        self.latest.insert(unit, self.writes);
    }

    /// Forgets a unit: it was discarded, or is now elsewhere.
    pub fn forget(&mut self, unit: u32) {
        self.latest.remove(&unit);
    }

    /// The unit that was written first of those that are not out of date. Room of the others before it is free from now on.
    pub fn oldest(&mut self) -> Option<u32> {
        while let Some((unit, write)) = self.written.front().copied() {
            if self.latest.get(&unit) == Some(&write) {
                return Some(unit);
            }
            self.written.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_leave_in_order_and_old_versions_take_room_until_then() {
        let mut cache = SlcCache::new(3);
        for unit in [7, 8, 7] {
            assert!(cache.has_room());
            cache.write(unit);
        }
        assert!(!cache.has_room() && cache.contains(7));
        assert_eq!(cache.oldest(), Some(8));
        assert!(cache.has_room());
        cache.forget(8);
        assert!(!cache.contains(8));
        assert_eq!(cache.oldest(), Some(7));
        cache.forget(7);
        assert_eq!((cache.oldest(), cache.contains(7)), (None, false));
        assert!(!SlcCache::new(0).has_room());
    }
}
