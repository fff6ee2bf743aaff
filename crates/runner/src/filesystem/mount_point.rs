//! Mount point of a device's file system, and the run's folder on it.

use std::path::PathBuf;

use weir_host::owned::Owner;

/// Where a device's file system is mounted.
pub(crate) struct MountPoint {
    pub(crate) device: String,
    pub(crate) source: PathBuf,
    pub(crate) path: PathBuf,
    /// The run's own folder on it.
    pub(crate) files: PathBuf,
    /// Whose marker the run's folder bears, where the file system outlives the run.
    pub(crate) owner: Option<Owner>,
}
