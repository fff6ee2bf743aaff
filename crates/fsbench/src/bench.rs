//! Benchmark of opening, closing and reading files, cached and uncached.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use weir_host::page_cache::Method;

use crate::Error;
use crate::cold::Cold;
use crate::content;
use crate::place::FileSystemOf;
use crate::quantiles::Summary;
use crate::sampling::{NoWitness, Samples, Witness, opened_and_closed, read_cached, read_uncached};

/// Options of the benchmark.
#[derive(Debug, Clone)]
pub struct Options {
    /// File sizes, in bytes; each file is read whole, in one request.
    pub sizes_bytes: Vec<u64>,
    /// Number of repetitions of all measurements.
    pub repetitions: u32,
    /// Files of each size, which is the number of uncached reads in a repetition.
    pub files: u32,
    /// Number of times that each file is opened, and read from the cache, in a repetition.
    pub rounds: u32,
    /// How files are dropped from caches.
    pub cold: Cold,
}

impl Default for Options {
    fn default() -> Self {
        let sizes_bytes = vec![4 << 10, 64 << 10, 256 << 10, 1 << 20];
        Options { sizes_bytes, repetitions: 5, files: 10, rounds: 10, cold: Cold::Fadvise }
    }
}

/// Result of the benchmark: `fsbench.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The folder that was measured.
    pub folder: PathBuf,
    /// File system of the folder.
    pub file_system: FileSystemOf,
    /// How files were made cold.
    pub cold: Cold,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Method by which page-cache residency was read; absent if the kernel does not report it.
    pub asked_by: Option<Method>,
    /// Limit on the meaning of all numbers; empty if there is none.
    pub note: String,
    /// Latencies by file size.
    pub sizes: Vec<SizeReport>,
}

/// Latencies for files of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeReport {
    /// Size of each file.
    pub size_bytes: u64,
    /// Opening and closing a file whose name is cached.
    pub open_close: Latency,
    /// Reading the whole file from the page cache, without opening it.
    pub read_cached: Latency,
    /// Reading the whole file while the page cache holds none of it, without opening it.
    pub read_uncached: Latency,
}

/// One kind of latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// The numbers; absent if no sample was cached or uncached as intended.
    #[serde(flatten)]
    pub summary: Option<Summary>,
    /// Whether each sample is known to have been cached or uncached as intended.
    pub verified: Verified,
    /// Samples that were left out because they were not as intended.
    pub left_out: usize,
    /// Why there is no number, or why the samples are not verified; empty otherwise.
    pub reason: String,
}

/// Whether samples were cached or uncached as intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// The page cache was checked before and after each sample.
    Yes,
    /// Not known: the kernel keeps no pages of these files, and does not see other caches.
    NotKnown,
    /// Nothing to verify.
    NotApplicable,
}

/// Measures in a new folder below `folder`, which is always removed at the end.
///
/// # Errors
/// [`Error::Refused`] if an option is out of range or the folder is absent; [`Error::Failed`] if the file system fails, a
/// read returns other bytes than were written, or `stop` was set.
pub fn bench(folder: &Path, options: &Options, stop: &AtomicBool) -> Result<Report, Error> {
    bench_before(folder, options, stop, &mut NoWitness)
}

/// As [`bench`], with a witness that receives each sample and drops the files from other caches.
///
/// # Errors
/// As [`bench`], or the witness fails.
pub fn bench_before(
    folder: &Path,
    options: &Options,
    stop: &AtomicBool,
    witness: &mut dyn Witness,
) -> Result<Report, Error> {
    check(options)?;
    let file_system = FileSystemOf::find(folder)?;
    let own = Own::make(folder)?;
    let mut sizes = Vec::new();
    let mut asked_by = None;
    for (number, size_bytes) in (0..).zip(&options.sizes_bytes) {
        let files = own.write(number, *size_bytes, options.files)?;
        let mut samples = Samples::new(*size_bytes, witness);
        for _ in 0..options.repetitions {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Failed("interrupted; the benchmark's files are removed".to_owned()));
            }
            samples.begin();
            opened_and_closed(&files, options.rounds, &mut samples)?;
            read_cached(&files, options.rounds, &mut samples)?;
            if !file_system.is_memory() {
                options.cold.make(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>())?;
                samples.cold()?;
                // Without a mount, the file system below would be measured.
                if FileSystemOf::find(folder)? != file_system {
                    let found = FileSystemOf::find(folder)?;
                    return Err(Error::Failed(format!(
                        "{}: the file system changed (found {2}, expected {1}) after the remount. Correct the command",
                        folder.display(),
                        file_system.fs_type,
                        found.fs_type
                    )));
                }
                read_uncached(&files, &mut samples)?;
            }
        }
        asked_by = asked_by.or(samples.method);
        sizes.push(samples.report(&file_system));
        own.remove(&files)?;
    }
    let network = ["fuse", "nfs", "ceph", "lustre", "beegfs", "pvfs"];
    let elsewhere = network.iter().any(|kind| file_system.fs_type.starts_with(kind));
    let note = if elsewhere {
        "uncached means absent from this kernel's page cache; a server, or the file system's own process, may cache it"
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
        return refuse("sizes: each must be from 1 byte to 1 GiB, and at least one must be given");
    }
    if options.repetitions == 0 || options.files == 0 || options.rounds == 0 {
        return refuse("repetitions, files and rounds must be at least 1");
    }
    Ok(())
}

pub(crate) struct Sized {
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
}

/// Folder of the benchmark's files; dropping it removes the folder.
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
            "{}: 100 folders of earlier benchmarks exist. Remove weir-fsbench-*",
            folder.display()
        )))
    }

    /// Writes files of one size and syncs them to their device.
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
