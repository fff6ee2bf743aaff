//! What is mounted: /proc/self/mountinfo.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::state::block_device::BlockDevice;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub major: u32,
    pub minor: u32,
    pub mountpoint: PathBuf,
    pub fs_type: String,
    pub source: String,
}

/// All mounts, in the order in which they were made.
pub(crate) fn mounts() -> io::Result<Vec<Mount>> {
    Ok(fs::read("/proc/self/mountinfo")?.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The mounts of a block device, last made first. Some file systems (btrfs) show a device number of their own, so the source
/// counts too.
pub(crate) fn mounts_of(device: &BlockDevice) -> io::Result<Vec<Mount>> {
    let is_device = |source: &str| {
        fs::metadata(source).is_ok_and(|meta| {
            meta.file_type().is_block_device() && meta.rdev() == libc::makedev(device.major, device.minor)
        })
    };
    let mut mounts = mounts()?;
    mounts.retain(|mount| {
        (mount.major, mount.minor) == (device.major, device.minor)
            || (mount.source.starts_with('/') && is_device(&mount.source))
    });
    mounts.reverse();
    Ok(mounts)
}

/// The mount at `mountpoint` with that source, if there is one.
pub(crate) fn mount_at(mountpoint: &Path, source: &str) -> io::Result<Option<Mount>> {
    Ok(mounts()?.into_iter().rfind(|mount| mount.mountpoint == mountpoint && mount.source == source))
}

/// Unmounts with the flags of umount2(2).
pub(crate) fn unmount(mountpoint: &Path, flags: libc::c_int) -> io::Result<()> {
    let path = CString::new(mountpoint.as_os_str().as_bytes())?;
    // SAFETY: `path` is a string that ends with a zero and lives through the call.
    if unsafe { libc::umount2(path.as_ptr(), flags) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes a line apart.
pub(crate) fn fuzzing(line: &[u8]) {
    let _ = parse(line);
}

/// A line: `36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/root rw`. The optional fields end with `-`.
fn parse(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    let numbers = std::str::from_utf8(fields[2]).ok()?;
    let (major, minor) = numbers.split_once(':')?;
    Some(Mount {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        mountpoint: PathBuf::from(OsString::from_vec(unescape(fields[4]))),
        fs_type: text(fields.get(dash + 1)?),
        source: text(fields.get(dash + 2)?),
    })
}

/// Space, tab, newline and backslash are written as `\` and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| byte == b'\\' && digits.iter().all(u8::is_ascii_digit));
        match digits {
            Some(digits) => {
                bytes.push(
                    digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_space_and_optional_fields() {
        let mount =
            parse(br"36 35 7:3 / /mnt/a\040b rw,noatime shared:1 master:2 - ext4 /dev/loop3 rw").unwrap();
        let expected = Mount {
            major: 7,
            minor: 3,
            mountpoint: "/mnt/a b".into(),
            fs_type: "ext4".into(),
            source: "/dev/loop3".into(),
        };
        assert_eq!(mount, expected);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"36 35 7:3 / /mnt rw"), None);
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(mounts().unwrap().iter().any(|mount| mount.mountpoint == Path::new("/")));
    }
}
