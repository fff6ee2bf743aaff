//! Open and close, cached and uncached reads, of files of several sizes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;

use crate::Error;
use crate::cold::Cold;
use crate::content;
use crate::place::FileSystemOf;
use crate::quantiles::Summary;
use crate::residency::{Method, residency_of};

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// Sizes of the files, in bytes; each is read whole, in one request.
    pub sizes_bytes: Vec<u64>,
    /// How often all is measured anew.
    pub repetitions: u32,
    /// Files of each size: as many uncached reads a repetition.
    pub files: u32,
    /// Times each file is opened, and read while it is cached, in a repetition.
    pub rounds: u32,
    /// How files are made cold.
    pub cold: Cold,
}

impl Default for Options {
    fn default() -> Self {
        let sizes_bytes = vec![4 << 10, 64 << 10, 256 << 10, 1 << 20];
        Options { sizes_bytes, repetitions: 5, files: 10, rounds: 10, cold: Cold::Fadvise }
    }
}

/// What came out: `fsbench.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The folder that was named.
    pub folder: PathBuf,
    /// What it lies on.
    pub file_system: FileSystemOf,
    /// How files were made cold.
    pub cold: Cold,
    /// Repetitions.
    pub repetitions: u32,
    /// How the kernel was asked what it holds; absent if it did not say.
    pub asked_by: Option<Method>,
    /// What a reader must know of all numbers; empty if nothing.
    pub note: String,
    /// By size.
    pub sizes: Vec<SizeReport>,
}

/// Latencies for files of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeReport {
    /// Size of each file.
    pub size_bytes: u64,
    /// Opening a file whose name is known already, and closing it.
    pub open_close: Latency,
    /// Reading the whole file from the page cache; without opening it.
    pub read_cached: Latency,
    /// Reading the whole file while the page cache holds none of it; without opening it.
    pub read_uncached: Latency,
}

/// One kind of latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// The numbers; absent if there was no sample, or none that was what it should be.
    #[serde(flatten)]
    pub summary: Option<Summary>,
    /// Whether each sample is known to be what it is called.
    pub verified: Verified,
    /// Samples that were left out because they were not.
    pub left_out: usize,
    /// Why there is no number, or why it is not known what was measured; empty if neither.
    pub reason: String,
}

/// Whether samples were what they are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// Each was looked at, before and after.
    Yes,
    /// Nobody can know: the kernel keeps no pages of these files, and does not see another cache.
    NotKnown,
    /// There is nothing to be verified.
    NotApplicable,
}

const KEEPS_NO_PAGES: &str =
    "the kernel keeps no pages of this file system (direct I/O); what it caches by itself is not known";

/// Measures in a fresh folder of its own below `folder`, which is removed in the end, whatever happens.
///
/// # Errors
/// [`Error::Refused`] if an option makes no sense or the folder is not there; [`Error::Failed`] if the file system fails, a
/// read returns other bytes than were written, or `stop` was set.
pub fn bench(folder: &Path, options: &Options, stop: &AtomicBool) -> Result<Report, Error> {
    check(options)?;
    let file_system = FileSystemOf::find(folder)?;
    let own = Own::make(folder)?;
    let mut sizes = Vec::new();
    let mut asked_by = None;
    for (number, size_bytes) in (0..).zip(&options.sizes_bytes) {
        let files = own.write(number, *size_bytes, options.files)?;
        let mut samples = Samples::default();
        for _ in 0..options.repetitions {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Failed("interrupted; its files are removed".to_owned()));
            }
            samples.begin();
            opened_and_closed(&files, options.rounds, &mut samples)?;
            read_cached(&files, *size_bytes, options.rounds, &mut samples)?;
            if !file_system.is_memory() {
                options.cold.make(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>())?;
                // A remount that came to nothing would measure the file system below.
                if FileSystemOf::find(folder)? != file_system {
                    let found = FileSystemOf::find(folder)?;
                    return Err(Error::Failed(format!(
                        "{} was on {} and is on {} after the remount: correct the command",
                        folder.display(),
                        file_system.fs_type,
                        found.fs_type
                    )));
                }
                read_uncached(&files, *size_bytes, &mut samples)?;
            }
        }
        asked_by = asked_by.or(samples.method);
        sizes.push(samples.report(*size_bytes, &file_system));
        own.remove(&files)?;
    }
    let network = ["fuse", "nfs", "ceph", "lustre", "beegfs", "pvfs"];
    let elsewhere = network.iter().any(|kind| file_system.fs_type.starts_with(kind));
    let note = if elsewhere {
        "uncached is what this kernel's page cache does not hold; a server, or the file system's own process, may have it"
            .to_owned()
    } else {
        String::new()
    };
    let (cold, repetitions) = (options.cold.clone(), options.repetitions);
    Ok(Report { folder: folder.to_owned(), file_system, cold, repetitions, asked_by, note, sizes })
}

fn check(options: &Options) -> Result<(), Error> {
    let refuse = |text: &str| Err(Error::Refused(text.to_owned()));
    if options.sizes_bytes.is_empty() || options.sizes_bytes.iter().any(|size| !(1..=1 << 30).contains(size))
    {
        return refuse("sizes: give some, each from 1 byte to 1 GiB");
    }
    if options.repetitions == 0 || options.files == 0 || options.rounds == 0 {
        return refuse("repetitions, files and rounds must be at least 1");
    }
    Ok(())
}

struct Sized {
    path: PathBuf,
    number: u64,
}

/// A folder that is gone when it is dropped.
struct Own(PathBuf);

impl Own {
    fn make(folder: &Path) -> Result<Self, Error> {
        for attempt in 0..100 {
            let path = folder.join(format!("weir-fsbench-{}-{attempt}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Own(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("cannot make", &path)(error)),
            }
        }
        Err(Error::Failed(format!(
            "{}: 100 folders of earlier benchmarks are there; remove weir-fsbench-*",
            folder.display()
        )))
    }

    /// Writes files of one size, so that they are safe below.
    fn write(&self, size_number: u64, size_bytes: u64, files: u32) -> Result<Vec<Sized>, Error> {
        let mut bytes = vec![0; size_bytes as usize];
        let mut made = Vec::new();
        for index in 0..u64::from(files) {
            let number = size_number << 32 | index;
            let path = self.0.join(format!("{number:016x}"));
            content::fill(number, &mut bytes);
            let write = || {
                let file = File::options().write(true).create_new(true).open(&path)?;
                file.write_all_at(&bytes, 0)?;
                file.sync_all()
            };
            write().map_err(Error::io("cannot write", &path))?;
            made.push(Sized { path, number });
        }
        Ok(made)
    }

    fn remove(&self, files: &[Sized]) -> Result<(), Error> {
        files
            .iter()
            .try_for_each(|file| fs::remove_file(&file.path).map_err(Error::io("cannot remove", &file.path)))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Samples in ns by repetition.
#[derive(Default)]
struct Samples {
    open_close: Vec<Vec<u64>>,
    cached: Kind,
    uncached: Kind,
    method: Option<Method>,
}

#[derive(Default)]
struct Kind {
    repetitions: Vec<Vec<u64>>,
    left_out: usize,
    /// Samples of which nobody can say what they are.
    not_known: usize,
}

impl Samples {
    fn begin(&mut self) {
        self.open_close.push(Vec::new());
        self.cached.repetitions.push(Vec::new());
        self.uncached.repetitions.push(Vec::new());
    }

    fn report(self, size_bytes: u64, file_system: &FileSystemOf) -> SizeReport {
        let open_close = Latency {
            summary: Summary::of(&self.open_close),
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
            self.uncached.latency("pages were in the page cache although they had been dropped")
        };
        let read_cached =
            self.cached.latency("pages were not in the page cache although they had just been read");
        SizeReport { size_bytes, open_close, read_cached, read_uncached }
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

fn ns_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn opened_and_closed(files: &[Sized], rounds: u32, samples: &mut Samples) -> Result<(), Error> {
    for file in files {
        // The first makes name and attributes known.
        for round in 0..=rounds {
            let began = Instant::now();
            drop(File::open(&file.path).map_err(Error::io("cannot open", &file.path))?);
            let ns = ns_since(began);
            if let (true, Some(samples)) = (round > 0, samples.open_close.last_mut()) {
                samples.push(ns);
            }
        }
    }
    Ok(())
}

/// Reads a file whole and checks what came; returns the time of the reading alone, in ns.
fn read(file: &File, sized: &Sized, buffer: &mut [u8], wanted: &[u8]) -> Result<u64, Error> {
    let began = Instant::now();
    file.read_exact_at(buffer, 0).map_err(Error::io("cannot read", &sized.path))?;
    let ns = ns_since(began);
    if buffer != wanted {
        return Err(Error::Failed(format!("{}: holds other bytes than were written", sized.path.display())));
    }
    buffer.fill(0);
    Ok(ns)
}

/// Bytes of a file in the page cache; `None` where the kernel does not say.
fn held(file: &File, samples: &mut Samples) -> Option<u64> {
    let found = residency_of(file).ok()?;
    samples.method = Some(found.method);
    Some(found.cached_bytes)
}

fn read_cached(files: &[Sized], size_bytes: u64, rounds: u32, samples: &mut Samples) -> Result<(), Error> {
    let mut buffer = vec![0; size_bytes as usize];
    let mut wanted = buffer.clone();
    for sized in files {
        content::fill(sized.number, &mut wanted);
        let file = File::open(&sized.path).map_err(Error::io("cannot open", &sized.path))?;
        read(&file, sized, &mut buffer, &wanted)?;
        for _ in 0..rounds {
            let before = held(&file, samples);
            let ns = read(&file, sized, &mut buffer, &wanted)?;
            match (before, held(&file, samples)) {
                (Some(before), Some(after)) if before == size_bytes && after == size_bytes => {
                    samples.cached.add(ns, true);
                }
                (None, _) | (_, None) | (Some(0), Some(0)) => samples.cached.add(ns, false),
                _ => samples.cached.left_out += 1,
            }
        }
    }
    Ok(())
}

fn read_uncached(files: &[Sized], size_bytes: u64, samples: &mut Samples) -> Result<(), Error> {
    let mut buffer = vec![0; size_bytes as usize];
    let mut wanted = buffer.clone();
    // Not in the order in which they were written, which a disk would read ahead.
    let stride =
        (1..files.len()).rev().find(|stride| coprime(*stride, files.len()) && *stride < files.len() / 2 + 1);
    for step in 0..files.len() {
        let sized = &files[step * stride.unwrap_or(1) % files.len()];
        content::fill(sized.number, &mut wanted);
        let file = File::open(&sized.path).map_err(Error::io("cannot open", &sized.path))?;
        let before = held(&file, samples);
        let ns = read(&file, sized, &mut buffer, &wanted)?;
        match (before, held(&file, samples)) {
            (Some(0), Some(after)) if after > 0 => samples.uncached.add(ns, true),
            (None, _) | (_, None) | (Some(0), Some(_)) => samples.uncached.add(ns, false),
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
