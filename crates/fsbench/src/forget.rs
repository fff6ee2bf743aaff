//! Dropping the page cache of a folder.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use crate::Error;
use crate::residency::{Residency, each_file, residency};

/// Writes out the file system of a folder, then drops the pages of all files below the folder; returns what is still held.
///
/// Others' files stay cached, unlike with `/proc/sys/vm/drop_caches`.
///
/// # Errors
/// A file cannot be read, or the kernel refuses.
pub fn forget(folder: &Path) -> Result<Residency, Error> {
    let opened = File::open(folder).map_err(Error::io("cannot open", folder))?;
    // SAFETY: the descriptor is open.
    if unsafe { libc::syncfs(opened.as_raw_fd()) } != 0 {
        return Err(Error::io("cannot write out", folder)(std::io::Error::last_os_error()));
    }
    each_file(folder, |file| {
        // SAFETY: the descriptor is open; length 0 is to the end of the file.
        match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
            0 => Ok(()),
            code => Err(std::io::Error::from_raw_os_error(code)),
        }
    })?;
    residency(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_forgotten_and_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, vec![3; 100_000]).unwrap();
        assert_eq!(residency(folder.path()).unwrap().cached_bytes, 100_000);
        let left = forget(folder.path()).unwrap();
        if crate::FileSystemOf::find(folder.path()).unwrap().is_memory() {
            eprintln!("temporary files lie in memory here: nothing to forget");
        } else {
            assert_eq!((left.cached_bytes, left.total_bytes), (0, 100_000));
        }
        assert_eq!(std::fs::read(&path).unwrap(), vec![3; 100_000]);
    }
}
