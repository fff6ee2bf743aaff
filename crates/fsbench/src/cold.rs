//! Methods of dropping files from caches.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use serde::Serialize;
use weir_host::{Error, page_cache};

/// How files are dropped from caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// `posix_fadvise(POSIX_FADV_DONTNEED)` for each file: it affects nothing else on the host.
    Fadvise,
    /// `/proc/sys/vm/drop_caches`: all clean pages, names and attributes of the whole host. Only root can do it.
    Drop,
    /// A shell command that unmounts and remounts the file system, which drops a client's own cache too.
    Remount(String),
}

impl Cold {
    /// Drops files from caches. Their data must be synced to their device.
    ///
    /// # Errors
    /// The kernel or the command refuses.
    pub(crate) fn make(&self, files: &[PathBuf]) -> Result<(), Error> {
        match self {
            Cold::Fadvise => files.iter().try_for_each(|path| {
                let file = File::open(path).map_err(Error::io("cannot open", path))?;
                page_cache::drop_file(&file).map_err(Error::io("cannot drop the pages of", path))
            }),
            Cold::Drop => page_cache::drop_all(),
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

    /// Name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Cold::Fadvise => "fadvise",
            Cold::Drop => "drop",
            Cold::Remount(_) => "remount",
        }
    }
}
