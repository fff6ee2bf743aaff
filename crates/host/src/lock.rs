//! Locks on folders, so that two processes do not work in one. A lock goes with its process, however that ends.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::Identity;

/// Name of the file in a folder that is locked.
pub const LOCK_FILE: &str = ".weir-lock";

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A folder of which this process has the lock until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    _file: File,
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
            // SAFETY: the descriptor is open; flock touches no memory.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                break;
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::WouldBlock {
                return Err(Error::io("cannot lock", &path)(error));
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
        Ok(FolderLock { path, _file: file })
    }

    /// The locked file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
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
}
