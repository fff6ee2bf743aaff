//! I/O settings of a control group (`io.*`, `blkio.*`), written and read back.
//!
//! Version 2 has a file for each controller. Version 1 (`blkio`) has throttling, bfq's weights and, where configured, classes
//! of priority; it has neither a cost model (`io.weight`) nor latencies.

use std::fs;
use std::path::PathBuf;

use weir_study::{ControlGroup, IoMax};

use crate::Error;
use crate::cgroup::{Group, Tree, trees};
use crate::limit::{Disk, of_disk};

/// Where this host has the controller of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoVersion {
    /// Version 1: `blkio`.
    One,
    /// Version 2: `io`.
    Two,
}

/// Version 1's file for each of version 2's; `None` where it has none. Of `io.max` it has four.
const OF_VERSION_1: [(&str, Option<&str>); 5] = [
    ("io.max", Some("blkio.throttle.read_bps_device")),
    ("io.weight", None),
    ("io.bfq.weight", Some("blkio.bfq.weight")),
    ("io.latency", None),
    ("io.prio.class", Some("blkio.prio.class")),
];

/// Version 1's files of `io.max`, in the order of [`IoMax::NAMES`].
pub(crate) const THROTTLE: [&str; 4] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// The kernel's option for each file.
const CONFIGURED_BY: [(&str, &str); 5] = [
    ("io.max", "CONFIG_BLK_DEV_THROTTLING"),
    ("io.weight", "CONFIG_BLK_CGROUP_IOCOST"),
    ("io.bfq.weight", "CONFIG_BFQ_GROUP_IOSCHED, and the module bfq loaded"),
    ("io.latency", "CONFIG_BLK_CGROUP_IOLATENCY"),
    ("io.prio.class", "CONFIG_BLK_CGROUP_IOPRIO"),
];

/// Which version of control groups has the disks here; `None` if neither.
pub fn io_version() -> Option<IoVersion> {
    trees().iter().find_map(|tree| match tree {
        Tree::Blkio(_) => Some(IoVersion::One),
        Tree::Two { io: true, .. } => Some(IoVersion::Two),
        _ => None,
    })
}

impl Group {
    /// Why this host cannot set the values for a group; `None` if it can. The group must exist: a kernel shows these
    /// files in groups, not at the top.
    pub fn lacks(&self, wanted: &ControlGroup) -> Option<String> {
        let Some(version) = io_version() else {
            return Some(
                "this host has no controller of disks (blkio or io) in its control groups".to_owned(),
            );
        };
        wanted.files().into_iter().find_map(|file| {
            let of_one = OF_VERSION_1.iter().find(|(name, _)| *name == file).and_then(|(_, one)| *one);
            if version == IoVersion::One && of_one.is_none() {
                return Some(format!(
                    "{file} is of version 2 of control groups, and this host's disks are with version 1 (blkio): let the \
                     run move them (weir run --move-io-controller, -e weir_move_io_controller=true)"
                ));
            }
            let found = self.io_file(of_one.unwrap_or_default(), file).is_some_and(|(path, _)| path.exists());
            let option = CONFIGURED_BY.iter().find(|(name, _)| *name == file).map_or("", |(_, option)| option);
            (!found).then(|| format!("this kernel has no {file} ({option})"))
        })
    }

    /// Sets the values for some disks, and reads them back.
    ///
    /// # Errors
    /// The kernel refuses one, or returns another value.
    pub fn set_io(&self, disks: &[Disk], wanted: &ControlGroup) -> Result<(), Error> {
        for disk in disks {
            self.set_max(*disk, wanted.max)?;
            if let Some(target) = wanted.latency_us {
                self.write_io("", "io.latency", &format!("{} target={target}", disk.key()))?;
            }
        }
        if let Some(weight) = wanted.weight {
            self.write_io("", "io.weight", &weight.to_string())?;
        }
        if let Some(weight) = wanted.bfq_weight {
            self.write_io("blkio.bfq.weight", "io.bfq.weight", &weight.to_string())?;
        }
        if let Some(class) = wanted.prio_class {
            self.write_io("blkio.prio.class", "io.prio.class", class.word())?;
        }
        for disk in disks {
            let found = self.io(*disk, wanted);
            if found != *wanted {
                return Err(Error::Failed(format!(
                    "control group {} says `{found}` of disk {}, not `{wanted}`",
                    self.name(),
                    disk.key()
                )));
            }
        }
        Ok(())
    }

    fn set_max(&self, disk: Disk, max: IoMax) -> Result<(), Error> {
        let given = || IoMax::NAMES.iter().zip(THROTTLE).zip(max.values());
        if io_version() == Some(IoVersion::Two) {
            let words: Vec<String> =
                given().filter_map(|((name, _), value)| Some(format!(" {name}={}", value?))).collect();
            if !words.is_empty() {
                self.write_io("", "io.max", &format!("{}{}", disk.key(), words.concat()))?;
            }
            return Ok(());
        }
        for ((_, file), value) in given() {
            if let Some(value) = value {
                self.write_io(file, "", &format!("{} {value}", disk.key()))?;
            }
        }
        Ok(())
    }

    fn write_io(&self, one: &str, two: &str, text: &str) -> Result<(), Error> {
        let missing = || Error::Failed("this host has no controller of disks (blkio or io)".to_owned());
        let (path, _) = self.io_file(one, two).ok_or_else(missing)?;
        fs::write(&path, text).map_err(Error::io(&format!("cannot write {text:?} to"), &path))
    }

    /// Present settings for a disk, those of `asked` only.
    pub fn io(&self, disk: Disk, asked: &ControlGroup) -> ControlGroup {
        let text = |one: &str, two: &str| {
            let (path, _) = self.io_file(one, two)?;
            fs::read_to_string(path).ok()
        };
        let is_two = io_version() == Some(IoVersion::Two);
        let limit = |index: usize| {
            let (file, word) = (THROTTLE[index], format!("{}=", IoMax::NAMES[index]));
            of_disk(&text(file, "io.max")?, disk, if is_two { &word } else { "" })
        };
        let class = asked.prio_class.filter(|class| {
            text("blkio.prio.class", "io.prio.class").is_some_and(|found| found.trim() == class.word())
        });
        ControlGroup {
            max: IoMax::from_values([limit(0), limit(1), limit(2), limit(3)]),
            weight: asked.weight.and_then(|_| weight(&text("", "io.weight")?)),
            bfq_weight: asked.bfq_weight.and_then(|_| weight(&text("blkio.bfq.weight", "io.bfq.weight")?)),
            latency_us: asked.latency_us.and_then(|_| of_disk(&text("", "io.latency")?, disk, "target=")),
            prio_class: class,
        }
    }

    /// Bytes that it has read and written of a disk since it was made; `None` where the host does not count that.
    pub fn io_bytes(&self, disk: Disk) -> Option<(u64, u64)> {
        let (path, is_two) = self.io_file("blkio.throttle.io_service_bytes", "io.stat")?;
        let text = fs::read_to_string(path).ok()?;
        let (read, write) = if is_two { ("rbytes=", "wbytes=") } else { ("Read ", "Write ") };
        // A disk without settings has no line.
        Some((of_disk(&text, disk, read).unwrap_or(0), of_disk(&text, disk, write).unwrap_or(0)))
    }
}

/// `default 100` of io.weight and io.bfq.weight; a bare number of version 1.
fn weight(text: &str) -> Option<u32> {
    let first = text.lines().next()?;
    first.strip_prefix("default ").unwrap_or(first).trim().parse().ok()
}

/// The top's file of the cost model, such as `io.cost.qos`; `None` if it does not exist.
pub fn cost_file(name: &str) -> Option<PathBuf> {
    let top = trees().into_iter().find_map(|tree| match tree {
        Tree::Two { top, io: true, .. } => Some(top),
        _ => None,
    })?;
    Some(top.join(name)).filter(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn weights_of_both_versions_are_read() {
        assert_eq!(weight("default 800\n7:0 300\n"), Some(800));
        assert_eq!(weight("500\n"), Some(500));
        assert_eq!(weight(""), None);
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let Some(version) = io_version() else {
            eprintln!("skipped: needs a controller of disks");
            return;
        };
        let group = Group::of_state(Path::new("/nonesuch/io-group-lacks")).within("class");
        if group.make().is_err() {
            eprintln!("skipped: needs root");
            return;
        }
        let lacks = |text: &str| group.lacks(&ControlGroup::try_from(text.to_owned()).unwrap());
        assert_eq!(lacks("io.max.riops=10"), None);
        match (version, lacks("io.weight=10")) {
            (IoVersion::One, Some(why)) => assert!(why.contains("--move-io-controller"), "{why}"),
            (IoVersion::Two, found) => assert!(found.is_none_or(|why| why.contains("IOCOST"))),
            (IoVersion::One, None) => panic!("version 1 has no io.weight"),
        }
        Group::of_state(Path::new("/nonesuch/io-group-lacks")).remove().unwrap();
    }
}
