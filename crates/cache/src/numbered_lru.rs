//! Least recently used objects of one size that are numbered.

use std::collections::VecDeque;

/// A cache of objects of one size with numbers from 0: [`Lru`](crate::Lru) without an index of keys.
///
/// All requests are in a queue in their order; only the last one of each object counts. A hit appends to it and touches no
/// other object. Requests that no longer count are dropped when they come to the front, or are half of the queue.
#[derive(Debug)]
pub struct NumberedLru {
    most: usize,
    held: usize,
    /// By object, the serial number of its last request; 0 if it is not in the cache.
    last: Vec<u32>,
    /// Requested objects. Serial numbers rise by one up to the last request's, `serial`.
    requests: VecDeque<u32>,
    serial: u32,
}

/// Requests that may be in the queue of a small cache.
const SHORT: usize = 16;

impl NumberedLru {
    /// An empty cache of at most `most` of `objects` objects.
    pub fn new(most: u64, objects: u32) -> Self {
        NumberedLru {
            most: most.min(u64::from(objects)) as usize,
            held: 0,
            last: vec![0; objects as usize],
            requests: VecDeque::new(),
            serial: 0,
        }
    }

    /// Requests an object and stores it; returns whether it was a hit.
    ///
    /// # Panics
    /// The number is not below that of the objects.
    #[inline]
    pub fn request(&mut self, object: u32) -> bool {
        if self.requests.len() >= 2 * self.most + SHORT || self.serial == u32::MAX {
            self.drop_earlier();
        }
        self.serial += 1;
        self.requests.push_back(object);
        let last = &mut self.last[object as usize];
        let is_held = *last > 0;
        *last = self.serial;
        if !is_held {
            self.held += 1;
            if self.held > self.most {
                self.evict();
            }
        }
        is_held
    }

    /// Serial number of the first request in the queue.
    fn first(&self) -> u32 {
        self.serial + 1 - self.requests.len() as u32
    }

    /// Drops the requests of objects that were requested again since, and numbers the others from 1.
    fn drop_earlier(&mut self) {
        let (mut serial, mut kept) = (self.first(), 0);
        self.requests.retain(|object| {
            let last = &mut self.last[*object as usize];
            let counts = *last == serial;
            serial += 1;
            if counts {
                kept += 1;
                *last = kept;
            }
            counts
        });
        self.serial = kept;
    }

    /// Evicts the object with the oldest last request.
    fn evict(&mut self) {
        let mut serial = self.first();
        while let Some(object) = self.requests.pop_front() {
            let last = &mut self.last[object as usize];
            if *last == serial {
                *last = 0;
                self.held -= 1;
                return;
            }
            serial += 1;
        }
    }
}
