//! tracefs: found, or mounted where no other process sees it.

use std::path::PathBuf;

use crate::Error;
use crate::detached::DetachedMount;

/// The tracing file system.
#[derive(Debug)]
pub(super) struct Tracefs {
    pub(super) root: PathBuf,
    /// Own mount, if tracefs was not mounted.
    _mount: Option<DetachedMount>,
}

impl Tracefs {
    /// Finds tracefs, or mounts it.
    pub(super) fn open() -> Result<Self, Error> {
        if let Some(root) = find_mount()? {
            return Ok(Tracefs { root, _mount: None });
        }
        let mount = DetachedMount::new(c"tracefs").map_err(|error| {
            Error::Ftrace(format!("tracefs is not mounted, and mounting failed ({error}). This needs root"))
        })?;
        Ok(Tracefs { root: mount.root(), _mount: Some(mount) })
    }
}

fn find_mount() -> Result<Option<PathBuf>, Error> {
    let mounts = weir_host::mounts::own().map_err(|error| Error::Ftrace(error.to_string()))?;
    let mut points = mounts.into_iter().filter(|mount| mount.fs_type == "tracefs").map(|mount| mount.point);
    // It may be mounted where this process has no access.
    Ok(points.find(|point| point.join("current_tracer").exists()))
}
