//! Detached mount of a kernel file system, which no other process sees.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// A detached mount: it ends when dropped, and with the process.
#[derive(Debug)]
pub(crate) struct DetachedMount {
    root: OwnedFd,
}

impl DetachedMount {
    /// Mounts a file system that needs no source, such as `tracefs` (Linux 5.2 or later).
    pub(crate) fn new(kind: &CStr) -> io::Result<Self> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let root = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        Ok(DetachedMount { root })
    }

    /// Its root, as a path for this process while the mount exists.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }
}
