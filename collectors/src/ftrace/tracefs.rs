//! Finding tracefs, or mounting it where no other process sees it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::detached::DetachedMount;

/// The tracing file system.
#[derive(Debug)]
pub(super) struct Tracefs {
    pub(super) root: PathBuf,
    /// Holds the mount if there was none.
    _mount: Option<DetachedMount>,
}

impl Tracefs {
    /// Finds it, or mounts it.
    pub(super) fn open() -> Result<Self, Error> {
        if let Some(root) = find_mount()? {
            return Ok(Tracefs { root, _mount: None });
        }
        let mount = DetachedMount::new(c"tracefs").map_err(|error| {
            Error::Ftrace(format!("tracefs is not mounted and cannot be ({error}): root is needed"))
        })?;
        Ok(Tracefs { root: mount.root(), _mount: Some(mount) })
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
