//! File systems, from `/proc/self/mountinfo`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::fact::Fact;
use crate::Disk;

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// Its type, such as `ext4`.
    pub kind: String,
    /// What is mounted, such as `/dev/loop3`.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes in all.
    pub size_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
}

struct Mount {
    at: PathBuf,
    file_system: FileSystem,
}

/// Takes a line apart.
pub(super) fn fuzzing(line: &str) {
    let _ = parse(line);
}

/// One line of mountinfo (`Documentation/filesystems/proc.rst`, section 3.5).
fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let mut after = after.splitn(3, ' ');
    let at = PathBuf::from(unescape(before.get(4)?));
    let file_system = FileSystem {
        kind: after.next()?.to_owned(),
        source: unescape(after.next()?),
        device: (*before.get(2)?).to_owned(),
        mount_options: (*before.get(5)?).to_owned(),
        super_options: after.next()?.to_owned(),
        space: Fact::missing("not asked for"),
    };
    Some(Mount { at, file_system })
}

/// Blanks and the like are written as three octal digits after a backslash.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

fn all() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// The mount that a path is on: the last of those with the longest mount point.
fn find<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.at))
        .max_by_key(|mount| mount.at.components().count())
}

/// The type of the file system that a path is on.
pub(super) fn type_of(path: &Path) -> Fact<String> {
    let mounts = all();
    Fact::from_option(
        find(&mounts, path).map(|mount| mount.file_system.kind.clone()),
        "no mount holds the path",
    )
}

/// The file systems that `paths` are on and those on `disks`, by mount point.
pub(super) fn read(disks: &[Disk], paths: &[&Path]) -> BTreeMap<String, FileSystem> {
    let mounts = all();
    let numbers: Vec<String> = disks.iter().map(|disk| format!("{}:{}", disk.major, disk.minor)).collect();
    let on_disks = mounts.iter().filter(|mount| {
        numbers.contains(&mount.file_system.device)
            || is_partition_of(&mount.file_system.device, disks)
            || disks.iter().any(|disk| mount.file_system.source == format!("/dev/{}", disk.name))
    });
    let of_paths = paths.iter().filter_map(|path| find(&mounts, path));
    on_disks
        .chain(of_paths)
        .map(|mount| {
            let mut file_system = mount.file_system.clone();
            file_system.space = space(&mount.at);
            (mount.at.display().to_string(), file_system)
        })
        .collect()
}

fn is_partition_of(number: &str, disks: &[Disk]) -> bool {
    let Ok(sysfs) = fs::canonicalize(format!("/sys/dev/block/{number}")) else { return false };
    let parent = sysfs.parent().and_then(Path::file_name);
    sysfs.join("partition").exists()
        && disks.iter().any(|disk| parent == Some(std::ffi::OsStr::new(&*disk.name)))
}

fn space(at: &Path) -> Fact<Space> {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(at.as_os_str().as_bytes()) else {
        return Fact::missing("the path has a NUL byte");
    };
    // SAFETY: all-zero bytes are a valid value of this plain structure of numbers.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in NUL, and both it and `found` live through the call.
    if unsafe { libc::statvfs(path.as_ptr(), &mut found) } != 0 {
        return Fact::missing(std::io::Error::last_os_error().to_string());
    }
    Fact::Known(Space {
        block_bytes: found.f_bsize,
        size_bytes: found.f_blocks * found.f_frsize,
        free_bytes: found.f_bfree * found.f_frsize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_optional_fields_and_escapes() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let mount = parse(line).unwrap();
        assert_eq!(mount.at, Path::new("/mnt 2"));
        assert_eq!((&*mount.file_system.kind, &*mount.file_system.source), ("ext3", "/dev/root"));
        assert_eq!(mount.file_system.super_options, "rw,errors=continue");
        assert_eq!((&*mount.file_system.device, &*mount.file_system.mount_options), ("98:0", "rw,noatime"));
    }

    #[test]
    fn the_root_is_found_with_its_space() {
        let found = read(&[], &[Path::new("/")]);
        assert!(found["/"].space.known().unwrap().size_bytes > 0);
    }
}
