//! The page cache: residency of files, and dropping by file, folder, device or altogether.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::fs::{Advice, fadvise, syncfs};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;
use serde::Serialize;

use crate::Error;

/// Files that are looked at at a time.
const OPENERS: usize = 8;

/// How many bytes of how many are in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Residency {
    /// Bytes in the page cache, by whole pages but never more than there are.
    pub cached_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// How that was found out.
    pub method: Method,
}

/// How the kernel was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// cachestat(2), of Linux 6.5 and later.
    Cachestat,
    /// mincore(2) on a mapping of the file.
    Mincore,
}

/// Drops the clean pages of an open file or device. Pages of other files stay, and so do dirty ones.
///
/// # Errors
/// The kernel refuses.
pub fn drop_file(file: impl AsFd) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Writes out the file system of a folder, then drops the pages of all files below the folder. Returns the pages still cached.
///
/// # Errors
/// A file cannot be read, or the kernel refuses.
pub fn drop_folder(folder: &Path) -> Result<Residency, Error> {
    let opened = File::open(folder).map_err(Error::io("cannot open", folder))?;
    syncfs(&opened).map_err(|error| Error::io("cannot write out", folder)(error.into()))?;
    each_file(folder, |file| drop_file(file))?;
    residency(folder)
}

/// Writes out and drops the cached pages of a block device itself (`BLKFLSBUF`).
///
/// # Errors
/// It is no block device, or the kernel refuses.
pub fn drop_device(node: &Path) -> io::Result<()> {
    /// `BLKFLSBUF` of `include/uapi/linux/fs.h`.
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    let file = File::open(node)?;
    // SAFETY: the descriptor is open for the duration of the call, which takes no argument.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKFLSBUF, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Drops all clean pages, names and attributes of the whole host (`drop_caches`). Takes root, and disturbs everybody.
///
/// # Errors
/// The kernel refuses.
pub fn drop_all() -> Result<(), Error> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    fs::write(path, "3").map_err(Error::io("cannot write", path))
}

/// Of one open file. Asking brings no page in.
///
/// # Errors
/// The kernel answers neither way.
pub fn residency_of(file: &File) -> io::Result<Residency> {
    let total_bytes = file.metadata()?.len();
    let bounded = |pages: u64, method| Residency {
        cached_bytes: (pages * page_size() as u64).min(total_bytes),
        total_bytes,
        method,
    };
    if total_bytes == 0 {
        return Ok(bounded(0, Method::Cachestat));
    }
    match cachestat(file) {
        Ok(pages) => Ok(bounded(pages, Method::Cachestat)),
        // An older kernel, or a file that is not ours.
        Err(_) => Ok(bounded(mincore(file, total_bytes)?, Method::Mincore)),
    }
}

/// Of all regular files below a folder, on its own file system only.
///
/// # Errors
/// A file or folder cannot be read.
pub fn residency(folder: &Path) -> Result<Residency, Error> {
    let sum = Mutex::new(Residency { cached_bytes: 0, total_bytes: 0, method: Method::Cachestat });
    each_file(folder, |file| {
        let found = residency_of(file)?;
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.cached_bytes += found.cached_bytes;
        sum.total_bytes += found.total_bytes;
        if found.total_bytes > 0 {
            sum.method = found.method;
        }
        Ok(())
    })?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Opens each regular file below a folder, on its own file system only, several at a time: over a network each takes an
/// answer or two. Files that vanish meanwhile are skipped: other programs may work there.
///
/// # Errors
/// A folder or file cannot be read, or the function fails.
pub fn each_file(folder: &Path, work: impl Fn(&File) -> io::Result<()> + Sync) -> Result<(), Error> {
    let device = fs::metadata(folder).map_err(Error::io("cannot look at", folder))?.dev();
    let (mut waiting, mut paths) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = waiting.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if is_gone(&error) => continue,
            entries => entries.map_err(Error::io("cannot read", &folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::io("cannot read", &folder))?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => paths.push(entry.path()),
                _ => {}
            }
        }
    }
    let share = paths.len().div_ceil(OPENERS).max(1);
    thread::scope(|scope| {
        let threads: Vec<_> = paths
            .chunks(share)
            .map(|some| scope.spawn(|| some.iter().try_for_each(|path| look_at(path, device, &work))))
            .collect();
        // All are waited for, whatever one of them says.
        let done: Vec<Result<(), Error>> = threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::Failed("a thread that opened files panicked".to_owned())))
            })
            .collect();
        done.into_iter().collect()
    })
}

fn look_at(path: &Path, device: u64, work: &(impl Fn(&File) -> io::Result<()> + Sync)) -> Result<(), Error> {
    let mut options = File::options();
    let file = match options.read(true).custom_flags(libc::O_NOATIME | libc::O_NOFOLLOW).open(path) {
        Err(error) if is_gone(&error) => return Ok(()),
        opened => opened.map_err(Error::io("cannot look at", path))?,
    };
    // Another file system may be mounted below the folder.
    match file.metadata() {
        Ok(metadata) if metadata.dev() != device => Ok(()),
        found => found.and_then(|_| work(&file)).map_err(Error::io("cannot look at", path)),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Pages of a file in the page cache: `include/uapi/linux/mman.h` has the layout.
fn cachestat(file: &File) -> io::Result<u64> {
    /// The same number on every architecture that Linux 6.5 knew.
    const SYS_CACHESTAT: libc::c_long = 451;
    // Offset and length; length 0 is to the end of the file.
    let range = [0u64; 2];
    // Cached, dirty, under writeback, evicted, recently evicted pages.
    let mut counts = [0u64; 5];
    // SAFETY: the descriptor is open; range and counts are as large as the kernel reads and writes.
    let done =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0) };
    if done == 0 { Ok(counts[0]) } else { Err(io::Error::last_os_error()) }
}

fn mincore(file: &File, size_bytes: u64) -> io::Result<u64> {
    let length = usize::try_from(size_bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: a fresh mapping that nothing reads through; it is unmapped below.
    let mapping = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
    let mut pages = vec![0u8; size_bytes.div_ceil(page_size() as u64) as usize];
    // By libc: rustix has no mincore.
    // SAFETY: the mapping is `length` bytes long, and the vector has a byte for each of its pages.
    let done = unsafe { libc::mincore(mapping, length, pages.as_mut_ptr()) };
    let answer = if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the mapping made above, not used after this.
    let _ = unsafe { munmap(mapping, length) };
    answer.map(|()| pages.iter().filter(|page| *page & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_asking_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, vec![7; 300_000]).unwrap();
        let file = File::open(&path).unwrap();
        let by_mincore = mincore(&file, 300_000).unwrap();
        assert_eq!(by_mincore, 300_000u64.div_ceil(page_size() as u64), "what was just written is cached");
        if let Ok(by_cachestat) = cachestat(&file) {
            assert_eq!(by_cachestat, by_mincore);
        } else {
            eprintln!("this kernel has no cachestat(2): mincore(2) alone was checked");
        }
    }

    #[test]
    fn what_was_written_is_dropped_and_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, vec![3; 100_000]).unwrap();
        assert_eq!(residency(folder.path()).unwrap().cached_bytes, 100_000);
        let left = drop_folder(folder.path()).unwrap();
        if crate::mounts::is_memory(&crate::mounts::holding(folder.path()).unwrap().fs_type) {
            eprintln!("temporary files lie in memory here: nothing to drop");
        } else {
            assert_eq!((left.cached_bytes, left.total_bytes), (0, 100_000));
        }
        assert_eq!(fs::read(&path).unwrap(), vec![3; 100_000]);
    }

    #[test]
    fn a_folder_is_the_sum_of_its_files_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("a"), vec![1; 5000]).unwrap();
        fs::write(folder.path().join("b"), b"").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let found = residency(folder.path()).unwrap();
        assert_eq!((found.cached_bytes, found.total_bytes), (5000, 5000));
        assert!(residency(Path::new("/nonexistent")).is_err());
    }
}
