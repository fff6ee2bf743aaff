//! Settings of a disk's queue in the block layer: the same for every new device, restored afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_host::sysfs;

use crate::state::block_device::BlockDevice;

/// What the loop driver makes unless told otherwise.
const DEFAULT_DEPTH: u32 = 128;
const DEPTH_PARAMETER: &str = "/sys/module/loop/parameters/hw_queue_depth";

/// The kernel takes no fewer requests than this.
const LEAST_DEPTH: u32 = 4;

/// Requests that a new loop device has under way at most.
pub(crate) fn loop_depth() -> u32 {
    let depth = fs::read_to_string(DEPTH_PARAMETER).ok().and_then(|text| text.trim().parse().ok());
    depth.unwrap_or(DEFAULT_DEPTH)
}

/// Gives the queue of a new device the settings of a fresh one, and says whether the device has moving parts.
///
/// A loop device that was used before keeps its scheduler, its depth and whether requests are merged, so a device would
/// depend on what ran before it.
/// Whether it rotates decides how schedulers and file systems treat it, and for a file in FUSE the kernel assumes that it does not.
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
    // The kernel ignores a value that it believes to have: after a lower depth the way back to the full one leads over another.
    // Where it has no more than the least there is no lower one.
    if depth > LEAST_DEPTH {
        write(&queue.join("nr_requests"), &(depth - 1).to_string())?;
    }
    write(&queue.join("nr_requests"), &depth.to_string())
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    sysfs::write(file, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

/// `b` of `a [b] c`, the way /sys shows a choice; anything else as it is.
fn selected(text: &str) -> &str {
    let text = text.trim();
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

/// What else than scheduler and depth is put back, in this order: the kernel fits the read-ahead to whether the disk rotates.
const OTHERS: [&str; 4] = ["nomerges", "wbt_lat_usec", "rotational", "read_ahead_kb"];

/// What the queue of a disk said at a moment.
///
/// The number of tags of the driver cannot be read while a scheduler is before them. [`QueueSettings::put_back`] gives all of them
/// back then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSettings {
    /// The disk's name below `/sys/block`.
    pub disk: String,
    /// The number that the kernel gave to what is attached (`diskseq`, Linux 5.15); a disk that is attached later has another.
    pub sequence: Option<u64>,
    /// The scheduler.
    pub scheduler: String,
    /// `nr_requests` under that scheduler.
    pub requests: u32,
    /// Values of files in `queue` by name.
    pub others: Vec<(String, String)>,
}

impl QueueSettings {
    /// Reads those of a disk.
    ///
    /// # Errors
    /// It has no queue with a scheduler to choose.
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

    /// Whether that disk is there, and still the same.
    pub fn is_there(&self) -> bool {
        folder(&self.disk).exists() && sequence(&self.disk) == self.sequence
    }

    /// Puts all of them back, and all tags of the driver, whatever scheduler is there now.
    ///
    /// # Errors
    /// The kernel refuses a value, the first of those that it refuses; all others are put back.
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

    /// Puts them back on a loop device that has been detached; says whether it was. If something else is attached there by now it
    /// is left alone.
    ///
    /// # Errors
    /// The kernel refuses a value.
    pub(crate) fn put_back_detached(&self) -> io::Result<bool> {
        let folder = folder(&self.disk);
        // The folder `loop` is there while a file is attached.
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

/// Tags that the driver has for each of its queues.
fn tags(disk: &str) -> Option<u32> {
    fs::read_to_string(folder(disk).join("mq/0/nr_tags")).ok()?.trim().parse().ok()
}

/// A value that is there already may be refused, as that of throttling without a scheduler that has it.
fn set_if_other(file: &Path, value: &str) -> io::Result<()> {
    let now = fs::read_to_string(file);
    if now.as_deref().is_ok_and(|now| selected(now) == value) { Ok(()) } else { write(file, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_what_stands_in_brackets() {
        assert_eq!(selected("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(selected("128\n"), "128");
    }

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
        assert!(!gone.put_back_detached().unwrap());
    }
}
