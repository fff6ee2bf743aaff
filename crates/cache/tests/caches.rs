//! The caches against plain ones, written from the papers' pseudo-code with queues that are searched from end to end.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;
use weir_cache::{NumberedLru, Policy};

/// A cache that takes its time.
trait Plain {
    fn request(&mut self, key: u64, size: u64) -> bool;
}

fn sum(queue: &VecDeque<(u64, u64)>) -> u64 {
    queue.iter().map(|(_, size)| size).sum()
}

/// Takes a key out of a queue whose newest is at the front.
fn take(queue: &mut VecDeque<(u64, u64)>, key: u64) -> Option<(u64, u64)> {
    let at = queue.iter().position(|(other, _)| *other == key)?;
    queue.remove(at)
}

struct PlainLru {
    capacity: u64,
    queue: VecDeque<(u64, u64)>,
}

impl Plain for PlainLru {
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(found) = take(&mut self.queue, key) {
            self.queue.push_front(found);
            return true;
        }
        if size > self.capacity {
            return false;
        }
        while sum(&self.queue) + size > self.capacity {
            self.queue.pop_back();
        }
        self.queue.push_front((key, size));
        false
    }
}

/// Algorithm 1 of the SIEVE paper; the hand is a place in the queue, counted from the head.
struct PlainSieve {
    capacity: u64,
    queue: VecDeque<(u64, u64)>,
    visited: HashMap<u64, bool>,
    hand: Option<u64>,
}

impl PlainSieve {
    fn evict(&mut self) {
        let start = self.hand.and_then(|hand| self.queue.iter().position(|(key, _)| *key == hand));
        let mut at = start.unwrap_or(self.queue.len() - 1);
        while self.visited[&self.queue[at].0] {
            self.visited.insert(self.queue[at].0, false);
            at = if at == 0 { self.queue.len() - 1 } else { at - 1 };
        }
        self.hand = if at == 0 { None } else { Some(self.queue[at - 1].0) };
        if let Some((key, _)) = self.queue.remove(at) {
            self.visited.remove(&key);
        }
    }
}

impl Plain for PlainSieve {
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(visited) = self.visited.get_mut(&key) {
            *visited = true;
            return true;
        }
        if size > self.capacity {
            return false;
        }
        while sum(&self.queue) + size > self.capacity {
            self.evict();
        }
        self.queue.push_front((key, size));
        self.visited.insert(key, false);
        false
    }
}

/// Algorithm 1 of the S3-FIFO paper.
struct PlainS3Fifo {
    capacity: u64,
    small: VecDeque<(u64, u64)>,
    main: VecDeque<(u64, u64)>,
    ghosts: VecDeque<(u64, u64)>,
    count: HashMap<u64, u8>,
}

impl PlainS3Fifo {
    fn small_capacity(&self) -> u64 {
        (self.capacity / 10).max(1)
    }

    fn main_capacity(&self) -> u64 {
        self.capacity - self.small_capacity()
    }

    fn evict(&mut self) {
        let small = sum(&self.small);
        if small > 0 && (small >= self.small_capacity() || self.main.is_empty()) {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        while let Some(tail) = self.small.pop_back() {
            if self.count[&tail.0] > 1 {
                self.count.insert(tail.0, 0);
                self.main.push_front(tail);
                if sum(&self.main) > self.main_capacity() {
                    self.evict_main();
                }
            } else {
                self.count.remove(&tail.0);
                if tail.1 <= self.main_capacity() {
                    while sum(&self.ghosts) + tail.1 > self.main_capacity() {
                        self.ghosts.pop_back();
                    }
                    self.ghosts.push_front(tail);
                }
                return;
            }
        }
    }

    fn evict_main(&mut self) {
        while let Some(tail) = self.main.pop_back() {
            let count = self.count[&tail.0];
            if count == 0 {
                self.count.remove(&tail.0);
                return;
            }
            self.count.insert(tail.0, count - 1);
            self.main.push_front(tail);
        }
    }
}

impl Plain for PlainS3Fifo {
    fn request(&mut self, key: u64, size: u64) -> bool {
        if let Some(count) = self.count.get_mut(&key) {
            *count = (*count + 1).min(3);
            return true;
        }
        if size > self.capacity {
            return false;
        }
        while sum(&self.small) + sum(&self.main) + size > self.capacity {
            self.evict();
        }
        match take(&mut self.ghosts, key) {
            Some(_) => self.main.push_front((key, size)),
            None => self.small.push_front((key, size)),
        }
        self.count.insert(key, 0);
        false
    }
}

/// Figure 4 of the ARC paper, case by case, for objects of size 1.
struct PlainArc {
    c: usize,
    p: f64,
    t1: VecDeque<u64>,
    t2: VecDeque<u64>,
    b1: VecDeque<u64>,
    b2: VecDeque<u64>,
}

fn remove(queue: &mut VecDeque<u64>, key: u64) -> bool {
    let at = queue.iter().position(|other| *other == key);
    at.is_some_and(|at| queue.remove(at).is_some())
}

impl PlainArc {
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || in_b2 && t1 == self.p) {
            let oldest = self.t1.pop_back().unwrap();
            self.b1.push_front(oldest);
        } else {
            let oldest = self.t2.pop_back().unwrap();
            self.b2.push_front(oldest);
        }
    }
}

impl Plain for PlainArc {
    fn request(&mut self, key: u64, _: u64) -> bool {
        if self.c == 0 {
            return false;
        }
        // Case I.
        if remove(&mut self.t1, key) || remove(&mut self.t2, key) {
            self.t2.push_front(key);
            return true;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        // Case II.
        if self.b1.contains(&key) {
            let step = if b1 >= b2 { 1.0 } else { b2 / b1 };
            self.p = (self.p + step).min(self.c as f64);
            self.replace(false);
            remove(&mut self.b1, key);
            self.t2.push_front(key);
            return false;
        }
        // Case III.
        if self.b2.contains(&key) {
            let step = if b2 >= b1 { 1.0 } else { b1 / b2 };
            self.p = (self.p - step).max(0.0);
            self.replace(true);
            remove(&mut self.b2, key);
            self.t2.push_front(key);
            return false;
        }
        // Case IV.
        let l1 = self.t1.len() + self.b1.len();
        let all = l1 + self.t2.len() + self.b2.len();
        if l1 == self.c {
            if self.t1.len() < self.c {
                self.b1.pop_back();
                self.replace(false);
            } else {
                self.t1.pop_back();
            }
        } else if all >= self.c {
            if all == 2 * self.c {
                self.b2.pop_back();
            }
            self.replace(false);
        }
        self.t1.push_front(key);
        false
    }
}

fn plain(policy: Policy, capacity: u64) -> Box<dyn Plain> {
    let queue = VecDeque::new;
    match policy {
        Policy::Lru => Box::new(PlainLru { capacity, queue: queue() }),
        Policy::Sieve => {
            Box::new(PlainSieve { capacity, queue: queue(), visited: HashMap::new(), hand: None })
        }
        Policy::S3Fifo => Box::new(PlainS3Fifo {
            capacity,
            small: queue(),
            main: queue(),
            ghosts: queue(),
            count: HashMap::new(),
        }),
        Policy::Arc => {
            let empty = VecDeque::new;
            let c = usize::try_from(capacity).unwrap();
            Box::new(PlainArc { c, p: 0.0, t1: empty(), t2: empty(), b1: empty(), b2: empty() })
        }
    }
}

/// Skewed keys with loops in between, so that every policy has something to do well and badly.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    let skewed = (0_u64..1000, 1_u64..60).prop_map(|(x, most)| vec![x * x * most / 1_000_000]);
    let repeated = (0_u64..50, 1_usize..4).prop_map(|(x, times)| vec![x; times]);
    let scan = (0_u64..80, 1_u64..30).prop_map(|(from, length)| (from..from + length).collect());
    prop::collection::vec(prop_oneof![4 => skewed, 3 => repeated, 1 => scan], 0..300)
        .prop_map(|parts| parts.concat())
}

/// A size of its own for each key, from 1 to 7, and large ones here and there.
fn size(key: u64) -> u64 {
    match key % 11 {
        10 => 13,
        rest => rest % 7 + 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_request_hits_or_misses_as_in_a_plain_cache(keys in keys(), capacity in 0_u64..60) {
        for policy in Policy::ALL {
            let (mut fast, mut slow) = (policy.cache(capacity), plain(policy, capacity));
            for (number, key) in keys.iter().enumerate() {
                let (found, expected) = (fast.request(*key, 1), slow.request(*key, 1));
                prop_assert_eq!(found, expected, "{} of {}: request {} for {}", policy.name(), capacity, number, key);
                prop_assert!(fast.used() <= capacity && fast.len() == fast.used());
            }
        }
    }

    /// ARC with sizes is no one's published algorithm: its plain model knows none.
    #[test]
    fn so_it_does_with_sizes(keys in keys(), capacity in 0_u64..200) {
        for policy in [Policy::Lru, Policy::Sieve, Policy::S3Fifo] {
            let (mut fast, mut slow) = (policy.cache(capacity), plain(policy, capacity));
            for (number, key) in keys.iter().enumerate() {
                let (found, expected) = (fast.request(*key, size(*key)), slow.request(*key, size(*key)));
                prop_assert_eq!(found, expected, "{} of {}: request {} for {}", policy.name(), capacity, number, key);
                prop_assert!(fast.used() <= capacity);
            }
        }
    }

    /// Capacities of none and of all objects, and requests beyond the serial numbers' compaction.
    #[test]
    fn numbered_objects_hit_and_miss_as_in_a_plain_cache(keys in keys(), capacity in 0_u64..120) {
        let objects = keys.iter().max().map_or(0, |most| *most as u32 + 1);
        let (mut fast, mut slow) = (NumberedLru::new(capacity, objects), plain(Policy::Lru, capacity));
        for (number, key) in keys.iter().enumerate() {
            let (found, expected) = (fast.request(*key as u32), slow.request(*key, 1));
            prop_assert_eq!(found, expected, "of {}: request {} for {}", capacity, number, key);
        }
    }

    #[test]
    fn arc_with_sizes_keeps_within_its_capacity(keys in keys(), capacity in 0_u64..200) {
        let mut cache = Policy::Arc.cache(capacity);
        for key in keys {
            let hit = cache.request(key, size(key));
            prop_assert!(cache.used() <= capacity);
            prop_assert!(!hit || size(key) <= capacity);
            prop_assert!(size(key) > capacity || cache.request(key, size(key)), "what was asked for is kept");
        }
    }
}

/// Long enough for the index to grow, and for slots to be used again and again.
#[test]
fn a_long_string_of_zipf_requests_agrees_too() {
    use rand::SeedableRng;
    use rand_distr::Distribution;
    let zipf = rand_distr::Zipf::new(5_000.0, 0.9).unwrap();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let keys: Vec<u64> = (0..60_000).map(|_| zipf.sample(&mut random) as u64).collect();
    for policy in Policy::ALL {
        let (mut fast, mut slow) = (policy.cache(300), plain(policy, 300));
        let misses = |cache: &mut dyn FnMut(u64) -> bool| keys.iter().filter(|key| !cache(**key)).count();
        let found = misses(&mut |key| fast.request(key, 1));
        assert_eq!(found, misses(&mut |key| slow.request(key, 1)), "{}", policy.name());
        assert!((10_000..55_000).contains(&found), "{}: {found}", policy.name());
    }
    let (mut numbered, mut slow) = (NumberedLru::new(300, 5_001), plain(Policy::Lru, 300));
    assert!(keys.iter().all(|key| numbered.request(*key as u32) == slow.request(*key, 1)));
}
