//! Dropping files from the page cache.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::Command;

use serde::Serialize;

use crate::Error;

/// How files are made cold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// `posix_fadvise(POSIX_FADV_DONTNEED)`, for each file: nothing else on the host notices.
    Fadvise,
    /// `/proc/sys/vm/drop_caches`: all clean pages, names and attributes of the whole host. Takes root.
    Drop,
    /// A shell command that unmounts the file system and mounts it again, so that a client's own cache goes, too.
    Remount(String),
}

impl Cold {
    /// Makes files cold, once their data are safe below.
    ///
    /// # Errors
    /// The kernel or the command refuses.
    pub(crate) fn make(&self, files: &[PathBuf]) -> Result<(), Error> {
        match self {
            Cold::Fadvise => files.iter().try_for_each(|path| {
                let file = File::open(path).map_err(Error::io("cannot open", path))?;
                // SAFETY: the descriptor is open; length 0 is to the end of the file.
                match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
                    0 => Ok(()),
                    code => Err(Error::io("cannot drop the pages of", path)(
                        std::io::Error::from_raw_os_error(code),
                    )),
                }
            }),
            Cold::Drop => {
                let path = PathBuf::from("/proc/sys/vm/drop_caches");
                fs::write(&path, "3").map_err(Error::io("cannot write", &path))
            }
            Cold::Remount(command) => {
                let output = Command::new("sh").args(["-ec", command]).current_dir("/").output();
                let output = output.map_err(|error| Error::Failed(format!("sh: {error}")))?;
                if output.status.success() {
                    return Ok(());
                }
                let words = String::from_utf8_lossy(&output.stderr);
                Err(Error::Failed(format!("`{command}` failed ({}): {}", output.status, words.trim())))
            }
        }
    }

    /// As people write it.
    pub fn name(&self) -> &'static str {
        match self {
            Cold::Fadvise => "fadvise",
            Cold::Drop => "drop",
            Cold::Remount(_) => "remount",
        }
    }
}
