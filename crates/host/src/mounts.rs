//! The table of mounts, of this process's namespace or of all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One line of `/proc/PID/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the device, as files on it show it.
    pub device: (u32, u32),
    /// Where.
    pub point: PathBuf,
    /// Such as `ext4` or `fuse.glusterfs`.
    pub fs_type: String,
    /// What: a node for file systems on devices, any text for others.
    pub source: PathBuf,
}

/// Everything that this process sees mounted, in order.
#[must_use]
pub fn own() -> Vec<Mount> {
    parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// What is mounted at exactly this point (the topmost, if there are several).
#[must_use]
pub fn at(point: &Path) -> Option<Mount> {
    own().into_iter().rev().find(|mount| mount.point == point)
}

/// What is mounted in any mount namespace that a process is in, with the pid of one of these processes.
#[must_use]
pub fn of_all_namespaces() -> Vec<(u32, Mount)> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(namespace) = fs::read_link(entry.path().join("ns/mnt")) else { continue };
        if seen.insert(namespace) {
            let table = fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
            all.extend(parse(&table).into_iter().map(|mount| (pid, mount)));
        }
    }
    all
}

fn parse(mountinfo: &str) -> Vec<Mount> {
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let (mut left, mut right) = (left.split(' '), right.split(' '));
        let (major, minor) = left.nth(2)?.split_once(':')?;
        Some(Mount {
            device: (major.parse().ok()?, minor.parse().ok()?),
            point: unescape(left.nth(1)?),
            fs_type: right.next()?.to_owned(),
            source: unescape(right.next()?),
        })
    };
    mountinfo.lines().filter_map(line).collect()
}

/// The kernel writes blanks, tabs, line ends and backslashes in paths as `\040`.
pub(crate) fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if byte == b'\\' => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read_with_its_escapes_and_optional_fields() {
        let text = "36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 shared:2 - ext4 /dev/loop3 rw,errors=continue\n\
                    37 35 0:21 / /proc rw - proc proc rw\nnonsense\n38 35 x:1 / /y rw - proc proc rw\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].device, found[0].point.to_str()), ((98, 0), Some("/mnt/a b")));
        assert_eq!((found[0].fs_type.as_str(), found[0].source.to_str()), ("ext4", Some("/dev/loop3")));
    }

    #[test]
    fn the_root_is_mounted_here_and_in_some_namespace() {
        assert!(at(Path::new("/")).is_some());
        assert!(of_all_namespaces().iter().any(|(_, mount)| mount.point == Path::new("/")));
        assert!(at(Path::new("/nonexistent")).is_none());
    }
}
