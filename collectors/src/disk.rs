//! Disks by name, and their kernel counters.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::Error;

/// A whole disk of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name, such as `loop3`.
    pub name: Arc<str>,
    /// Major device number.
    pub major: u32,
    /// Minor device number.
    pub minor: u32,
}

impl Disk {
    /// Finds a disk by path (`/dev/loop3`, `/dev/disk/by-id/...`) or kernel name (`loop3`).
    ///
    /// # Errors
    /// The device is absent, not a block device, a partition, or a bio-based device without requests (such as zram and device
    /// mapper).
    pub fn find(device: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Device { device: device.to_owned(), reason };
        let path = if device.contains('/') { PathBuf::from(device) } else { Path::new("/dev").join(device) };
        let metadata = fs::metadata(&path).map_err(|error| refuse(format!("no such device: {error}")))?;
        if !metadata.file_type().is_block_device() {
            return Err(refuse("it is not a block device".to_owned()));
        }
        let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
        let sysfs = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))
            .map_err(|error| refuse(format!("the device is not in /sys/dev/block: {error}")))?;
        let name_of = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        if sysfs.join("partition").exists() {
            let whole = sysfs.parent().and_then(name_of).unwrap_or_default();
            return Err(refuse(format!("it is a partition. Name its disk, /dev/{whole}")));
        }
        if !sysfs.join("mq").exists() {
            return Err(refuse(
                "it is bio-based (as zram, md and device mapper are) and has no requests. Name the disks below it"
                    .to_owned(),
            ));
        }
        let name = name_of(&sysfs).ok_or_else(|| refuse("the device has no name in /sys".to_owned()))?;
        Ok(Disk { name: name.into(), major, minor })
    }

    /// The kernel's internal `dev_t`: `major << 20 | minor`.
    pub fn kernel_dev(&self) -> u32 {
        self.major << 20 | self.minor
    }

    /// `/sys/block/NAME`.
    pub fn sysfs(&self) -> PathBuf {
        Path::new("/sys/block").join(&*self.name)
    }

    /// Reads `/sys/block/NAME/stat`.
    ///
    /// # Errors
    /// The disk is absent.
    pub fn statistics(&self) -> Result<DiskStatistics, Error> {
        let path = self.sysfs().join("stat");
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        DiskStatistics::parse(&text).ok_or_else(|| Error::Io {
            path,
            source: std::io::Error::other(format!("wrong format of the counters (found {:?})", text.trim())),
        })
    }

    /// Whether the kernel keeps these statistics (`queue/iostats`).
    pub fn keeps_statistics(&self) -> bool {
        fs::read_to_string(self.sysfs().join("queue/iostats")).is_ok_and(|text| text.trim() == "1")
    }
}

/// Counters of `/sys/block/DEV/stat` (kernel documentation, `block/stat`); sectors are 512 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiskStatistics {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Flushes of the disk's cache.
    pub flushes: u64,
    /// Bios and requests merged into others.
    pub merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Sectors written.
    pub written_sectors: u64,
    /// Sectors discarded.
    pub discarded_sectors: u64,
    /// Outstanding requests.
    pub in_flight: u64,
}

impl DiskStatistics {
    /// Parses the text.
    pub(crate) fn fuzzing(text: &str) {
        let found = Self::parse(text);
        let _ = found.map(|found| (found.requests(), found.since(&found)));
    }

    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        // 11 fields, 4 more for discards since Linux 4.18, 2 more for flushes since 5.5.
        let at = |index: usize| fields.get(index).copied();
        Some(DiskStatistics {
            reads: at(0)?,
            writes: at(4)?,
            discards: at(11).unwrap_or(0),
            flushes: at(15).unwrap_or(0),
            merges: at(1)?.wrapping_add(at(5)?).wrapping_add(at(12).unwrap_or(0)),
            read_sectors: at(2)?,
            written_sectors: at(6)?,
            discarded_sectors: at(13).unwrap_or(0),
            in_flight: at(8)?,
        })
    }

    /// Increase since `earlier`; `in_flight` is not a difference.
    pub fn since(&self, earlier: &Self) -> Self {
        DiskStatistics {
            reads: self.reads.wrapping_sub(earlier.reads),
            writes: self.writes.wrapping_sub(earlier.writes),
            discards: self.discards.wrapping_sub(earlier.discards),
            flushes: self.flushes.wrapping_sub(earlier.flushes),
            merges: self.merges.wrapping_sub(earlier.merges),
            read_sectors: self.read_sectors.wrapping_sub(earlier.read_sectors),
            written_sectors: self.written_sectors.wrapping_sub(earlier.written_sectors),
            discarded_sectors: self.discarded_sectors.wrapping_sub(earlier.discarded_sectors),
            in_flight: self.in_flight,
        }
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        [self.writes, self.discards, self.flushes].into_iter().fold(self.reads, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_by_position() {
        let line = "  10 1 80 5 20 2 160 6 3 9 11 4 5 6 7 8 9\n";
        let expected = DiskStatistics {
            reads: 10,
            writes: 20,
            discards: 4,
            flushes: 8,
            merges: 8,
            read_sectors: 80,
            written_sectors: 160,
            discarded_sectors: 6,
            in_flight: 3,
        };
        assert_eq!(DiskStatistics::parse(line), Some(expected));
        assert_eq!(DiskStatistics::parse("1 2 x"), None);
    }

    #[test]
    fn what_is_no_block_device_is_refused_by_name() {
        let error = Disk::find("/dev/null").unwrap_err();
        assert!(error.is_bad_input());
        assert_eq!(error.to_string(), "/dev/null: it is not a block device");
        assert!(
            Disk::find("no_such_disk").unwrap_err().to_string().starts_with("no_such_disk: no such device")
        );
    }
}
