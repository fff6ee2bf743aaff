//! Samples of file latencies, each verified against page-cache residency.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use weir_host::page_cache::{Method, residency_of};

use crate::Error;
use crate::bench::{Latency, SizeReport, Sized, Verified};
use crate::content;
use crate::place::FileSystemOf;
use crate::quantiles::Summary;

/// Operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Open and close.
    OpenClose,
    /// Read of the whole file from the page cache.
    ReadCached,
    /// Read of the whole file while the page cache held none of it.
    ReadUncached,
}

/// A sample that was cached or uncached as intended, as far as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The operation.
    pub operation: Operation,
    /// Size of the file.
    pub size_bytes: u64,
    /// Number of the file among those of its size, from 0.
    pub file: u32,
    /// When it began.
    pub began: Instant,
    /// Its duration.
    pub took: Duration,
}

/// Receiver of samples during a benchmark.
pub trait Witness {
    /// Receives a sample.
    fn sample(&mut self, sample: Sample);

    /// Drops the files from other caches, such as those of a network file system's servers. This kernel's page cache holds
    /// none of them, and no file is open.
    ///
    /// # Errors
    /// Another cache cannot be dropped.
    fn cold(&mut self) -> Result<(), Error>;
}

/// A witness that ignores samples, for file systems without other caches.
pub(crate) struct NoWitness;

impl Witness for NoWitness {
    fn sample(&mut self, _: Sample) {}

    fn cold(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

const KEEPS_NO_PAGES: &str =
    "the kernel keeps no pages of this file system (direct I/O); its own cache is not known";

/// Samples of files of one size, in ns by repetition.
pub(crate) struct Samples<'a> {
    size_bytes: u64,
    open_close: Kind,
    cached: Kind,
    uncached: Kind,
    pub(crate) method: Option<Method>,
    witness: &'a mut dyn Witness,
}

#[derive(Default)]
struct Kind {
    repetitions: Vec<Vec<u64>>,
    left_out: usize,
    /// Samples that cannot be verified.
    not_known: usize,
}

impl<'a> Samples<'a> {
    pub(crate) fn new(size_bytes: u64, witness: &'a mut dyn Witness) -> Self {
        let (open_close, cached, uncached) = (Kind::default(), Kind::default(), Kind::default());
        Samples { size_bytes, open_close, cached, uncached, method: None, witness }
    }

    pub(crate) fn begin(&mut self) {
        self.open_close.repetitions.push(Vec::new());
        self.cached.repetitions.push(Vec::new());
        self.uncached.repetitions.push(Vec::new());
    }

    /// Drops the files from other caches.
    pub(crate) fn cold(&mut self) -> Result<(), Error> {
        self.witness.cold()
    }

    /// Counts a sample; `known` says whether it is verified.
    fn add(&mut self, operation: Operation, file: &Sized, (began, took): (Instant, Duration), known: bool) {
        let kind = match operation {
            Operation::OpenClose => &mut self.open_close,
            Operation::ReadCached => &mut self.cached,
            Operation::ReadUncached => &mut self.uncached,
        };
        kind.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), known);
        // The lower half of a file's number counts the files of its size.
        let file = (file.number & u64::from(u32::MAX)) as u32;
        self.witness.sample(Sample { operation, size_bytes: self.size_bytes, file, began, took });
    }

    pub(crate) fn report(self, file_system: &FileSystemOf) -> SizeReport {
        let open_close = Latency {
            summary: Summary::of(&self.open_close.repetitions),
            verified: Verified::NotApplicable,
            left_out: 0,
            reason: String::new(),
        };
        let read_uncached = if file_system.is_memory() {
            Latency {
                summary: None,
                verified: Verified::NotApplicable,
                left_out: 0,
                reason: format!(
                    "{} has no uncached reads: its files are the page cache",
                    file_system.fs_type
                ),
            }
        } else {
            self.uncached.latency("pages were in the page cache after they had been dropped")
        };
        let read_cached = self.cached.latency("pages were not in the page cache after they had been read");
        SizeReport { size_bytes: self.size_bytes, open_close, read_cached, read_uncached }
    }
}

impl Kind {
    fn add(&mut self, ns: u64, known: bool) {
        self.not_known += usize::from(!known);
        if let Some(samples) = self.repetitions.last_mut() {
            samples.push(ns);
        }
    }

    fn latency(self, why_left_out: &str) -> Latency {
        let summary = Summary::of(&self.repetitions);
        let (verified, reason) = match &summary {
            None => (Verified::NotApplicable, why_left_out.to_owned()),
            Some(_) if self.not_known > 0 => (Verified::NotKnown, KEEPS_NO_PAGES.to_owned()),
            Some(_) if self.left_out > 0 => (Verified::Yes, why_left_out.to_owned()),
            Some(_) => (Verified::Yes, String::new()),
        };
        Latency { summary, verified, left_out: self.left_out, reason }
    }
}

pub(crate) fn opened_and_closed(
    files: &[Sized],
    rounds: u32,
    samples: &mut Samples<'_>,
) -> Result<(), Error> {
    for file in files {
        // The first round caches name and attributes.
        for round in 0..=rounds {
            let began = Instant::now();
            drop(File::open(&file.path).map_err(Error::io("cannot open", &file.path))?);
            let took = began.elapsed();
            if round > 0 {
                samples.add(Operation::OpenClose, file, (began, took), true);
            }
        }
    }
    Ok(())
}

/// Reads a whole file and compares its bytes. Returns the start and the duration of the read alone.
fn read(file: &File, sized: &Sized, buffer: &mut [u8], wanted: &[u8]) -> Result<(Instant, Duration), Error> {
    let began = Instant::now();
    file.read_exact_at(buffer, 0).map_err(Error::io("cannot read", &sized.path))?;
    let took = began.elapsed();
    if buffer != wanted {
        return Err(Error::Failed(format!("{}: its bytes differ from those written", sized.path.display())));
    }
    buffer.fill(0);
    Ok((began, took))
}

/// Bytes of a file in the page cache; `None` if the kernel does not report them.
fn held(file: &File, samples: &mut Samples<'_>) -> Option<u64> {
    let found = residency_of(file).ok()?;
    samples.method = Some(found.method);
    Some(found.cached_bytes)
}

pub(crate) fn read_cached(files: &[Sized], rounds: u32, samples: &mut Samples<'_>) -> Result<(), Error> {
    let size_bytes = samples.size_bytes;
    let mut buffer = vec![0; size_bytes as usize];
    let mut wanted = buffer.clone();
    for sized in files {
        content::fill(sized.number, &mut wanted);
        let file = File::open(&sized.path).map_err(Error::io("cannot open", &sized.path))?;
        read(&file, sized, &mut buffer, &wanted)?;
        for _ in 0..rounds {
            let before = held(&file, samples);
            let timed = read(&file, sized, &mut buffer, &wanted)?;
            match (before, held(&file, samples)) {
                (Some(before), Some(after)) if before == size_bytes && after == size_bytes => {
                    samples.add(Operation::ReadCached, sized, timed, true);
                }
                (None, _) | (_, None) | (Some(0), Some(0)) => {
                    samples.add(Operation::ReadCached, sized, timed, false)
                }
                _ => samples.cached.left_out += 1,
            }
        }
    }
    Ok(())
}

pub(crate) fn read_uncached(files: &[Sized], samples: &mut Samples<'_>) -> Result<(), Error> {
    let mut buffer = vec![0; samples.size_bytes as usize];
    let mut wanted = buffer.clone();
    // Not in the order of writing, which a disk would read ahead.
    let stride =
        (1..files.len()).rev().find(|stride| coprime(*stride, files.len()) && *stride < files.len() / 2 + 1);
    for step in 0..files.len() {
        let sized = &files[step * stride.unwrap_or(1) % files.len()];
        content::fill(sized.number, &mut wanted);
        let file = File::open(&sized.path).map_err(Error::io("cannot open", &sized.path))?;
        let before = held(&file, samples);
        let timed = read(&file, sized, &mut buffer, &wanted)?;
        match (before, held(&file, samples)) {
            (Some(0), Some(after)) if after > 0 => samples.add(Operation::ReadUncached, sized, timed, true),
            (None, _) | (_, None) | (Some(0), Some(_)) => {
                samples.add(Operation::ReadUncached, sized, timed, false)
            }
            _ => samples.uncached.left_out += 1,
        }
    }
    Ok(())
}

fn coprime(mut a: usize, mut b: usize) -> bool {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}
