//! Record of a cluster: servers, clients and storage, in `STATE/clusters/NAME/cluster.json`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_host::owned::{self, Owner};
use weir_host::page_cache::{self, Residency};
use weir_host::record;
use weir_specs::template::{Value, Values};

use super::description::{Description, Member, On};
use crate::Error;
use crate::cgroup::Group;
use crate::process;
use crate::server_storage::ServerStorage;

/// Record of a cluster that runs or was being started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its servers, the first one first.
    pub servers: Vec<Server>,
    /// Addresses of the clients' hosts.
    pub clients: Vec<Ipv4Addr>,
    /// Network namespace of the client that mounts by this record.
    pub client_namespace: PathBuf,
    /// Whether all daemons of this record answered.
    pub complete: bool,
    /// Settings changed since the start, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

/// A server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its host's name in the network.
    pub host: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its network namespace.
    pub namespace: PathBuf,
    /// Storage of its data; absent on other machines, which have their own record.
    #[serde(rename = "brick")]
    pub storage: Option<ServerStorage>,
    /// Folder of its data; absent until it is ready.
    pub data: Option<PathBuf>,
}

impl Cluster {
    pub(crate) fn folder(state: &Path, name: &str) -> PathBuf {
        state.join("clusters").join(name)
    }

    fn file(state: &Path, name: &str) -> PathBuf {
        Self::folder(state, name).join("cluster.json")
    }

    /// The record; `None` if there is no such cluster.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(state: &Path, name: &str) -> Result<Option<Self>, Error> {
        let advice = "Look at the processes and folders that it lists, then remove the file";
        record::read(&Self::file(state, name), advice)
    }

    /// Writes the record, in a folder that is marked as this state folder's.
    ///
    /// # Errors
    /// The folder holds something else, or cannot be written.
    pub(crate) fn save(&self, state: &Path) -> Result<(), Error> {
        let folder = Self::folder(state, &self.name);
        owned::claim(&folder, &Owner::of_state(state)?, &format!("cluster {}", self.name))?;
        record::write(&Self::file(state, &self.name), self, 0o600)
    }

    /// Purpose in the marker of a server's folder.
    pub(super) fn purpose(&self, server: &Server) -> String {
        format!("data of cluster {}, {}", self.name, server.host)
    }

    /// Drops the data of all servers from the page cache; returns what is still cached.
    ///
    /// # Errors
    /// Data cannot be read or written out.
    pub fn forget(&self) -> Result<Vec<Residency>, Error> {
        let data = self.servers.iter().filter_map(|server| server.data.as_deref());
        data.map(page_cache::drop_folder).collect()
    }

    /// Control groups of the data servers, by process.
    ///
    /// # Errors
    /// A record is damaged; or there is none.
    pub fn data_groups(&self, state: &Path) -> Result<BTreeMap<String, Group>, Error> {
        let members = Description::load(&self.name).map(|found| found.daemons).unwrap_or_default();
        let mut groups = BTreeMap::new();
        for member in members.iter().filter(|member| member.on == On::Each) {
            for server in self.servers_here() {
                let name = process_name(&self.name, &member.daemon, &server.host);
                let group = process::find(state, &name)?.map(|found| found.launch.group);
                let group = group.filter(|group| group.memory().is_some()).ok_or_else(|| {
                    Error::Refused(format!(
                        "{name} has no control group with a memory limit. Take the cluster {} down and bring it up again, on a host that has the memory controller",
                        self.name
                    ))
                })?;
                groups.insert(name, group);
            }
        }
        Ok(groups)
    }

    /// Addresses by placeholder.
    pub(crate) fn addresses(&self) -> Values {
        let first = self.servers.first().map_or(Ipv4Addr::LOCALHOST, |server| server.address);
        [("first", Value::address(first.into())), ("clients", Value::addresses(&self.clients))]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    /// Servers on this machine.
    pub(crate) fn servers_here(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.storage.is_some())
    }

    /// Number of its processes on this machine.
    pub(super) fn expected(&self, description: &Description) -> usize {
        let first = self.servers.first().is_some_and(|server| server.storage.is_some());
        let of =
            |member: &Member| if member.on == On::First { first.into() } else { self.servers_here().count() };
        description.daemons.iter().map(of).sum()
    }

    /// Whether it has the same servers and clients, regardless of settings.
    pub(crate) fn is_like(&self, other: &Cluster) -> bool {
        let made_from = |cluster: &Cluster| {
            let mut bare = cluster.clone();
            bare.complete = false;
            bare.set.clear();
            bare.servers.iter_mut().for_each(|server| server.data = None);
            bare
        };
        made_from(self) == made_from(other)
    }
}

/// Name of a server's process in the state folder.
pub(super) fn process_name(cluster: &str, daemon: &str, host: &str) -> String {
    format!("{cluster}.{daemon}.{host}")
}
