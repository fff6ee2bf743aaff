//! Medium of each device of a study on this host: a modelled disk, a real disk, memory or a mounted file system.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::json;
use weir_study::{FileSystem, Run};

use crate::context::testbed::{Device, Testbed};

/// What requests go to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// Modelled disks behind one block device.
    Modelled {
        /// Model of each disk.
        profile: String,
        /// How many are striped together.
        heads: u32,
    },
    /// A disk of the inventory.
    Disk(PathBuf),
    /// Disks of the inventory, striped.
    Array(Vec<PathBuf>),
    /// A file system that is mounted before a run.
    Mounted {
        /// Its name in studies.
        filesystem: String,
        /// Where it is mounted.
        point: Option<PathBuf>,
    },
    /// A file system in memory.
    Memory(String),
    /// Models of disks in virtual time.
    Virtual {
        /// Model of each disk.
        profile: String,
        /// How many are striped together.
        heads: u32,
    },
}

impl Medium {
    /// Which of them, in one word.
    fn kind(&self) -> &'static str {
        match self {
            Medium::Modelled { .. } => "modelled",
            Medium::Disk(_) => "disk",
            Medium::Array(_) => "array",
            Medium::Mounted { .. } => "mounted",
            Medium::Memory(_) => "memory",
            Medium::Virtual { .. } => "virtual",
        }
    }

    /// The names by which the inventory lists the disks.
    fn paths(&self) -> &[PathBuf] {
        match self {
            Medium::Disk(path) => std::slice::from_ref(path),
            Medium::Array(members) => members,
            _ => &[],
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disks: Vec<&str> = self.paths().iter().map(|path| short(path)).collect();
        match self {
            Medium::Modelled { profile, heads: 1 } => write!(f, "modelled disk {profile}"),
            Medium::Modelled { profile, heads } => write!(f, "{heads} striped modelled disks {profile}"),
            Medium::Disk(_) => write!(f, "real disk {}", disks.join("")),
            Medium::Array(_) => write!(f, "striped real disks {}", disks.join(" and ")),
            Medium::Mounted { filesystem, point: Some(point) } => {
                write!(f, "file system {filesystem} at {}", point.display())
            }
            Medium::Mounted { filesystem, point: None } => {
                write!(f, "file system {filesystem}, mounted before")
            }
            Medium::Memory(filesystem) => write!(f, "memory ({filesystem})"),
            Medium::Virtual { profile, heads: 1 } => write!(f, "modelled disk {profile} in virtual time"),
            Medium::Virtual { profile, heads } => {
                write!(f, "{heads} striped modelled disks {profile} in virtual time")
            }
        }
    }
}

impl Serialize for Medium {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = json!({ "kind": self.kind(), "text": self.to_string() });
        match self {
            Medium::Modelled { profile, heads } | Medium::Virtual { profile, heads } => {
                value["profile"] = json!(profile);
                value["heads"] = json!(heads);
            }
            Medium::Disk(_) | Medium::Array(_) => value["paths"] = json!(self.paths()),
            Medium::Mounted { filesystem, point } => {
                value["filesystem"] = json!(filesystem);
                value["point"] = json!(point);
            }
            Medium::Memory(filesystem) => value["filesystem"] = json!(filesystem),
        }
        value.serialize(serializer)
    }
}

/// A disk's name as people say it: without `/dev/disk/`.
fn short(path: &Path) -> &str {
    path.strip_prefix("/dev/disk").unwrap_or(path).to_str().unwrap_or("?")
}

/// What stands for each device of a run on a testbed. A device that the testbed does not list is modelled.
pub fn of_devices(run: &Run, testbed: &Testbed) -> BTreeMap<String, Medium> {
    run.devices
        .iter()
        .map(|device| {
            let (profile, heads) = (device.profile.clone(), device.heads);
            let medium = match testbed.devices.get(&device.name) {
                _ if run.testbed.is_virtual() => Medium::Virtual { profile, heads },
                Some(Device::Disk(disk)) => Medium::Disk(disk.path.clone()),
                Some(Device::Array { members }) => {
                    Medium::Array(members.iter().map(|disk| disk.path.clone()).collect())
                }
                Some(Device::Modelled { .. }) | None => Medium::Modelled { profile, heads },
            };
            (device.name.clone(), elsewhere(run, testbed).unwrap_or(medium))
        })
        .collect()
}

/// Medium of each class of a run; of a network file system the media of all servers, if they differ.
pub fn of_classes(run: &Run, testbed: &Testbed) -> BTreeMap<String, String> {
    let devices = of_devices(run, testbed);
    let every: std::collections::BTreeSet<String> = devices.values().map(Medium::to_string).collect();
    let every = every.into_iter().collect::<Vec<_>>().join("; ");
    let of_class = |device: &str| {
        let other = || elsewhere(run, testbed).map_or_else(|| every.clone(), |medium| medium.to_string());
        match devices.get(device) {
            Some(medium) => medium.to_string(),
            // Its servers have the devices.
            None => other(),
        }
    };
    run.classes.iter().map(|class| (class.name.clone(), of_class(&class.device))).collect()
}

/// Medium of files that are not on the run's devices.
fn elsewhere(run: &Run, testbed: &Testbed) -> Option<Medium> {
    if run.testbed.is_virtual() {
        return None;
    }
    let filesystem = testbed.as_mounted(FileSystem::load(&run.settings.filesystem)?);
    let name = filesystem.name.clone();
    if filesystem.mounted {
        let point = testbed.mounts.get(&name).cloned();
        return Some(Medium::Mounted { filesystem: name, point });
    }
    (!filesystem.on_device && filesystem.network.is_none()).then_some(Medium::Memory(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(filesystem: &str, testbed: &str) -> Run {
        let text = include_str!("../../tests/data/medium-run.json")
            .replace("FILESYSTEM", filesystem)
            .replace("TESTBED", testbed);
        serde_json::from_str(&text).unwrap()
    }

    fn listed(text: &str) -> Testbed {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_medium_is_told_by_what_it_is() {
        let testbed = listed(
            r#"{"devices": {"text": {"disk": {"path": "/dev/disk/by-id/nvme-A"}}, "video": {"modelled": {"state": "/x"}}},
                "mounts": {"lustre": "/mnt/lustre"}}"#,
        );
        let told = |run: Run| {
            let of = of_classes(&run, &testbed);
            (of["text"].clone(), of["video"].clone())
        };
        assert_eq!(
            told(run("raw", "device")),
            ("real disk by-id/nvme-A".to_owned(), "2 striped modelled disks hdd-7200".to_owned())
        );
        assert_eq!(told(run("raw", "simulator")).0, "modelled disk hdd-7200 in virtual time");
        assert_eq!(told(run("tmpfs", "device")).0, "memory (tmpfs)");
        assert_eq!(told(run("lustre", "device")).0, "file system lustre at /mnt/lustre");
        // A network file system that the inventory does not mount has its data on the devices.
        assert_eq!(told(run("moosefs", "device")).0, "real disk by-id/nvme-A");
    }

    #[test]
    fn what_is_not_listed_is_modelled_and_an_array_names_its_members() {
        let run = run("raw", "device");
        assert_eq!(of_classes(&run, &Testbed::default())["text"], "modelled disk hdd-7200");
        let testbed = listed(
            r#"{"devices": {"text": {"array": {"members": [
                {"path": "/dev/disk/by-id/a"}, {"path": "/dev/disk/by-id/b"}]}}}}"#,
        );
        let devices = of_devices(&run, &testbed);
        assert_eq!(devices["text"].to_string(), "striped real disks by-id/a and by-id/b");
        let value = serde_json::to_value(&devices["text"]).unwrap();
        assert_eq!(value["kind"], "array");
        assert_eq!(value["paths"], json!(["/dev/disk/by-id/a", "/dev/disk/by-id/b"]));
    }
}
