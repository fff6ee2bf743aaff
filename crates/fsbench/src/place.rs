//! The file system of a folder.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Error;

/// The file system of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystemOf {
    /// Its type, as in `/proc/self/mountinfo`, such as `ext4` or `fuse.glusterfs`.
    pub fs_type: String,
    /// Where it is mounted.
    pub mounted_at: PathBuf,
}

impl FileSystemOf {
    /// Finds it.
    ///
    /// # Errors
    /// The folder is not there.
    pub fn find(folder: &Path) -> Result<Self, Error> {
        let folder = folder
            .canonicalize()
            .map_err(|error| Error::Refused(format!("{}: {error}; name a folder", folder.display())))?;
        let path = Path::new("/proc/self/mountinfo");
        let table = fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
        in_table(&table, &folder)
            .ok_or_else(|| Error::Failed(format!("{}: no mount above it is known", folder.display())))
    }

    /// Whether its files are pages of the page cache and nothing else.
    pub fn is_memory(&self) -> bool {
        ["tmpfs", "ramfs", "devtmpfs"].contains(&self.fs_type.as_str())
    }
}

/// Type of what is mounted at exactly this path; `None` if nothing is. The path itself is not touched, so that one whose
/// server has died can be asked about.
pub fn mounted_at(point: &Path) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let found = in_table(&table, point)?;
    (found.mounted_at == point).then_some(found.fs_type)
}

/// The mount that a path is on: the longest one above it, and of equal ones the last.
fn in_table(table: &str, folder: &Path) -> Option<FileSystemOf> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mounted_at = unescaped(left.split(' ').nth(4)?);
        Some(FileSystemOf { fs_type: right.split(' ').next()?.to_owned(), mounted_at })
    };
    let above = |mount: &FileSystemOf| folder.starts_with(&mount.mounted_at);
    table.lines().filter_map(mount).filter(above).max_by_key(|mount| mount.mounted_at.as_os_str().len())
}

/// The kernel writes blanks and backslashes as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut parts = text.split('\\');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part[3..].bytes());
            }
            None => bytes.extend(part.bytes()),
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_and_last_mount_is_taken() {
        let table = "1 0 254:0 / / rw - ext4 /dev/vda rw\n\
                     2 1 0:5 / /mnt rw shared:2 - tmpfs tmpfs rw\n\
                     3 1 0:6 / /mnt rw - xfs /dev/loop0 rw\n\
                     4 1 0:7 / /mnt/a\\040b rw - fuse.mfs mfs rw\n";
        let of = |path: &str| in_table(table, Path::new(path)).unwrap().fs_type;
        assert_eq!(of("/usr"), "ext4");
        assert_eq!(of("/mnt/x"), "xfs");
        assert_eq!(of("/mnt/a b/c"), "fuse.mfs");
        assert_eq!(of("/mnt/a bc"), "xfs");
    }
}
