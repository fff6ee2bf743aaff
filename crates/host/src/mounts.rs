//! The table of mounts, of this process's namespace or of all; and unmounting.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
pub use rustix::mount::UnmountFlags;

use crate::Error;

const TABLE: &str = "/proc/self/mountinfo";
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// One line of `/proc/PID/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the device, as files on it show it.
    pub device: (u32, u32),
    /// Where.
    pub point: PathBuf,
    /// Options of the mount, such as `rw,relatime`.
    pub options: String,
    /// Such as `ext4` or `fuse.glusterfs`.
    pub fs_type: String,
    /// What: a node for file systems on devices, any text for others.
    pub source: PathBuf,
    /// Options of the file system itself, such as `rw,stripe=64`.
    pub super_options: String,
}

impl Mount {
    /// Whether it lies on a block device. btrfs shows a device number of its own: there the source tells.
    #[must_use]
    pub fn is_on(&self, device: (u32, u32)) -> bool {
        self.device == device || self.source_device() == Some(device)
    }

    /// The numbers of the block device that the source is a node of, if it is one.
    #[must_use]
    pub fn source_device(&self) -> Option<(u32, u32)> {
        // Other sources are words, which could be names of files in the current folder.
        let node = Some(&self.source).filter(|source| source.is_absolute())?;
        let found = fs::metadata(node).ok().filter(|found| found.file_type().is_block_device())?;
        Some((major(found.rdev()), minor(found.rdev())))
    }

    /// Whether an option of the mount or of the file system is set.
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').chain(self.super_options.split(',')).any(|option| option == name)
    }
}

/// Whether files of a type of file system are pages of the page cache and nothing else.
#[must_use]
pub fn is_memory(fs_type: &str) -> bool {
    ["tmpfs", "ramfs", "devtmpfs"].contains(&fs_type)
}

/// Everything that this process sees mounted, in order.
///
/// # Errors
/// The table cannot be read.
pub fn own() -> Result<Vec<Mount>, Error> {
    Ok(parse(&fs::read(TABLE).map_err(Error::io("cannot read", Path::new(TABLE)))?))
}

/// The mount at exactly this point (the topmost of several). The path itself is not accessed: the server of a mount may have died.
///
/// # Errors
/// The table cannot be read.
pub fn at(point: &Path) -> Result<Option<Mount>, Error> {
    Ok(own()?.into_iter().rev().find(|mount| mount.point == point))
}

/// The mounts of a block device, the last one first: the order to unmount them in.
///
/// # Errors
/// The table cannot be read.
pub fn of_device(device: (u32, u32)) -> Result<Vec<Mount>, Error> {
    Ok(own()?.into_iter().rev().filter(|mount| mount.is_on(device)).collect())
}

/// The mount that a path lies on: the innermost one above it, and of several at one point the last. Links are resolved where the
/// path exists.
///
/// # Errors
/// The table cannot be read, or nothing is mounted above.
pub fn holding(path: &Path) -> Result<Mount, Error> {
    innermost(own()?, &path.canonicalize().unwrap_or_else(|_| path.to_owned()))
        .ok_or_else(|| Error::Failed(format!("{}: no mount above it is known", path.display())))
}

fn innermost(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    let above = |mount: &Mount| path.starts_with(&mount.point);
    mounts.into_iter().filter(above).max_by_key(|mount| mount.point.components().count())
}

/// Mounts of the mount namespaces of all processes, each with the pid of a process in the namespace.
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
            let table = fs::read(entry.path().join("mountinfo")).unwrap_or_default();
            all.extend(parse(&table).into_iter().map(|mount| (pid, mount)));
        }
    }
    all
}

/// Unmounts with umount2(2), once.
///
/// # Errors
/// The kernel refuses.
pub fn unmount(point: &Path, flags: UnmountFlags) -> io::Result<()> {
    Ok(rustix::mount::unmount(point, flags)?)
}

/// Unmounts with umount(8), which calls the helper of a network file system; nothing being mounted is fine. A busy mount is
/// tried again for `limit`: a dying process may hold it.
///
/// # Errors
/// It is still mounted then, or the table of mounts cannot be read.
pub fn unmount_patiently(point: &Path, limit: Duration) -> Result<(), Error> {
    let began = Instant::now();
    while at(point)?.is_some() {
        let reason = match Command::new("umount").arg(point).output() {
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("umount: {error}"),
        };
        if at(point)?.is_some() {
            if began.elapsed() >= limit {
                return Err(Error::Failed(format!("{}: still mounted: {reason}", point.display())));
            }
            sleep(RETRY_INTERVAL);
        }
    }
    Ok(())
}

/// `Documentation/filesystems/proc.rst`, section 3.5: `36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/root rw`. The optional
/// fields end with `-`.
#[doc(hidden)]
pub fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    let line = |line: &[u8]| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let dash = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
        let text = |at: usize| Some(String::from_utf8_lossy(fields.get(at)?).into_owned());
        let numbers = text(2)?;
        let (major, minor) = numbers.split_once(':')?;
        Some(Mount {
            device: (major.parse().ok()?, minor.parse().ok()?),
            point: unescape(fields[4]),
            options: text(5)?,
            fs_type: text(dash + 1)?,
            source: unescape(fields.get(dash + 2)?),
            super_options: text(dash + 3).unwrap_or_default(),
        })
    };
    mountinfo.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// The kernel writes blanks, tabs, line ends and backslashes in paths as `\040`.
pub(crate) fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
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
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    /// A process without a free descriptor cannot read the table. The limit holds for a child that runs this test alone.
    #[test]
    fn an_unreadable_table_is_an_error_and_no_absent_mount() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        const CHILD: &str = "WEIR_WITHOUT_DESCRIPTORS";
        if std::env::var_os(CHILD).is_some() {
            let limit = Rlimit { current: Some(0), ..getrlimit(Resource::Nofile) };
            setrlimit(Resource::Nofile, limit).unwrap();
            assert!(at(Path::new("/")).is_err());
            assert!(unmount_patiently(Path::new("/nonesuch"), Duration::ZERO).is_err());
            return;
        }
        let name = "mounts::tests::an_unreadable_table_is_an_error_and_no_absent_mount";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let done = child.args(["--exact", name, "--nocapture"]).env(CHILD, "yes").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn mountinfo_is_read_with_its_escapes_and_optional_fields() {
        let text = b"36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 shared:2 - ext4 /dev/loop3 rw,errors=continue\n\
                     37 35 0:21 / /proc rw - proc proc rw\nnonsense\n38 35 x:1 / /y rw - proc proc rw\n\
                     36 35 7:3 / /mnt rw\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].device, found[0].point.to_str()), ((98, 0), Some("/mnt/a b")));
        assert_eq!((found[0].fs_type.as_str(), found[0].source.to_str()), ("ext4", Some("/dev/loop3")));
        let options = (found[0].options.as_str(), found[0].super_options.as_str());
        assert_eq!(options, ("rw,noatime", "rw,errors=continue"));
        assert!(found[0].has_option("noatime") && !found[0].has_option("errors"));
    }

    #[test]
    fn a_path_of_any_bytes_is_kept() {
        let found = parse(b"36 35 98:0 / /mnt/\xff\\011 rw - ext4 /dev/loop3 rw\n");
        assert_eq!(found[0].point, Path::new(OsStr::from_bytes(b"/mnt/\xff\t")));
    }

    #[test]
    fn the_innermost_and_last_mount_is_taken() {
        let table = b"1 0 254:0 / / rw - ext4 /dev/vda rw\n\
                      2 1 0:5 / /mnt rw shared:2 - tmpfs tmpfs rw\n\
                      3 1 0:6 / /mnt rw - xfs /dev/loop0 rw\n\
                      4 1 0:7 / /mnt/a\\040b rw - fuse.mfs mfs rw\n";
        let of = |path: &str| innermost(parse(table), Path::new(path)).unwrap().fs_type;
        assert_eq!(of("/usr"), "ext4");
        assert_eq!(of("/mnt/x"), "xfs");
        assert_eq!(of("/mnt/a b/c"), "fuse.mfs");
        assert_eq!(of("/mnt/a bc"), "xfs");
    }

    #[test]
    fn the_root_is_mounted_here_and_in_some_namespace() {
        assert!(at(Path::new("/")).unwrap().is_some());
        assert!(of_all_namespaces().iter().any(|(_, mount)| mount.point == Path::new("/")));
        assert!(at(Path::new("/nonexistent")).unwrap().is_none());
        assert_eq!(holding(Path::new("/nonexistent")).unwrap().point, Path::new("/"));
        unmount_patiently(Path::new("/nonexistent"), Duration::ZERO).unwrap();
    }
}
