//! Calibration of the kernel's I/O cost model: throughput of a disk by kind of request, measured before files are on it.
//!
//! The method of the kernel's tools/cgroup/iocost_coef_gen.py: direct requests of one kind at a time, with more outstanding
//! than the queue depth. Data on the disk are lost.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use weir_study::CostModel;

use crate::Error;

/// Size of requests whose rate is measured, in bytes.
const SMALL_BYTES: u64 = 4096;
/// Size of requests whose bytes are measured.
const LARGE_BYTES: u64 = 1 << 20;
/// Sequential requests wrap around at this byte: it bounds the memory of a modelled disk.
const SEQUENTIAL_BYTES: u64 = 64 << 20;
/// Least duration of each kind.
const LEAST: Duration = Duration::from_millis(300);
/// Longest duration of random requests, for slow disks: about 70 requests.
const LONGEST_RANDOM: Duration = Duration::from_millis(700);
/// Random requests after which the rate is known to 3 %, even if service times vary as much as their mean.
const ENOUGH: u64 = 1000;
/// Maximum outstanding requests: with more threads, CPU scheduling dominates.
const MOST_AT_ONCE: u32 = 32;
/// Seed of random offsets, which differ between kinds and threads but not between runs.
const SEED: u64 = 0x0010_c057;

/// One kind of request.
#[derive(Debug, Clone, Copy)]
struct Kind {
    write: bool,
    random: bool,
    size_bytes: u64,
}

/// Measures a disk, with `at_once` requests outstanding.
///
/// # Errors
/// The disk cannot be opened, a request fails, or the run is interrupted.
pub(crate) fn measure(
    node: &Path,
    size_bytes: u64,
    at_once: u32,
    stop: &AtomicBool,
) -> Result<CostModel, Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(node)
        .map_err(Error::io("cannot open", node))?;
    let rate = |write, random, size| {
        let kind = Kind { write, random, size_bytes: size };
        let done = rate_per_s(&file, size_bytes, at_once.clamp(1, MOST_AT_ONCE), kind, stop);
        done.map_err(Error::io("cannot measure", node))
    };
    let whole = |rate_per_s: f64| (rate_per_s.round() as u64).max(1);
    Ok(CostModel {
        rbps: whole(rate(false, false, LARGE_BYTES)? * LARGE_BYTES as f64),
        rseqiops: whole(rate(false, false, SMALL_BYTES)?),
        rrandiops: whole(rate(false, true, SMALL_BYTES)?),
        wbps: whole(rate(true, false, LARGE_BYTES)? * LARGE_BYTES as f64),
        wseqiops: whole(rate(true, false, SMALL_BYTES)?),
        wrandiops: whole(rate(true, true, SMALL_BYTES)?),
    })
}

/// Completed requests of one kind per second.
fn rate_per_s(
    file: &File,
    size_bytes: u64,
    at_once: u32,
    kind: Kind,
    stop: &AtomicBool,
) -> std::io::Result<f64> {
    let (next, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let places = if kind.random { size_bytes } else { size_bytes.min(SEQUENTIAL_BYTES) } / kind.size_bytes;
    let began = Instant::now();
    let ends = || {
        let elapsed = began.elapsed();
        let enough = !kind.random || answered.load(Ordering::Relaxed) >= ENOUGH;
        elapsed >= if enough { LEAST } else { LONGEST_RANDOM }
    };
    let ask = |thread: u64| -> std::io::Result<()> {
        let mut random = ChaCha8Rng::seed_from_u64(SEED + thread);
        let mut memory = vec![0u8; (kind.size_bytes + SMALL_BYTES) as usize];
        // Direct I/O needs memory aligned to the disk's blocks.
        let first = memory.as_ptr().align_offset(SMALL_BYTES as usize);
        let buffer = &mut memory[first..first + kind.size_bytes as usize];
        while !ends() && !stop.load(Ordering::Relaxed) {
            let place = if kind.random {
                random.random_range(0..places.max(1))
            } else {
                next.fetch_add(1, Ordering::Relaxed) % places.max(1)
            };
            let offset = place * kind.size_bytes;
            if kind.write {
                file.write_all_at(buffer, offset)?;
            } else {
                file.read_exact_at(buffer, offset)?;
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let ask = &ask;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..u64::from(at_once)).map(|thread| scope.spawn(move || ask(thread))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a calibration thread panicked")))
        })
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(std::io::Error::other("interrupted; undone"));
    }
    // The last completions come after the end: their time counts too.
    Ok(answered.into_inner() as f64 / began.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted() {
        let folder = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(8 << 20).unwrap();
        if OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).is_err() {
            eprintln!("skipped: needs a file system with direct I/O");
            return;
        }
        let model = measure(&path, 8 << 20, 2, &AtomicBool::new(false)).unwrap();
        // Any disk does more in large requests than in small ones, and more than one of each.
        assert!(
            model.rbps > model.rseqiops * SMALL_BYTES && model.wbps > model.wseqiops * SMALL_BYTES,
            "{model:?}"
        );
        assert!(model.rrandiops > 1 && model.wrandiops > 1, "{model:?}");
        assert!(measure(&path, 8 << 20, 2, &AtomicBool::new(true)).is_err());
    }
}
