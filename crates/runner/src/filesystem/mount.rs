//! Mounts of file systems: mounted, checked and unmounted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir_host::mounts;
use weir_study::FileSystem;

use crate::Error;
use crate::context::child_processes;

/// Mounts a file system and checks the mount.
pub(crate) fn mount(
    filesystem: &FileSystem,
    source: &Path,
    point: &Path,
    size_mib: u64,
) -> Result<(), Error> {
    let Some(kind) = &filesystem.mount_type else { return Ok(()) };
    let mut options = filesystem.mount_options.clone();
    if !filesystem.on_device {
        options = format!("{options},size={size_mib}m");
    }
    child_processes::run(Command::new("mount").args(["-t", kind, "-o", &options]).arg(source).arg(point))?;
    check(filesystem, source, point).map_err(Error::Failed)
}

/// Checks that the wanted file system is mounted: after a silently failed mount, the run would measure the file system below.
pub(crate) fn check(filesystem: &FileSystem, source: &Path, point: &Path) -> Result<(), String> {
    let Some(wanted) = &filesystem.mount_type else { return Ok(()) };
    match mounts::at(point).map_err(|error| error.to_string())? {
        None => Err(format!("{}: nothing is mounted there (expected {wanted})", point.display())),
        Some(found) if !filesystem.is_of_type(&found.fs_type) => {
            Err(format!("{}: wrong mount (found {}, expected {wanted})", point.display(), found.fs_type))
        }
        Some(found) if filesystem.on_device && found.source != source => {
            let (found, wanted) = (found.source.display(), source.display());
            Err(format!("{}: wrong mount (found {found}, expected {wanted})", point.display()))
        }
        Some(_) => Ok(()),
    }
}

/// Unmounts, if anything is mounted. Waits a little for a busy mount, which an ending process may hold.
pub(crate) fn unmount(point: &Path) -> Result<(), String> {
    mounts::unmount_patiently(point, Duration::from_secs(2)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mounted_is_unmounted_already() {
        assert_eq!(unmount(Path::new("/nonexistent")), Ok(()));
    }
}
