//! Which block device stands for each device of a study on this host: `testbed.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;

/// The devices of this host, by their name in the study.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testbed {
    /// By name.
    pub devices: BTreeMap<String, Device>,
}

/// One device of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Device {
    /// Made by `weir serve`; the path of its state file.
    Modelled {
        /// State file.
        state: PathBuf,
    },
    /// A disk that the inventory lists; its data are lost.
    Disk {
        /// A name that does not change with the order of discovery: below `/dev/disk/by-*`.
        path: PathBuf,
        /// Use it although it carries a partition table or a file system.
        #[serde(default)]
        overwrite_signature: bool,
    },
}

impl Testbed {
    /// Reads a test bed.
    ///
    /// # Errors
    /// The file cannot be read or is no test bed.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |error: &dyn std::fmt::Display| Error::Refused(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refuse(&error))?;
        serde_json::from_str(&text).map_err(|error| refuse(&error))
    }
}
