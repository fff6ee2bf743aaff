//! Limits of a control group: read bandwidth of a disk, and shrinking its memory.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::cgroup::{Group, Tree, trees};

/// A block device by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    major: u32,
    minor: u32,
}

impl Disk {
    /// The device of a node.
    ///
    /// # Errors
    /// The node is not there.
    pub fn of(node: &Path) -> Result<Self, Error> {
        let number = fs::metadata(node).map_err(Error::io("cannot look at", node))?.rdev();
        Ok(Disk { major: libc::major(number), minor: libc::minor(number) })
    }

    /// Its numbers in the kernel's form, such as `7:0`.
    pub fn key(self) -> String {
        format!("{}:{}", self.major, self.minor)
    }
}

impl Group {
    /// Limits reads from a disk, in bytes per second, and reads the limit back.
    ///
    /// # Errors
    /// This host cannot, or sets another limit.
    pub fn limit_reads(&self, disk: Disk, bytes_per_s: u64) -> Result<(), Error> {
        let (path, is_two) = self.io_file("blkio.throttle.read_bps_device", "io.max").ok_or_else(|| {
            Error::Refused(
                "control groups of this host cannot limit reads: there is no blkio or io controller. Leave read_mb_s out"
                    .to_owned(),
            )
        })?;
        let key = disk.key();
        let line = if is_two { format!("{key} rbps={bytes_per_s}") } else { format!("{key} {bytes_per_s}") };
        fs::write(&path, &line).map_err(Error::io(&format!("cannot write {line:?} to"), &path))?;
        match self.read_limit(disk) {
            Some(found) if found == bytes_per_s => Ok(()),
            found => Err(Error::Failed(format!("{} says {found:?}, not {bytes_per_s}", path.display()))),
        }
    }

    /// Limit of reads from a disk, in bytes per second; `None` if there is none.
    pub fn read_limit(&self, disk: Disk) -> Option<u64> {
        let (path, is_two) = self.io_file("blkio.throttle.read_bps_device", "io.max")?;
        let text = fs::read_to_string(path).ok()?;
        of_disk(&text, disk, if is_two { "rbps=" } else { "" })
    }

    /// Bytes read from a disk since the group was made; `None` if the host does not count them.
    pub fn read_bytes(&self, disk: Disk) -> Option<u64> {
        let (path, is_two) = self.io_file("blkio.throttle.io_service_bytes", "io.stat")?;
        let text = fs::read_to_string(path).ok()?;
        // A disk without requests has no line.
        Some(of_disk(&text, disk, if is_two { "rbytes=" } else { "Read " }).unwrap_or(0))
    }

    /// Reclaims file pages until the group uses at most `bytes`, and sets that as its limit.
    ///
    /// # Errors
    /// There is no such group, or its memory cannot be reclaimed.
    pub fn shrink_memory(&self, bytes: u64) -> Result<(), Error> {
        for attempt in 0..20 {
            if attempt > 0 {
                sleep(Duration::from_millis(50));
            }
            // In version 2 a limit below the used memory kills processes. memory.high only reclaims pages and is set first.
            if let Some(high) =
                self.memory_file("", "memory.high").filter(|path| path.ends_with("memory.high"))
            {
                fs::write(&high, bytes.to_string()).map_err(Error::io("cannot write", &high))?;
                let used = self.memory().map_or(0, |memory| memory.used_bytes);
                fs::write(&high, "max").map_err(Error::io("cannot write", &high))?;
                if used > bytes {
                    continue;
                }
            }
            // Version 1 refuses a limit that it cannot reach.
            if self.limit_memory(bytes).is_ok() {
                return Ok(());
            }
        }
        let used = self.memory().map_or(0, |memory| memory.used_bytes);
        Err(Error::Failed(format!(
            "control group {}: memory in use cannot be reduced to the limit (found {used} bytes, expected at most {bytes}). Allow more memory",
            self.name()
        )))
    }

    /// Restores the memory limit that [`Group::memory`] returned; `None` is no limit. A removed group needs none.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn restore_memory(&self, limit_bytes: Option<u64>) -> Result<(), Error> {
        let Some(path) = self.memory_file("memory.limit_in_bytes", "memory.max").filter(|path| path.exists())
        else {
            return Ok(());
        };
        let none = if path.ends_with("memory.max") { "max" } else { "-1" };
        let text = limit_bytes.map_or(none.to_owned(), |bytes| bytes.to_string());
        fs::write(&path, text).map_err(Error::io("cannot write", &path))
    }

    /// Its file of that name, and whether it is one of version 2.
    pub(crate) fn io_file(&self, one: &str, two: &str) -> Option<(PathBuf, bool)> {
        trees().iter().find_map(|tree| match tree {
            Tree::Blkio(top) => Some((top.join(self.name()).join(one), false)),
            Tree::Two { top, io: true, .. } => Some((top.join(self.name()).join(two), true)),
            _ => None,
        })
    }
}

/// The number behind a word on the line of a disk.
pub(crate) fn of_disk(text: &str, disk: Disk, word: &str) -> Option<u64> {
    let key = disk.key();
    let lines = text.lines().filter_map(|line| line.strip_prefix(&key)?.strip_prefix(' '));
    lines.filter_map(|rest| rest.split_once(word)).find_map(|(_, rest)| {
        let digits = rest.split_ascii_whitespace().next()?;
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_of_numbers_are_read() {
        let disk = Disk { major: 7, minor: 1 };
        let one = "7:12 Read 9\n7:1 Read 4096\n7:1 Write 5\nTotal 10\n";
        assert_eq!(of_disk(one, disk, "Read "), Some(4096));
        assert_eq!(of_disk("7:1 2000000\n", disk, ""), Some(2_000_000));
        let two = "7:1 rbytes=10 wbytes=20 rios=1\n";
        assert_eq!(of_disk(two, disk, "rbytes="), Some(10));
        assert_eq!(of_disk("7:1 rbps=max wbps=1\n", disk, "rbps="), None);
        assert_eq!(of_disk("", disk, "Read "), None);
    }
}
