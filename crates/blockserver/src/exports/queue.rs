//! Queue settings of a disk in the block layer: equal for every new device, restored afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_host::sysfs::{self, selected};

use crate::state::block_device::BlockDevice;

/// Default queue depth of the loop driver.
const DEFAULT_DEPTH: u32 = 128;
const DEPTH_PARAMETER: &str = "/sys/module/loop/parameters/hw_queue_depth";

/// Minimum queue depth of the kernel.
const LEAST_DEPTH: u32 = 4;

/// Maximum outstanding requests of a new loop device.
pub(crate) fn loop_depth() -> u32 {
    let depth = fs::read_to_string(DEPTH_PARAMETER).ok().and_then(|text| text.trim().parse().ok());
    depth.unwrap_or(DEFAULT_DEPTH)
}

/// Resets the queue of a new device to defaults, and sets whether it is rotational.
///
/// A reused loop device keeps scheduler, depth and merging of its former user.
/// Rotational or not decides how schedulers and file systems treat a device; for a file in FUSE the kernel assumes not.
pub(crate) fn prepare(device: &BlockDevice, depth: u32, rotational: bool) -> io::Result<()> {
    let queue = PathBuf::from(format!("/sys/dev/block/{}:{}/queue", device.major, device.minor));
    let set = |name: &str, value: &str| write(&queue.join(name), value);
    set("scheduler", "none")?;
    set_depth(&queue, depth)?;
    set("nomerges", "0")?;
    set("rotational", if rotational { "1" } else { "0" })
}

/// Sets the tags of a queue that has no scheduler.
fn set_depth(queue: &Path, depth: u32) -> io::Result<()> {
    // The kernel ignores a value equal to the shown one: another depth is set first.
    // At the minimum there is no lower depth.
    if depth > LEAST_DEPTH {
        write(&queue.join("nr_requests"), &(depth - 1).to_string())?;
    }
    write(&queue.join("nr_requests"), &depth.to_string())
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    sysfs::write(file, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

/// Other restored settings, in this order: the kernel adapts read-ahead to `rotational`.
const OTHERS: [&str; 4] = ["nomerges", "wbt_lat_usec", "rotational", "read_ahead_kb"];

/// Queue settings of a disk at one time.
///
/// The driver's number of tags cannot be read under a scheduler. [`QueueSettings::put_back`] then restores all tags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSettings {
    /// The disk's name below `/sys/block`.
    pub disk: String,
    /// Sequence number of the attached disk (`diskseq`, Linux 5.15); a disk attached later has another.
    pub sequence: Option<u64>,
    /// The scheduler.
    pub scheduler: String,
    /// `nr_requests` under that scheduler.
    pub requests: u32,
    /// Values of files in `queue` by name.
    pub others: Vec<(String, String)>,
}

impl QueueSettings {
    /// Reads the settings of a disk.
    ///
    /// # Errors
    /// The disk has no I/O scheduler.
    pub fn read(disk: &str) -> io::Result<Self> {
        let folder = folder(disk);
        let read = |name: &str| {
            let file = folder.join("queue").join(name);
            let text = fs::read_to_string(&file)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
            Ok::<_, io::Error>(selected(&text).to_owned())
        };
        let requests = read("nr_requests")?;
        let others = OTHERS.iter().filter_map(|name| Some(((*name).to_owned(), read(name).ok()?)));
        Ok(QueueSettings {
            disk: disk.to_owned(),
            sequence: sequence(disk),
            scheduler: read("scheduler")?,
            requests: requests
                .parse()
                .map_err(|_| io::Error::other(format!("{disk}: nr_requests is {requests}")))?,
            others: others.collect(),
        })
    }

    /// Whether the disk exists and is still the same.
    pub fn is_there(&self) -> bool {
        folder(&self.disk).exists() && sequence(&self.disk) == self.sequence
    }

    /// Restores all settings, and all tags of the driver, under any scheduler.
    ///
    /// # Errors
    /// The kernel refuses a value (the first one); all others are restored.
    pub fn put_back(&self) -> io::Result<()> {
        let queue = folder(&self.disk).join("queue");
        let mut done = write(&queue.join("scheduler"), "none");
        let depth = if self.scheduler == "none" { Some(self.requests) } else { tags(&self.disk) };
        if let Some(depth) = depth {
            done = done.and(set_depth(&queue, depth));
        }
        done = done.and(write(&queue.join("scheduler"), &self.scheduler));
        done = done.and(set_if_other(&queue.join("nr_requests"), &self.requests.to_string()));
        for (name, value) in &self.others {
            done = done.and(set_if_other(&queue.join(name), value));
        }
        done
    }

    /// Restores the settings of a detached loop device; returns whether it did. A device with another file is not
    /// changed.
    ///
    /// # Errors
    /// The kernel refuses a value.
    pub(crate) fn restore_detached(&self) -> io::Result<bool> {
        let folder = folder(&self.disk);
        // The folder `loop` exists while a file is attached.
        if !folder.exists() || folder.join("loop").exists() {
            return Ok(false);
        }
        self.put_back().map(|()| true)
    }
}

fn folder(disk: &str) -> PathBuf {
    Path::new("/sys/block").join(disk)
}

fn sequence(disk: &str) -> Option<u64> {
    fs::read_to_string(folder(disk).join("diskseq")).ok()?.trim().parse().ok()
}

/// Number of the driver's tags for each queue.
fn tags(disk: &str) -> Option<u32> {
    fs::read_to_string(folder(disk).join("mq/0/nr_tags")).ok()?.trim().parse().ok()
}

/// Writes a value unless it is set already: the kernel may refuse even the same value.
fn set_if_other(file: &Path, value: &str) -> io::Result<()> {
    let now = fs::read_to_string(file);
    if now.as_deref().is_ok_and(|now| selected(now) == value) { Ok(()) } else { write(file, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_not_there_has_none_and_gets_none() {
        assert!(QueueSettings::read("weir-none").is_err());
        let gone = QueueSettings {
            disk: "weir-none".to_owned(),
            sequence: None,
            scheduler: "none".to_owned(),
            requests: 128,
            others: Vec::new(),
        };
        assert!(!gone.is_there());
        assert!(!gone.restore_detached().unwrap());
    }
}
