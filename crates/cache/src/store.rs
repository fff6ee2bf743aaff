//! Storage of all cache policies: an arena of objects, an index over keys, doubly linked lists.

use crate::index::{Index, MAX_SLOTS, NIL, hash};

/// An object's key and its neighbours in the list that it is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) key: u64,
    /// Towards the head.
    pub(crate) prev: u32,
    /// Towards the tail; of a slot that is free, the next one that is.
    next: u32,
}

/// The objects that a policy knows, those that it only remembers among them.
#[derive(Debug)]
pub(crate) struct Store {
    index: Index,
    nodes: Vec<Node>,
    // Apart from the nodes: a hit of most policies needs neither.
    sizes: Vec<u64>,
    marks: Vec<u8>,
    free: u32,
}

impl Default for Store {
    fn default() -> Self {
        Store { index: Index::default(), nodes: Vec::new(), sizes: Vec::new(), marks: Vec::new(), free: NIL }
    }
}

impl Store {
    /// Whether no further object can be told apart: one must go, whatever its size.
    pub(crate) fn is_full(&self) -> bool {
        self.index.len() >= MAX_SLOTS - 1
    }

    /// Begins to load an object's entry of the index.
    #[inline]
    pub(crate) fn prefetch(&self, key: u64) {
        self.index.prefetch(hash(key));
    }

    /// Begins to load an object, once its entry of the index has come.
    #[inline]
    pub(crate) fn prefetch_node(&self, key: u64) {
        #[cfg(target_arch = "x86_64")]
        if let Some(slot) = self.index.guess(hash(key)) {
            // SAFETY: a prefetch is a hint; it cannot fault whatever the address.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch(self.nodes.as_ptr().wrapping_add(slot as usize).cast(), _MM_HINT_T0);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = key;
    }

    /// The slot of a key.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<u32> {
        self.index.find(hash(key), |slot| self.nodes[slot as usize].key == key)
    }

    /// Adds an object that is not there; it is in no list yet.
    pub(crate) fn add(&mut self, key: u64, size: u64, mark: u8) -> u32 {
        let node = Node { key, prev: NIL, next: NIL };
        let slot = match self.free {
            NIL => {
                self.nodes.push(node);
                self.sizes.push(size);
                self.marks.push(mark);
                (self.nodes.len() - 1) as u32
            }
            slot => {
                let at = slot as usize;
                self.free = self.nodes[at].next;
                (self.nodes[at], self.sizes[at], self.marks[at]) = (node, size, mark);
                slot
            }
        };
        self.index.insert(hash(key), slot);
        slot
    }

    /// Forgets an object that is in no list any more.
    pub(crate) fn remove(&mut self, slot: u32) {
        let node = &mut self.nodes[slot as usize];
        node.next = self.free;
        self.free = slot;
        let key = node.key;
        self.index.remove(hash(key), slot);
    }

    pub(crate) fn node(&self, slot: u32) -> Node {
        self.nodes[slot as usize]
    }

    pub(crate) fn size(&self, slot: u32) -> u64 {
        self.sizes[slot as usize]
    }

    pub(crate) fn mark(&self, slot: u32) -> u8 {
        self.marks[slot as usize]
    }

    pub(crate) fn set_mark(&mut self, slot: u32, mark: u8) {
        self.marks[slot as usize] = mark;
    }
}

/// A list through a [`Store`], new objects at the head; it knows the sum of its objects' sizes.
#[derive(Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u64,
    size: u64,
}

impl Default for List {
    fn default() -> Self {
        List { head: NIL, tail: NIL, len: 0, size: 0 }
    }
}

impl List {
    /// Objects in the list.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Sum of their sizes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The oldest.
    pub(crate) fn tail(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }

    /// Puts an object that is in no list at the head.
    #[inline]
    pub(crate) fn push(&mut self, store: &mut Store, slot: u32) {
        self.link(store, slot);
        self.len += 1;
        self.size += store.sizes[slot as usize];
    }

    /// Takes an object of this list out.
    #[inline]
    pub(crate) fn unlink(&mut self, store: &mut Store, slot: u32) {
        self.cut(store, slot);
        self.len -= 1;
        self.size -= store.sizes[slot as usize];
    }

    /// Puts an object of this list at its head.
    #[inline]
    pub(crate) fn promote(&mut self, store: &mut Store, slot: u32) {
        if self.head != slot {
            self.cut(store, slot);
            self.link(store, slot);
        }
    }

    #[inline]
    fn link(&mut self, store: &mut Store, slot: u32) {
        let node = &mut store.nodes[slot as usize];
        (node.prev, node.next) = (NIL, self.head);
        match self.head {
            NIL => self.tail = slot,
            head => store.nodes[head as usize].prev = slot,
        }
        self.head = slot;
    }

    #[inline]
    fn cut(&mut self, store: &mut Store, slot: u32) {
        let Node { prev, next, .. } = store.nodes[slot as usize];
        match prev {
            NIL => self.head = next,
            prev => store.nodes[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => store.nodes[next as usize].prev = prev,
        }
    }
}
