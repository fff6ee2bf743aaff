//! Testbed of a run on this host: the block device of each device of a study (`testbed.json`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_collectors::host::BootedKernel;
use weir_study::FileSystem;

use crate::Error;

/// Devices of this host for the devices of a study.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testbed {
    /// Devices by their name in the study.
    pub devices: BTreeMap<String, Device>,
    /// Mount points of file systems that are mounted before a run, by their name in studies.
    #[serde(default)]
    pub mounts: BTreeMap<String, PathBuf>,
    /// Options of file systems as the playbook's role reported them, by file system and option.
    #[serde(default)]
    pub options: BTreeMap<String, BTreeMap<String, String>>,
    /// The kernel that was booted for the runs. Absent if the study names no kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<BootedKernel>,
}

/// One device of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Device {
    /// A modelled disk or array of `weir serve`.
    Modelled {
        /// State file.
        state: PathBuf,
    },
    /// A disk of the inventory; its data are lost.
    Disk(Disk),
    /// Disks of the inventory, striped; their data are lost.
    Array {
        /// One disk for each head of the study's device.
        members: Vec<Disk>,
    },
}

/// A disk of the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// A name that does not change with the order of discovery: below `/dev/disk/by-*`.
    pub path: PathBuf,
    /// Permission to lose the disk's data: its serial number, WWN or link name, compared with the disk before use. Absent: the disk
    /// must be blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<String>,
}

/// Largest testbed file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

impl Testbed {
    /// Reads a testbed.
    ///
    /// # Errors
    /// The file cannot be read or is not a testbed.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |error: &dyn std::fmt::Display| Error::Refused(format!("{}: {error}", path.display()));
        let mut text = String::new();
        let file = File::open(path).map_err(|error| refuse(&error))?;
        let read = file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| refuse(&error))?;
        if read as u64 > MOST_BYTES {
            return Err(refuse(&format!("larger than {MOST_BYTES} bytes, the limit of a testbed")));
        }
        serde_json::from_str(&text).map_err(|error| match error.to_string() {
            said if said.contains("overwrite_signature") => refuse(
                &"overwrite_signature permits the loss of any disk's data. Name the disk whose data may be lost: overwrite: \"SERIAL\" (weir device show PATH prints its serial number)",
            ),
            _ => refuse(&error),
        })
    }

    /// File system of a run on this testbed. A network file system that the inventory lists as mounted is used as it is, without
    /// starting servers.
    pub(crate) fn as_mounted(&self, filesystem: FileSystem) -> FileSystem {
        let is_mounted = filesystem.network.is_some() && self.mounts.contains_key(&filesystem.name);
        if is_mounted { filesystem.given() } else { filesystem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_device_is_read() {
        let text = r#"{"devices": {
            "text": {"modelled": {"state": "/run/weir/devices/text.json"}},
            "video": {"disk": {"path": "/dev/disk/by-id/a"}},
            "shared": {"array": {"members": [
                {"path": "/dev/disk/by-id/a"}, {"path": "/dev/disk/by-id/b", "overwrite": "S1"}]}}},
            "mounts": {"lustre": "/mnt/lustre"}}"#;
        let testbed: Testbed = serde_json::from_str(text).unwrap();
        let disk = |path: &str, overwrite: Option<&str>| Disk {
            path: path.into(),
            overwrite: overwrite.map(str::to_owned),
        };
        let members = vec![disk("/dev/disk/by-id/a", None), disk("/dev/disk/by-id/b", Some("S1"))];
        assert_eq!(testbed.devices["video"], Device::Disk(members[0].clone()));
        assert_eq!(testbed.devices["shared"], Device::Array { members });
        assert_eq!(testbed.mounts["lustre"], Path::new("/mnt/lustre"));
    }

    #[test]
    fn a_permission_that_names_no_disk_is_refused_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("testbed.json");
        let text =
            r#"{"devices": {"a": {"disk": {"path": "/dev/disk/by-id/a", "overwrite_signature": true}}}}"#;
        std::fs::write(&path, text).unwrap();
        let refused = Testbed::read(&path).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("weir device show"), "{refused}");
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        let text = r#"{"devices": {"a": {"disk": {"path": "/dev/x", "overwrite": true}}}}"#;
        assert!(serde_json::from_str::<Testbed>(text).is_err());
    }
}
