//! The file system of a folder.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_host::{Error, mounts};

/// The file system of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystemOf {
    /// Its type, as in `/proc/self/mountinfo`, such as `ext4` or `fuse.glusterfs`.
    pub fs_type: String,
    /// Where it is mounted.
    pub mounted_at: PathBuf,
}

impl FileSystemOf {
    /// Finds it.
    ///
    /// # Errors
    /// The folder is not there.
    pub fn find(folder: &Path) -> Result<Self, Error> {
        let folder = folder
            .canonicalize()
            .map_err(|error| Error::Refused(format!("{}: {error}; name a folder", folder.display())))?;
        let mount = mounts::holding(&folder)?;
        Ok(FileSystemOf { fs_type: mount.fs_type, mounted_at: mount.point })
    }

    /// Whether its files are pages of the page cache and nothing else.
    pub fn is_memory(&self) -> bool {
        mounts::is_memory(&self.fs_type)
    }
}
