//! Record of the test network: `STATE/network.json`.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::spec::Subnet;

/// A network that was made, or was being made.
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
    /// What each host sends and what it receives at most, each, in 10^6 bits a second; absent: what the machine can.
    #[serde(default)]
    pub rate_mbit: Option<u32>,
    /// The boot in which it was made: a network does not outlive it.
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
    /// Its inode, which tells it from another one of that name; absent until it was made.
    pub inode: Option<u64>,
}

impl Network {
    /// The state file.
    pub(crate) fn file(state: &Path) -> PathBuf {
        state.join("network.json")
    }

    /// What is written down; `None` if there is no network, or it went with an earlier boot.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(state: &Path) -> Result<Option<Self>, Error> {
        let file = Self::file(state);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Error::io("cannot read", &file))?,
        };
        let network: Network = serde_json::from_slice(&text).map_err(|error| {
            Error::Refused(format!("{}: {error}; look at what it lists, then remove it", file.display()))
        })?;
        Ok((network.boot_id == boot_id()).then_some(network))
    }

    pub(crate) fn save(&self, state: &Path) -> Result<(), Error> {
        let file = Self::file(state);
        let partial = file.with_extension("partial");
        let write = || {
            fs::create_dir_all(state)?;
            let mut options = File::options();
            let mut made = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
            made.write_all(&serde_json::to_vec_pretty(self)?)?;
            fs::rename(&partial, &file)
        };
        write().map_err(Error::io("cannot write", &file))
    }

    /// A host by name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// What tells this boot from others.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
