//! Least recently used.

use crate::Cache;
use crate::store::{List, Store};

/// Evicts the object whose last request is the longest ago.
#[derive(Debug)]
pub struct Lru {
    capacity: u64,
    store: Store,
    list: List,
}

impl Lru {
    /// An empty cache of this capacity, in the unit of the sizes that it will be given.
    pub fn new(capacity: u64) -> Self {
        Lru { capacity, store: Store::default(), list: List::default() }
    }
}

impl Cache for Lru {
    #[inline]
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(slot) = self.store.find(key) {
            self.list.promote(&mut self.store, slot);
            return true;
        }
        let size = size.max(1);
        let Some(room) = self.capacity.checked_sub(size) else { return false };
        while self.list.size() > room || self.store.is_full() {
            let Some(oldest) = self.list.tail() else { return false };
            self.list.unlink(&mut self.store, oldest);
            self.store.remove(oldest);
        }
        let slot = self.store.add(key, size, 0);
        self.list.push(&mut self.store, slot);
        false
    }

    fn prefetch(&self, key: u64) {
        self.store.prefetch(key);
    }

    fn prefetch_object(&self, key: u64) {
        self.store.prefetch_node(key);
    }

    fn len(&self) -> u64 {
        self.list.len()
    }

    fn used(&self) -> u64 {
        self.list.size()
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}
