//! Mount point of a device's file system, and the run's folder there.

use std::path::PathBuf;

use weir_host::owned::Owner;

/// Mount point of a device's file system.
pub(crate) struct MountPoint {
    pub(crate) device: String,
    pub(crate) source: PathBuf,
    pub(crate) path: PathBuf,
    /// The run's folder on the file system.
    pub(crate) files: PathBuf,
    /// Owner in the marker of the run's folder, if the file system outlives the run.
    pub(crate) owner: Option<Owner>,
}
