//! Rate of the caches, on one core, for Zipf requests over a million objects; and the same requests as a file for others.
//!
//! ```console
//! cargo run --release -p weir-cache --example bench_caches -- /tmp/zipf.oracleGeneral.bin
//! ```
//!
//! Prints JSON: by policy, requests a second (median of five passes over requests in memory) and the miss ratio.

use std::io::Write;
use std::time::Instant;

use rand::SeedableRng;
use rand_distr::{Distribution, Zipf};
use weir_cache::{Cache, Lru, Policy};

const OBJECTS: u64 = 1_000_000;
const ALPHA: f64 = 0.9;
const REQUESTS: usize = 20_000_000;
/// A tenth of the objects.
const CAPACITY: u64 = 100_000;
const PASSES: usize = 5;
/// How many requests ahead the index, and how many ahead the object, begins to be loaded.
const AHEAD: (usize, usize) = (16, 8);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let zipf = Zipf::new(OBJECTS as f64, ALPHA)?;
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let keys: Vec<u64> = (0..REQUESTS).map(|_| zipf.sample(&mut random) as u64).collect();
    if let Some(path) = std::env::args_os().nth(1) {
        export(&keys, std::fs::File::create(path)?)?;
    }
    let mut lines = Vec::new();
    for policy in Policy::ALL {
        lines.push(measure(policy.name(), &keys, |keys| {
            let mut cache = policy.cache(CAPACITY);
            keys.iter().filter(|key| !cache.request(**key, 1)).count()
        }));
    }
    lines.push(measure("lru, told in advance", &keys, |keys| {
        let mut cache = Lru::new(CAPACITY);
        let mut misses = 0;
        for (at, key) in keys.iter().enumerate() {
            if let Some(later) = keys.get(at + AHEAD.0) {
                cache.prefetch(*later);
                cache.prefetch_object(keys[at + AHEAD.1]);
            }
            misses += usize::from(!cache.request(*key, 1));
        }
        misses
    }));
    println!("{{\n{}\n}}", lines.join(",\n"));
    Ok(())
}

fn measure(name: &str, keys: &[u64], pass: impl Fn(&[u64]) -> usize) -> String {
    let mut seconds = Vec::new();
    let mut misses = 0;
    for _ in 0..PASSES {
        let begin = Instant::now();
        misses = pass(keys);
        seconds.push(begin.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let rate = keys.len() as f64 / seconds[PASSES / 2];
    let ratio = misses as f64 / keys.len() as f64;
    format!(
        "  \"{name}\": {{\"requests_per_s\": {rate:.0}, \"misses\": {misses}, \"miss_ratio\": {ratio:.8}}}"
    )
}

/// As libCacheSim's oracleGeneral: time, object, size, and the number of the next request for the object.
fn export(keys: &[u64], file: std::fs::File) -> std::io::Result<()> {
    let mut next = vec![-1_i64; keys.len()];
    let mut last = vec![-1_i64; OBJECTS as usize + 1];
    for (at, key) in keys.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut last[*key as usize], at as i64);
    }
    let mut to = std::io::BufWriter::with_capacity(1 << 20, file);
    for (at, key) in keys.iter().enumerate() {
        to.write_all(&((at / 1_000_000) as u32).to_le_bytes())?;
        to.write_all(&key.to_le_bytes())?;
        to.write_all(&1_u32.to_le_bytes())?;
        to.write_all(&next[at].to_le_bytes())?;
    }
    to.flush()
}
