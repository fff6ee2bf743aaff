//! The file system of a folder.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_host::{Error, mounts};

/// The file system of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystemOf {
    /// Its type, as in `/proc/self/mountinfo`, such as `ext4` or `fuse.glusterfs`.
    pub fs_type: String,
    /// Its mount point.
    pub mounted_at: PathBuf,
}

impl FileSystemOf {
    /// Finds the file system of a folder.
    ///
    /// # Errors
    /// The folder is absent.
    pub fn find(folder: &Path) -> Result<Self, Error> {
        let folder = folder
            .canonicalize()
            .map_err(|error| Error::Refused(format!("{}: {error}. Name a folder", folder.display())))?;
        let mount = mounts::holding(&folder)?;
        Ok(FileSystemOf { fs_type: mount.fs_type, mounted_at: mount.point })
    }

    /// Whether its files are only pages of the page cache, as on tmpfs.
    pub fn is_memory(&self) -> bool {
        mounts::is_memory(&self.fs_type)
    }
}
