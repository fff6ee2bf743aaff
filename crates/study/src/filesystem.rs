//! File systems that a study may name: one file of `testbeds/filesystems/` each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::Document;
use weir_testbeds::FILESYSTEMS;

use crate::fs_option::FsOption;
use crate::spec::Settings;

/// Mount type that matches every type.
const ANY: &str = "any";

/// How a file system is made and mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Its name in studies.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Debian packages with its tools.
    pub packages: Vec<String>,
    /// Command that makes it. The device is added as the last argument. Empty if nothing has to be made.
    #[serde(default)]
    pub make: Vec<String>,
    /// Arguments of `make` that set its UUID, with `{uuid}` for the value. A run recognises its own file system by this
    /// UUID, also after it was killed. If empty, the UUID is read after `make`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub make_uuid: Vec<String>,
    /// Type for mount(2), compared with `/proc/self/mountinfo` afterwards. Not mounted if absent. `any` accepts every
    /// type of a file system that was mounted before the run.
    #[serde(default)]
    pub mount_type: Option<String>,
    /// Options of the mount, comma separated.
    #[serde(default)]
    pub mount_options: String,
    /// Whether it is on a block device.
    #[serde(default = "yes")]
    pub on_device: bool,
    /// Whether FIEMAP reports the position of a file on the device. ext4 and xfs do this, btrfs does not.
    #[serde(default)]
    pub tells_extents: bool,
    /// Smallest device for it, in MiB.
    #[serde(default)]
    pub smallest_mib: u64,
    /// Whether it is mounted before a run, by a role of the playbook or by hand, at a mount point of the inventory
    /// (`weir_mounts`). A run changes only its own folder there.
    #[serde(default)]
    pub mounted: bool,
    /// Options that a study can set (`filesystem_options`), by name: letters a to z, digits and `_`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, FsOption>,
    /// Client and servers of a network file system that weir starts. Absent if it is local or mounted before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkAccess>,
}

/// Client and servers of a network file system.
///
/// Texts may have placeholders: `{point}` (where it is mounted), `{run}` (a folder for the client's files), `{first}` (the
/// address of the first server), `{clients}` (those of the clients, with commas between them), those that `each_server` names,
/// and the file system's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkAccess {
    /// Its servers (`testbeds/clusters/NAME.yml`). Several file systems can mount the same servers in different ways.
    pub cluster: String,
    /// Command of the client. It stays in the foreground and ends when the file system is unmounted.
    pub client: Vec<String>,
    /// Whether the client is killed after unmount instead of waited for. Closing a file must then wait until the servers
    /// have its data.
    #[serde(default)]
    pub kill_unmounted: bool,
    /// Command on the client host after each mount.
    #[serde(default)]
    pub once_mounted: Vec<String>,
    /// Configuration files of the client, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Placeholders made of one text for each server, joined. The text can have `{index}`, from 0, and `{address}`.
    #[serde(default)]
    pub each_server: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

impl FileSystem {
    /// Whether a mount of this kernel type can be this file system.
    pub fn is_of_type(&self, found: &str) -> bool {
        self.mount_type.as_deref().is_some_and(|wanted| wanted == found || wanted == ANY)
    }

    /// The same file system mounted before a run, without client and servers of the run.
    #[must_use]
    pub fn given(self) -> Self {
        FileSystem { mounted: true, network: None, ..self }
    }

    /// The file system with the options of a run in place of their defaults.
    pub fn with(mut self, settings: &Settings) -> Self {
        for (name, value) in settings.options() {
            if let Some(default) = self.options.get_mut(&name).and_then(|option| option.default.as_mut()) {
                *default = value;
            }
        }
        self
    }
    /// Whether its files are on other hosts.
    pub fn is_remote(&self) -> bool {
        self.mounted || self.network.is_some()
    }

    /// The command that makes it, without the device, with `{uuid}` where it takes the UUID to give.
    pub fn make_command(&self) -> Vec<String> {
        self.make.iter().chain(&self.make_uuid).cloned().collect()
    }

    /// Names of all file systems.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILESYSTEMS.names()
    }

    /// A file system by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        Document::from_text(name.as_ref(), FILESYSTEMS.text(name)?).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_system_parses_and_bears_its_name() {
        for name in FileSystem::names() {
            let text = FILESYSTEMS.text(name).unwrap();
            let found: FileSystem =
                Document::from_text(name.as_ref(), text).and_then(|read| read.parse()).unwrap();
            assert_eq!(found.name, name);
        }
    }
}
