//! File systems that a study may name: one file of `testbeds/filesystems/` each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::Document;
use weir_testbeds::FILESYSTEMS;

use crate::fs_option::FsOption;
use crate::spec::Settings;

/// The type of what may be of any.
const ANY: &str = "any";

/// How a file system is made and mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Its name in studies.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Debian packages that bring its tools.
    pub packages: Vec<String>,
    /// Command that makes it; the device is added as the last argument. Empty: nothing to make.
    #[serde(default)]
    pub make: Vec<String>,
    /// Arguments of that command that give it a UUID, with `{uuid}` for it: by that a run knows again what it made, also after it
    /// was killed. Empty: the UUID is known only once it is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub make_uuid: Vec<String>,
    /// Type given to mount(2), and found in `/proc/self/mountinfo` afterwards; absent: not mounted; `any`: of what is
    /// mounted before a run the type does not matter.
    #[serde(default)]
    pub mount_type: Option<String>,
    /// Options of the mount, comma separated.
    #[serde(default)]
    pub mount_options: String,
    /// Whether it lies on a block device.
    #[serde(default = "yes")]
    pub on_device: bool,
    /// Whether FIEMAP says where on the device the bytes of a file lie: as ext4 and xfs do, and btrfs does not.
    #[serde(default)]
    pub tells_extents: bool,
    /// Smallest device it can be made on, in MiB.
    #[serde(default)]
    pub smallest_mib: u64,
    /// Whether it is mounted before a run, by a role of the playbook or by hand, at a place that the inventory names
    /// (`weir_mounts`). A run has a folder of its own there; nothing else of it is touched.
    #[serde(default)]
    pub mounted: bool,
    /// What of it a study may set (`filesystem_options`), by name: letters a to z, digits and `_`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, FsOption>,
    /// How it is had over a network, from servers that the harness starts; absent: it is local, or mounted before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkAccess>,
}

/// How a file system is had over a network.
///
/// Texts may have placeholders: `{point}` (where it is mounted), `{run}` (a folder for the client's files), `{first}` (the
/// address of the first server), `{clients}` (those of the clients, with commas between them), those that `each_server` names,
/// and the file system's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkAccess {
    /// The servers that it comes from (`testbeds/clusters/NAME.yml`). Several descriptions may mount the same servers in
    /// different ways.
    pub cluster: String,
    /// Command of the client, which stays in the foreground and ends when it is unmounted.
    pub client: Vec<String>,
    /// Whether the client is killed once it is unmounted, instead of waited for: closing a file must wait until servers have it.
    #[serde(default)]
    pub kill_unmounted: bool,
    /// A command that is carried out on the client's host whenever it has mounted.
    #[serde(default)]
    pub once_mounted: Vec<String>,
    /// Files that the client reads, by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Placeholders made of a text for each server, one behind the other; in it are `{index}`, from 0, and `{address}`.
    #[serde(default)]
    pub each_server: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

impl FileSystem {
    /// Whether a mount of this type, as the kernel calls it, can be it.
    pub fn is_of_type(&self, found: &str) -> bool {
        self.mount_type.as_deref().is_some_and(|wanted| wanted == found || wanted == ANY)
    }

    /// The same, but mounted before a run: its servers are none of the run's business, and there is no client to start.
    #[must_use]
    pub fn given(self) -> Self {
        FileSystem { mounted: true, network: None, ..self }
    }

    /// The same with what a run sets in place of the defaults of its options.
    pub fn with(mut self, settings: &Settings) -> Self {
        for (name, value) in settings.options() {
            if let Some(default) = self.options.get_mut(&name).and_then(|option| option.default.as_mut()) {
                *default = value;
            }
        }
        self
    }
    /// Whether its files lie on other hosts.
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
