//! Finding the tracing file system, or mounting it privately.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// Where it is mounted if it is mounted nowhere else.
pub(super) const PRIVATE_MOUNT: &str = "/run/weir/tracefs";

/// The tracing file system.
#[derive(Debug)]
pub(super) struct Tracefs {
    pub(super) root: PathBuf,
    /// Whether it has to be unmounted again.
    ours: bool,
}

impl Tracefs {
    /// Finds it, or mounts it.
    pub(super) fn open() -> Result<Self, Error> {
        if let Some(root) = find_mount()? {
            let ours = root == Path::new(PRIVATE_MOUNT);
            return Ok(Tracefs { root, ours });
        }
        let root = Path::new(PRIVATE_MOUNT);
        fs::create_dir_all(root).map_err(Error::io(root))?;
        mount(root).map_err(|error| {
            Error::Ftrace(format!("tracefs is not mounted and cannot be ({error}); root is needed"))
        })?;
        Ok(Tracefs { root: root.to_owned(), ours: true })
    }

    /// Unmounts it if we mounted it.
    pub(super) fn close(self) {
        if self.ours {
            unmount(&self.root);
        }
    }
}

fn find_mount() -> Result<Option<PathBuf>, Error> {
    let path = Path::new("/proc/self/mountinfo");
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    Ok(text.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_tracefs = after.split(' ').next() == Some("tracefs");
        let at = PathBuf::from(before.split(' ').nth(4)?);
        // It may be mounted where this process cannot look.
        (is_tracefs && at.join("current_tracer").exists()).then_some(at)
    }))
}

fn mount(at: &Path) -> io::Result<()> {
    let target = CString::new(at.as_os_str().as_bytes())?;
    // SAFETY: all strings end in NUL and live through the call; tracefs takes no data.
    let result = unsafe {
        libc::mount(c"none".as_ptr(), target.as_ptr(), c"tracefs".as_ptr(), 0, std::ptr::null())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn unmount(at: &Path) {
    if let Ok(target) = CString::new(at.as_os_str().as_bytes()) {
        // SAFETY: the string ends in NUL and lives through the call. Lazily, since a reader may still hold a file.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
    let _ = fs::remove_dir(at);
}
