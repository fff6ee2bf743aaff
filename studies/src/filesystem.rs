//! The file systems that a study may name: one data file each, and one line here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::Document;

/// Registry: the name and the text of each.
const ALL: [(&str, &str); 5] = [
    ("ext4", include_str!("../filesystems/ext4.yml")),
    ("xfs", include_str!("../filesystems/xfs.yml")),
    ("btrfs", include_str!("../filesystems/btrfs.yml")),
    ("tmpfs", include_str!("../filesystems/tmpfs.yml")),
    ("raw", include_str!("../filesystems/raw.yml")),
];

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
    /// Type given to mount(2), and found in `/proc/self/mountinfo` afterwards; absent: not mounted.
    #[serde(default)]
    pub mount_type: Option<String>,
    /// Options of the mount, comma separated.
    #[serde(default)]
    pub mount_options: String,
    /// Whether it lies on a block device.
    #[serde(default = "yes")]
    pub on_device: bool,
    /// Smallest device it can be made on, in MiB.
    #[serde(default)]
    pub smallest_mib: u64,
}

fn yes() -> bool {
    true
}

impl FileSystem {
    /// Names of all file systems.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|(name, _)| *name)
    }

    /// A file system by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        let (_, text) = ALL.iter().find(|(known, _)| *known == name)?;
        Document::from_text(name.as_ref(), text).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_system_parses_and_bears_its_name() {
        for name in FileSystem::names() {
            assert_eq!(FileSystem::load(name).map(|found| found.name).as_deref(), Some(name));
        }
    }
}
