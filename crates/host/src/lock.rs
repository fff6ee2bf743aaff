//! Locks on folders, so that two processes do not work in one. A lock goes with its process, however that ends.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::Error;
use crate::process::Identity;

/// Name of the file in a folder that is locked.
pub const LOCK_FILE: &str = ".weir-lock";

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A folder of which this process has the lock until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    file: File,
}

impl FolderLock {
    /// Locks a folder, which is made if it is not there. Waits for at most `patience` while another process has it.
    ///
    /// # Errors
    /// [`Error::Refused`] if another process still has it, with its pid where that is known; [`Error::Io`] if the folder
    /// cannot be written.
    pub fn take(folder: &Path, patience: Duration) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        let path = folder.join(LOCK_FILE);
        // Close on exec is Rust's default: no program that is started inherits the lock.
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io("cannot open", &path))?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(Error::io("cannot lock", &path)(error.into())),
            }
            if began.elapsed() >= patience {
                let holder = holder(&path).map_or(String::new(), |pid| format!(" (pid {pid})"));
                return Err(Error::Refused(format!(
                    "{}: another weir works in this folder{holder}; wait until it has ended",
                    folder.display()
                )));
            }
            sleep(POLL_INTERVAL);
        }
        // For the message above only: the lock itself is the kernel's.
        fs::write(&path, Identity::own().pid.to_string()).map_err(Error::io("cannot write", &path))?;
        Ok(FolderLock { path, file })
    }

    /// The locked file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FolderLock {
    /// Closing alone would not do: a program that another thread is just starting has the descriptor, too, until it is executed.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Name of the file in a folder that holds the locks on names.
const NAMES_FILE: &str = "locks";

/// A lock on one name of a folder, until it is dropped: processes that work on different names do not wait for each other.
///
/// All names share one file: each has a byte of it, which is locked for the open file (`F_OFD_SETLK`), so that no file has to be
/// removed again and locks hold between threads, containers and hosts that share the folder. Two names may have the same byte;
/// then one waits for the other without need.
#[derive(Debug)]
pub struct NameLock {
    file: File,
    byte: libc::off_t,
}

impl NameLock {
    /// Locks a name in a folder, which is made if it is not there; `None` if it is locked.
    ///
    /// # Errors
    /// The folder cannot be written, or its file system has no locks.
    pub fn try_take(folder: &Path, name: &str) -> Result<Option<Self>, Error> {
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        let path = folder.join(NAMES_FILE);
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(Error::io("cannot open", &path))?;
        let byte = byte_of(name);
        match set_lock(&file, byte, libc::F_WRLCK) {
            Ok(()) => Ok(Some(NameLock { file, byte })),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(None),
            Err(error) => Err(Error::io("cannot lock", &path)(error)),
        }
    }

    /// Locks a name in a folder; waits for as long as it is locked.
    ///
    /// # Errors
    /// As [`NameLock::try_take`].
    pub fn wait(folder: &Path, name: &str) -> Result<Self, Error> {
        loop {
            if let Some(lock) = Self::try_take(folder, name)? {
                return Ok(lock);
            }
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for NameLock {
    /// As of [`FolderLock`].
    fn drop(&mut self) {
        let _ = set_lock(&self.file, self.byte, libc::F_UNLCK);
    }
}

/// Locks or unlocks a byte for an open file, without waiting. By libc: rustix has no lock of an open file's bytes.
fn set_lock(file: &File, byte: libc::off_t, kind: libc::c_int) -> std::io::Result<()> {
    // SAFETY: a struct of integers; all zero is a value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = byte;
    range.l_len = 1;
    // SAFETY: the descriptor is open, and the range outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The byte that stands for a name: FNV-1a, cut to what an offset can be.
fn byte_of(name: &str) -> libc::off_t {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 2) as libc::off_t
}

fn holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_with_the_pid_and_had_afterwards() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        let first = FolderLock::take(&folder, Duration::ZERO).unwrap();
        let refused = FolderLock::take(&folder, Duration::from_millis(1)).unwrap_err();
        assert!(refused.is_refusal());
        assert!(refused.to_string().contains(&format!("pid {}", std::process::id())), "{refused}");
        drop(first);
        FolderLock::take(&folder, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_name_is_locked_once_and_other_names_meanwhile() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("results");
        let first = NameLock::try_take(&folder, "a").unwrap().unwrap();
        assert!(NameLock::try_take(&folder, "a").unwrap().is_none());
        let _other = NameLock::try_take(&folder, "b").unwrap().unwrap();
        drop(first);
        NameLock::wait(&folder, "a").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn the_lock_of_a_killed_process_is_free() {
        let place = tempfile::tempdir().unwrap();
        let lock = NameLock::try_take(place.path(), "a").unwrap().unwrap();
        // Inherited by the child alone: what it holds goes when it is killed.
        let kept = rustix::io::dup(&lock.file).unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        drop(lock);
        drop(kept);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(NameLock::try_take(place.path(), "a").unwrap().is_some());
    }
}
