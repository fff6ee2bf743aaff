//! ARC: recency and frequency, weighed by what would have been hits (Megiddo and Modha, "ARC: a self-tuning, low
//! overhead replacement cache", FAST 2003, figure 4).
//!
//! `t1` holds objects accessed once, `t2` objects accessed again; `b1` and `b2` hold the keys of evicted objects (ghosts). The
//! target `p` of `t1` is a real number, as in the paper. The paper knows pages of one size. With sizes, "full" reads "has
//! no room for this object", and a step by 1 is one by the object's size; with sizes of 1 this is the paper's algorithm.

use crate::Cache;
use crate::store::{List, Store};

const T1: u8 = 0;
const T2: u8 = 1;
const B1: u8 = 2;
const B2: u8 = 3;

/// See the head of this file.
#[derive(Debug)]
pub struct Arc {
    capacity: u64,
    store: Store,
    lists: [List; 4],
    /// Target size of `t1`.
    p: f64,
}

impl Arc {
    /// An empty cache of this capacity, in the unit of the sizes that it will be given.
    pub fn new(capacity: u64) -> Self {
        // So that the sum of all four lists can be told.
        let capacity = capacity.min(1 << 61);
        Arc { capacity, store: Store::default(), lists: Default::default(), p: 0.0 }
    }

    fn size(&self, list: u8) -> u64 {
        self.lists[usize::from(list)].size()
    }

    fn shift(&mut self, slot: u32, to: u8) {
        let from = usize::from(self.store.mark(slot));
        self.lists[from].unlink(&mut self.store, slot);
        self.store.set_mark(slot, to);
        self.lists[usize::from(to)].push(&mut self.store, slot);
    }

    /// Forgets the oldest of a list; whether there was any.
    fn drop_oldest(&mut self, list: u8) -> bool {
        let list = &mut self.lists[usize::from(list)];
        let Some(oldest) = list.tail() else { return false };
        list.unlink(&mut self.store, oldest);
        self.store.remove(oldest);
        true
    }

    /// The paper's REPLACE, until there is `room`: the oldest of `t1` or `t2` becomes a ghost.
    fn replace(&mut self, room: u64, asked_in_b2: bool) {
        while self.size(T1) + self.size(T2) > room {
            let recent = self.size(T1) as f64;
            let from_t1 = recent > 0.0 && (recent > self.p || asked_in_b2 && recent == self.p);
            let (from, ghost) =
                if from_t1 || self.lists[usize::from(T2)].len() == 0 { (T1, B1) } else { (T2, B2) };
            let Some(oldest) = self.lists[usize::from(from)].tail() else { return };
            self.shift(oldest, ghost);
        }
    }

    /// A request for a ghost.
    fn ghost_hit(&mut self, slot: u32, list: u8) {
        let size = self.store.size(slot);
        let (b1, b2) = (self.size(B1) as f64, self.size(B2) as f64);
        if list == B1 {
            self.p = (self.p + (b2 / b1).max(1.0) * size as f64).min(self.capacity as f64);
        } else {
            self.p = (self.p - (b1 / b2).max(1.0) * size as f64).max(0.0);
        }
        self.replace(self.capacity - size, list == B2);
        self.shift(slot, T2);
    }

    /// Makes room for an object of which nothing is known.
    fn admit(&mut self, room: u64) {
        // Where there are no ghosts, `t1` fills the cache: its oldest goes without a trace.
        while self.size(T1) + self.size(B1) > room && (self.drop_oldest(B1) || self.drop_oldest(T1)) {}
        let known = |arc: &Self| [T1, T2, B1, B2].map(|list| arc.size(list)).iter().sum::<u64>();
        while known(self) > self.capacity + room && self.drop_oldest(B2) {}
        self.replace(room, false);
    }
}

impl Cache for Arc {
    #[inline]
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(slot) = self.store.find(key) {
            let list = self.store.mark(slot);
            if list == B1 || list == B2 {
                self.ghost_hit(slot, list);
                return false;
            }
            if list == T2 {
                self.lists[usize::from(T2)].promote(&mut self.store, slot);
            } else {
                self.shift(slot, T2);
            }
            return true;
        }
        let size = size.max(1);
        let Some(room) = self.capacity.checked_sub(size) else { return false };
        self.admit(room);
        if self.store.is_full() && ![B1, B2, T1, T2].into_iter().any(|list| self.drop_oldest(list)) {
            return false;
        }
        let slot = self.store.add(key, size, T1);
        self.lists[usize::from(T1)].push(&mut self.store, slot);
        false
    }

    fn prefetch(&self, key: u64) {
        self.store.prefetch(key);
    }

    fn len(&self) -> u64 {
        self.lists[usize::from(T1)].len() + self.lists[usize::from(T2)].len()
    }

    fn used(&self) -> u64 {
        self.size(T1) + self.size(T2)
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}
