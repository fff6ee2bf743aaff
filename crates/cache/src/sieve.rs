//! SIEVE: a queue in order of arrival and a hand that skips objects requested again (Zhang et al., "SIEVE is
//! simpler than LRU", NSDI 2024, algorithm 1).

use crate::Cache;
use crate::index::NIL;
use crate::store::{List, Store};

const VISITED: u8 = 1;

/// Evicts the first object under the hand without a hit since its last pass; a hit only sets a mark.
#[derive(Debug)]
pub struct Sieve {
    capacity: u64,
    store: Store,
    queue: List,
    /// Where the search for the next victim begins; [`NIL`] is the tail.
    hand: u32,
}

impl Sieve {
    /// An empty cache of this capacity, in the unit of the sizes that it will be given.
    pub fn new(capacity: u64) -> Self {
        Sieve { capacity, store: Store::default(), queue: List::default(), hand: NIL }
    }

    /// Whether there was anything to evict.
    fn evict(&mut self) -> bool {
        let Some(tail) = self.queue.tail() else { return false };
        let mut victim = if self.hand == NIL { tail } else { self.hand };
        while self.store.mark(victim) == VISITED {
            self.store.set_mark(victim, 0);
            victim = match self.store.node(victim).prev {
                NIL => tail,
                prev => prev,
            };
        }
        self.hand = self.store.node(victim).prev;
        self.queue.unlink(&mut self.store, victim);
        self.store.remove(victim);
        true
    }
}

impl Cache for Sieve {
    #[inline]
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(slot) = self.store.find(key) {
            self.store.set_mark(slot, VISITED);
            return true;
        }
        let size = size.max(1);
        let Some(room) = self.capacity.checked_sub(size) else { return false };
        while self.queue.size() > room || self.store.is_full() {
            if !self.evict() {
                return false;
            }
        }
        let slot = self.store.add(key, size, 0);
        self.queue.push(&mut self.store, slot);
        false
    }

    fn prefetch(&self, key: u64) {
        self.store.prefetch(key);
    }

    fn len(&self) -> u64 {
        self.queue.len()
    }

    fn used(&self) -> u64 {
        self.queue.size()
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}
