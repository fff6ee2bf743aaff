//! Record of the test network: `STATE/network.json`.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_host::record;

use crate::Error;
use crate::spec::Subnet;

/// A test network that was made, or was being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub subnet: Subnet,
    /// The bridge's namespace.
    pub bridge: Namespace,
    /// Its hosts, in order of their addresses.
    pub hosts: Vec<Host>,
    /// Limit on what each host sends, and on what it receives, in 10^6 bits a second; absent if unlimited.
    #[serde(default)]
    pub rate_mbit: Option<u32>,
    /// Boot in which the network was made: it ends with that boot.
    pub boot_id: String,
}

/// A host of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in the network.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its namespace.
    pub namespace: Namespace,
}

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Its name below `/run/netns`.
    pub name: String,
    /// Its inode, which distinguishes it from a later namespace of that name; absent until it was made.
    pub inode: Option<u64>,
}

impl Network {
    /// Path of the record.
    pub(crate) fn file(state: &Path) -> PathBuf {
        state.join("network.json")
    }

    /// Reads the record; `None` if there is none, or it is of an earlier boot.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(state: &Path) -> Result<Option<Self>, Error> {
        let network: Option<Self> =
            record::read(&Self::file(state), "Look at the namespaces that it lists, then remove the file")?;
        Ok(network.filter(|network| network.boot_id == boot_id()))
    }

    pub(crate) fn save(&self, state: &Path) -> Result<(), Error> {
        fs::create_dir_all(state).map_err(Error::io("cannot make", state))?;
        record::write(&Self::file(state), self, 0o600)
    }

    /// A host by name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// Id of this boot of the kernel.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
