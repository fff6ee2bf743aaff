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
use crate::sampling::{Nobody, Samples, Witness, opened_and_closed, read_cached, read_uncached};

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

/// Measures in a fresh folder of its own below `folder`, which is removed in the end, whatever happens.
///
/// # Errors
/// [`Error::Refused`] if an option makes no sense or the folder is not there; [`Error::Failed`] if the file system fails, a
/// read returns other bytes than were written, or `stop` was set.
pub fn bench(folder: &Path, options: &Options, stop: &AtomicBool) -> Result<Report, Error> {
    bench_before(folder, options, stop, &mut Nobody)
}

/// As [`bench`], before a witness who is told of each sample, and has others forget the files.
///
/// # Errors
/// As of [`bench`]; or the witness has one.
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
                return Err(Error::Failed("interrupted; its files are removed".to_owned()));
            }
            samples.begin();
            opened_and_closed(&files, options.rounds, &mut samples)?;
            read_cached(&files, options.rounds, &mut samples)?;
            if !file_system.is_memory() {
                options.cold.make(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>())?;
                samples.cold()?;
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

pub(crate) struct Sized {
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
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
