//! Targets whose submission blocks: known before the first request, or detected.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::target::{Kind, Target};

/// A submission has blocked if it slept (and did not only lose its CPU) and took longer than this.
pub(crate) const BLOCKED_NS: i64 = 500_000;
/// One request blocked for this long is enough: all requests due in this time were late.
const STALLED_NS: i64 = 5_000_000;
/// After this number of blocked requests the target's requests go to worker threads...
const BLOCKED: u32 = 3;
/// ... unless they are spread over more requests than this.
const AMONG: u32 = 1000;

/// Number of tags that bursts of requests are expected to use up.
const FEW_TAGS: u32 = 64;

/// Submission history of one target.
///
/// Block devices and most file systems accept a request without waiting, or pass it to a kernel worker thread. Where
/// submission waits (an I/O controller that throttles the caller, a driver that allocates), each stall of the pacing thread
/// makes later requests late: requests for this target then go to workers directly.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    blocked: u32,
    requests: u32,
    by_worker: bool,
}

impl Blocking {
    /// A target without a history.
    ///
    /// A request to a block device without a free tag goes to a worker by itself. One to a file waits for the tag (seen on ext4 and
    /// xfs, Linux 6.18), unless the disk has a scheduler, which keeps requests until there is one. Where a disk has few tags and
    /// no scheduler, requests to files go to workers from the first one on.
    pub fn of(target: &Target) -> Self {
        let file = target.files.first().filter(|_| target.kind != Kind::BlockDevice && target.direct());
        let queue = file.and_then(|file| queue_of(file.metadata().ok()?.dev(), Path::new("/sys/dev/block")));
        Blocking { by_worker: queue.is_some_and(|queue| waits_for_tags(&queue)), ..Blocking::default() }
    }

    /// Records a submission that took `took_ns`, and whether it slept.
    pub fn note(&mut self, took_ns: i64, slept: bool) {
        self.requests += 1;
        self.blocked += u32::from(slept && took_ns > BLOCKED_NS);
        self.by_worker |= self.blocked >= BLOCKED || slept && took_ns > STALLED_NS;
        if self.requests == AMONG {
            (self.blocked, self.requests) = (0, 0);
        }
    }

    /// Whether requests must go to worker threads.
    pub fn by_worker(&self) -> bool {
        self.by_worker
    }
}

/// Folder of the queue of a disk or of a partition's disk; `None` for a device number that is no disk's.
fn queue_of(device: u64, devices: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(devices.join(format!("{}:{}", major(device), minor(device)))).ok()?;
    let queue = folder.join("queue");
    if queue.is_dir() {
        Some(queue)
    } else {
        Some(folder.parent()?.join("queue")).filter(|queue| queue.is_dir())
    }
}

/// Whether requests wait for tags of the driver.
fn waits_for_tags(queue: &Path) -> bool {
    let read = |name| fs::read_to_string(queue.join(name)).unwrap_or_default();
    let scheduler = read("scheduler");
    let has_none = scheduler.contains("[none]") || scheduler.trim() == "none";
    has_none && read("nr_requests").trim().parse().is_ok_and(|tags: u32| tags <= FEW_TAGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_a_partition_is_its_disks() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("sda1")).unwrap();
        let devices = folder.path().join("devices");
        fs::create_dir(&devices).unwrap();
        std::os::unix::fs::symlink(&disk, devices.join("8:0")).unwrap();
        std::os::unix::fs::symlink(disk.join("sda1"), devices.join("8:1")).unwrap();
        let queue = fs::canonicalize(disk.join("queue")).unwrap();
        for minor in [0, 1] {
            assert_eq!(queue_of(rustix::fs::makedev(8, minor), &devices), Some(queue.clone()));
        }
        assert_eq!(queue_of(rustix::fs::makedev(0, 44), &devices), None);
    }

    #[test]
    fn few_tags_without_a_scheduler_are_waited_for() {
        let queue = tempfile::tempdir().unwrap();
        for (scheduler, tags, waits) in [
            ("[none] mq-deadline kyber bfq", "4", true),
            ("none", "64", true),
            ("[none] mq-deadline", "128", false),
            ("none [mq-deadline] kyber", "4", false),
            ("[none]", "many", false),
        ] {
            fs::write(queue.path().join("scheduler"), format!("{scheduler}\n")).unwrap();
            fs::write(queue.path().join("nr_requests"), format!("{tags}\n")).unwrap();
            assert_eq!(waits_for_tags(queue.path()), waits, "{scheduler} {tags}");
        }
        assert!(!waits_for_tags(Path::new("/nonexistent")));
    }

    #[test]
    fn one_long_sleep_is_enough() {
        let mut target = Blocking::default();
        target.note(6_000_000, false);
        assert!(!target.by_worker(), "the CPU was lost, nothing blocked");
        target.note(6_000_000, true);
        assert!(target.by_worker());
    }

    #[test]
    fn only_repeated_sleeps_count() {
        let mut busy_machine = Blocking::default();
        let mut rare = Blocking::default();
        for i in 0..100_000 {
            busy_machine.note(50_000_000, false);
            busy_machine.note(20_000, true);
            rare.note(if i % 500 == 0 { 2_000_000 } else { 5_000 }, true);
        }
        assert!(!busy_machine.by_worker() && !rare.by_worker());

        let mut blocked = Blocking::default();
        for _ in 0..3 {
            assert!(!blocked.by_worker());
            blocked.note(2_000_000, true);
        }
        assert!(blocked.by_worker());
        for _ in 0..10_000 {
            blocked.note(2_000, false);
        }
        assert!(blocked.by_worker(), "once is enough: the target has not changed");
    }
}
