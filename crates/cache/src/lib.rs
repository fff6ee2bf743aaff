//! Cache simulators: hits and misses of LRU, ARC, SIEVE and S3-FIFO.
//!
//! Keys have 64 bits. Sizes and capacity have the same unit of the caller's choice, such as objects (size 1) or bytes. An
//! object keeps its first size until it is evicted. An object larger than the cache is never kept. A size of 0 counts as 1.
//! Requests allocate no memory.

mod arc;
pub mod index;
mod lru;
mod numbered_lru;
mod s3_fifo;
mod sieve;
mod store;

pub use arc::Arc;
pub use lru::Lru;
pub use numbered_lru::NumberedLru;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;

/// A cache.
pub trait Cache: Send {
    /// Requests an object and stores it by the policy; returns whether it was a hit.
    fn request(&mut self, key: u64, size: u64) -> bool;

    /// Prefetches the index entry of an object that is requested some requests later.
    fn prefetch(&self, key: u64);

    /// Prefetches an object that is requested soon, after [`Cache::prefetch`].
    fn prefetch_object(&self, _key: u64) {}

    /// Number of objects.
    fn len(&self) -> u64;

    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of the sizes of its objects.
    fn used(&self) -> u64;

    /// Capacity.
    fn capacity(&self) -> u64;
}

/// Eviction policy.
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

    /// An empty cache of this capacity, in the unit of sizes.
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
