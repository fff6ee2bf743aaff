//! File systems of the host, from `/proc/self/mountinfo`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use weir_host::mounts::{self, Mount};

use super::fact::Fact;
use crate::Disk;

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileSystem {
    /// Its type, such as `ext4`.
    pub kind: String,
    /// Mount source, such as `/dev/loop3`.
    pub source: String,
    /// `major:minor`.
    pub device: String,
    /// Options of the mount, such as `rw,relatime`.
    pub mount_options: String,
    /// Options of the file system itself, such as `rw,stripe=64`.
    pub super_options: String,
    /// Size and free space, in bytes, and what may be named.
    pub space: Fact<Space>,
}

/// `statfs` of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Space {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes in all.
    pub size_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
}

/// File system type of a path.
pub(super) fn type_of(path: &Path) -> Fact<String> {
    Fact::from_option(mounts::holding(path).ok().map(|mount| mount.fs_type), "no mount holds the path")
}

/// File systems of `paths` and those on `disks`, by mount point.
pub(super) fn read(disks: &[Disk], paths: &[&Path]) -> BTreeMap<String, FileSystem> {
    let is_on_disk = |mount: &Mount| {
        let (major, minor) = mount.device;
        disks.iter().any(|disk| mount.is_on((disk.major, disk.minor)))
            || is_partition_of(&format!("{major}:{minor}"), disks)
    };
    let on_disks = mounts::own().unwrap_or_default().into_iter().filter(is_on_disk);
    let of_paths = paths.iter().filter_map(|path| mounts::holding(path).ok());
    on_disks.chain(of_paths).map(|mount| (mount.point.display().to_string(), describe(mount))).collect()
}

fn describe(mount: Mount) -> FileSystem {
    let (major, minor) = mount.device;
    FileSystem {
        kind: mount.fs_type,
        source: mount.source.display().to_string(),
        device: format!("{major}:{minor}"),
        mount_options: mount.options,
        super_options: mount.super_options,
        space: space(&mount.point),
    }
}

fn is_partition_of(number: &str, disks: &[Disk]) -> bool {
    let Ok(sysfs) = fs::canonicalize(format!("/sys/dev/block/{number}")) else { return false };
    let parent = sysfs.parent().and_then(Path::file_name);
    sysfs.join("partition").exists()
        && disks.iter().any(|disk| parent == Some(std::ffi::OsStr::new(&*disk.name)))
}

fn space(at: &Path) -> Fact<Space> {
    match weir_host::space::of(at) {
        Ok(found) => Fact::Known(Space {
            block_bytes: found.block_bytes,
            size_bytes: found.size_bytes,
            free_bytes: found.free_bytes,
        }),
        Err(error) => Fact::missing(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_with_its_space() {
        let found = read(&[], &[Path::new("/")]);
        assert!(found["/"].space.known().unwrap().size_bytes > 0);
    }
}
