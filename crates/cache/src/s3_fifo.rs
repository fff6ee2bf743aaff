//! S3-FIFO: a small queue, a main queue and a queue of ghosts (Yang et al., "FIFO queues are all you need for cache
//! eviction", SOSP 2023, algorithm 1).
//!
//! The small queue is a tenth of the cache, and at least one unit. There are as many ghosts as the main queue can hold.
//! A move to the main queue clears the object's count.

use crate::Cache;
use crate::store::{List, Store};

/// Two low bits of a mark: the queue. Above them: how often it was asked for since it came, up to three times.
const QUEUE: u8 = 3;
const SMALL: u8 = 0;
const MAIN: u8 = 1;
const GHOST: u8 = 2;
const ONCE: u8 = 4;
const MOST: u8 = 3 * ONCE;

/// See the head of this file.
#[derive(Debug)]
pub struct S3Fifo {
    capacity: u64,
    /// Size of the small queue above which it evicts.
    small_capacity: u64,
    store: Store,
    small: List,
    main: List,
    ghosts: List,
}

impl S3Fifo {
    /// An empty cache of this capacity, in the unit of the sizes that it will be given.
    pub fn new(capacity: u64) -> Self {
        S3Fifo {
            capacity,
            small_capacity: (capacity / 10).max(1),
            store: Store::default(),
            small: List::default(),
            main: List::default(),
            ghosts: List::default(),
        }
    }

    fn main_capacity(&self) -> u64 {
        self.capacity.saturating_sub(self.small_capacity)
    }

    /// Whether there was anything to evict or to move.
    fn evict(&mut self) -> bool {
        if self.small.len() > 0 && (self.small.size() >= self.small_capacity || self.main.len() == 0) {
            self.evict_small();
            true
        } else {
            self.evict_main()
        }
    }

    /// Moves objects requested more than once to the main queue, up to the first other object.
    fn evict_small(&mut self) {
        while let Some(tail) = self.small.tail() {
            self.small.unlink(&mut self.store, tail);
            if self.store.mark(tail) <= ONCE {
                self.remember(tail);
                return;
            }
            self.store.set_mark(tail, MAIN);
            self.main.push(&mut self.store, tail);
            if self.main.size() > self.main_capacity() {
                self.evict_main();
            }
        }
    }

    fn remember(&mut self, slot: u32) {
        let Some(room) = self.main_capacity().checked_sub(self.store.size(slot)) else {
            self.store.remove(slot);
            return;
        };
        while self.ghosts.size() > room {
            self.forget();
        }
        self.store.set_mark(slot, GHOST);
        self.ghosts.push(&mut self.store, slot);
    }

    fn forget(&mut self) {
        if let Some(oldest) = self.ghosts.tail() {
            self.ghosts.unlink(&mut self.store, oldest);
            self.store.remove(oldest);
        }
    }

    fn evict_main(&mut self) -> bool {
        while let Some(tail) = self.main.tail() {
            let mark = self.store.mark(tail);
            if mark & !QUEUE == 0 {
                self.main.unlink(&mut self.store, tail);
                self.store.remove(tail);
                return true;
            }
            self.store.set_mark(tail, mark - ONCE);
            self.main.promote(&mut self.store, tail);
        }
        false
    }
}

impl Cache for S3Fifo {
    #[inline]
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(slot) = self.store.find(key) {
            let mark = self.store.mark(slot);
            if mark & QUEUE != GHOST {
                if mark < MOST {
                    self.store.set_mark(slot, mark + ONCE);
                }
                return true;
            }
        }
        let size = size.max(1);
        let Some(room) = self.capacity.checked_sub(size) else { return false };
        while self.small.size() + self.main.size() > room {
            if !self.evict() {
                return false;
            }
        }
        // Only now: the eviction may have pushed the ghost out.
        let queue = match self.store.find(key) {
            Some(ghost) => {
                self.ghosts.unlink(&mut self.store, ghost);
                self.store.remove(ghost);
                MAIN
            }
            None => SMALL,
        };
        while self.store.is_full() && self.ghosts.len() > 0 {
            self.forget();
        }
        while self.store.is_full() {
            if !self.evict() {
                return false;
            }
        }
        let slot = self.store.add(key, size, queue);
        if queue == MAIN { &mut self.main } else { &mut self.small }.push(&mut self.store, slot);
        false
    }

    fn prefetch(&self, key: u64) {
        self.store.prefetch(key);
    }

    fn len(&self) -> u64 {
        self.small.len() + self.main.len()
    }

    fn used(&self) -> u64 {
        self.small.size() + self.main.size()
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}
