//! Cache simulators: which requests a cache would absorb.
//!
//! All policies are over keys of 64 bits. Sizes are in any one unit: give every object 1 and the capacity counts
//! objects, give bytes and it counts bytes. An object keeps the size that it came with until it is evicted; one that is
//! larger than the whole cache is never kept; a size of 0 counts as 1. Nothing is allocated per request.

mod arc;
pub mod index;
mod lru;
mod s3_fifo;
mod sieve;
mod store;

pub use arc::Arc;
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;

/// A cache.
pub trait Cache: Send {
    /// Asks for an object, and keeps it as the policy has it. Whether it was there.
    fn request(&mut self, key: u64, size: u64) -> bool;

    /// Says that an object will be asked for some requests later: its place in the index begins to be loaded.
    fn prefetch(&self, key: u64);

    /// Says that an object will be asked for soon; follows [`Cache::prefetch`].
    fn prefetch_object(&self, _key: u64) {}

    /// Objects that it holds.
    fn len(&self) -> u64;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of the sizes of what it holds.
    fn used(&self) -> u64;

    /// What it can hold.
    fn capacity(&self) -> u64;
}

/// What to evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// See [`Lru`].
    Lru,
    /// See [`Arc`].
    Arc,
    /// See [`Sieve`].
    Sieve,
    /// See [`S3Fifo`].
    S3Fifo,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Policy::Lru, Policy::Arc, Policy::Sieve, Policy::S3Fifo];

    /// `lru`, `arc`, `sieve` or `s3-fifo`.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "lru",
            Policy::Arc => "arc",
            Policy::Sieve => "sieve",
            Policy::S3Fifo => "s3-fifo",
        }
    }

    /// The inverse of [`Policy::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// An empty cache of this capacity, in the unit of the sizes that it will be given.
    pub fn cache(self, capacity: u64) -> Box<dyn Cache> {
        match self {
            Policy::Lru => Box::new(Lru::new(capacity)),
            Policy::Arc => Box::new(Arc::new(capacity)),
            Policy::Sieve => Box::new(Sieve::new(capacity)),
            Policy::S3Fifo => Box::new(S3Fifo::new(capacity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for policy in Policy::ALL {
            assert_eq!(Policy::from_name(policy.name()), Some(policy));
        }
        assert_eq!(Policy::from_name("LRU"), None);
    }

    #[test]
    fn sizes_are_kept_within_the_capacity() {
        for policy in Policy::ALL {
            let mut cache = policy.cache(100);
            for key in 0..1000_u64 {
                cache.request(key % 37, key % 37 * 5);
                assert!(cache.used() <= 100, "{}", policy.name());
            }
            assert!(
                !cache.request(1000, 101) && !cache.request(1000, 101),
                "{} keeps what is too large",
                policy.name()
            );
            assert!(!cache.is_empty());
        }
    }
}
