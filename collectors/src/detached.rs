//! Detached mount of a kernel file system, which no other process sees.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// `FSCONFIG_CMD_CREATE` of `include/uapi/linux/mount.h`.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// A detached mount: it ends when dropped, and with the process.
#[derive(Debug)]
pub(crate) struct DetachedMount {
    root: OwnedFd,
}

impl DetachedMount {
    /// Mounts a file system that needs no source, such as `tracefs` (Linux 5.2 or later).
    pub(crate) fn new(kind: &CStr) -> io::Result<Self> {
        // SAFETY: the name ends in NUL; the call returns a new descriptor or -1.
        let context = unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), libc::FSOPEN_CLOEXEC) };
        let context = owned(context)?;
        let null = std::ptr::null::<libc::c_char>();
        // SAFETY: the descriptor is open; this command takes neither key nor value.
        let created = unsafe {
            libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, null, null, 0)
        };
        if created != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open; the call returns a new descriptor or -1.
        let root = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), libc::FSMOUNT_CLOEXEC, 0) };
        Ok(DetachedMount { root: owned(root)? })
    }

    /// Its root, as a path for this process while the mount exists.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd()))
    }
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just given us this descriptor, and no one else owns it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
