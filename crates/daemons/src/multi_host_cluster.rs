//! Clusters on several machines: each host starts its own part and records it in its own state folder.
//!
//! A host is a machine, or a network namespace in place of one.
//!
//! The description of the cluster is the same as of one in a test network of one machine ([`crate::cluster`]).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use weir_study::FileSystem;

use crate::Error;
use crate::bring_up::set_up;
use crate::cgroup::Group;
use crate::client;
use crate::cluster::{Cluster, Description, Server, check, down, start_here};
use crate::process::{self, Scope};
use crate::server_storage::ServerStorage;

/// Network namespace of the caller.
const OWN_NAMESPACE: &str = "/proc/self/ns/net";

/// The hosts of a cluster, by their addresses in the test network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// The servers, the first one first.
    pub servers: Vec<Ipv4Addr>,
    /// The clients.
    pub clients: Vec<Ipv4Addr>,
    /// This host.
    pub own: Ipv4Addr,
}

/// Result of [`serve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Whether a daemon was started; otherwise all were running.
    pub started: bool,
    /// Space for data, in bytes.
    pub room_bytes: u64,
}

/// Starts this host's servers of a cluster. Running servers with the same hosts and data are kept.
///
/// # Errors
/// [`Error::Refused`] if this host is no server of it, an address is none of a test network, or something is not installed;
/// [`Error::Failed`] if a daemon does not come up: nothing is left then.
pub fn serve(
    description: &Description,
    state: &Path,
    members: &Members,
    storage: &ServerStorage,
) -> Result<Served, Error> {
    let cluster = record(&description.name, members, Some(storage))?;
    if cluster.servers_here().next().is_none() {
        return Err(Error::Refused(format!(
            "{} is none of the servers of {}: {}",
            members.own,
            description.name,
            listed(&members.servers)
        )));
    }
    check(description, &cluster, state)?;
    let started = start_here(description, cluster, state).and_then(|(cluster, started)| {
        client::room_of_servers(&cluster).map(|room_bytes| Served { started, room_bytes })
    });
    started.map_err(|error| undo(error, state, &description.name))
}

/// Mounts a file system of other hosts, waits until all servers have joined (`room_bytes` together), sets it up, and checks that a
/// written file goes over the network. `false` if it was mounted already.
///
/// # Errors
/// [`Error::Refused`] if this host is no client of it, an address is none of a test network, something else is mounted there,
/// or it is not installed; [`Error::Failed`] if it cannot be mounted: the client is stopped.
pub fn join(
    filesystem: &FileSystem,
    state: &Path,
    members: &Members,
    point: &Path,
    name: &str,
    room_bytes: u64,
) -> Result<bool, Error> {
    let no_cluster = || Error::Refused(format!("{} is no network file system", filesystem.name));
    let access = filesystem.network.as_ref().ok_or_else(no_cluster)?;
    let description = Description::load(&access.cluster).ok_or_else(no_cluster)?;
    if !members.clients.contains(&members.own) {
        return Err(Error::Refused(format!(
            "{} is none of the clients of {}: {}",
            members.own,
            access.cluster,
            listed(&members.clients)
        )));
    }
    let mut cluster = record(&access.cluster, members, None)?;
    // A client has no daemons.
    cluster.complete = true;
    let group = Group::of_state(state).within(name);
    match Cluster::load(state, &access.cluster)? {
        Some(known) if known.is_like(&cluster) => {
            if client::is_mounted(filesystem, state, point, name, group.clone())? {
                return Ok(false);
            }
            stop_client(state, name)?;
        }
        Some(_) => drop(down(state, &access.cluster)?),
        None => {}
    }
    cluster.save(state)?;
    let joined = client::mount(filesystem, state, point, name, Scope::Study, group).and_then(|cluster| {
        client::wait_for_all(&cluster, point, room_bytes)?;
        set_up(&description, &cluster, point)?;
        client::check_on_network(&cluster, point)
    });
    joined.map(|_| true).map_err(|error| match leave(state, &access.cluster, name) {
        Ok(()) => error,
        Err(left) => Error::Failed(format!("{error}; and not taken down: {left}")),
    })
}

/// Record of the cluster on one host. If this host is a server, its data lie on `storage`.
fn record(name: &str, members: &Members, storage: Option<&ServerStorage>) -> Result<Cluster, Error> {
    let Members { servers, clients, own } = members;
    for address in servers.iter().chain(clients).chain([own]) {
        if !address.is_private() {
            return Err(Error::Refused(format!(
                "{address} is no address of a test network: {name} lets in whoever reaches it, so give private ones (RFC 1918)"
            )));
        }
    }
    if let Some(both) = servers.iter().find(|address| clients.contains(address)) {
        return Err(Error::Refused(format!(
            "{both} is to be server and client of {name}: what a host sends to itself is not on the network"
        )));
    }
    if let Some(twice) =
        servers.iter().enumerate().find_map(|(at, one)| servers[..at].contains(one).then_some(one))
    {
        return Err(Error::Refused(format!("{twice} is listed twice as a server of {name}")));
    }
    let namespace = PathBuf::from(OWN_NAMESPACE);
    let server = |(index, address): (usize, &Ipv4Addr)| Server {
        host: crate::cluster::server_name(index),
        address: *address,
        namespace: namespace.clone(),
        storage: storage.filter(|_| address == own).cloned(),
        data: None,
    };
    Ok(Cluster {
        name: name.to_owned(),
        servers: servers.iter().enumerate().map(server).collect(),
        clients: clients.clone(),
        client_namespace: namespace.clone(),
        complete: false,
        set: BTreeMap::new(),
    })
}

fn stop_client(state: &Path, name: &str) -> Result<(), Error> {
    process::find(state, name)?.map_or(Ok(()), |client| process::stop(state, &client).map(|_| ()))
}

/// Stops a client that failed, and removes the cluster unless another client of this state folder uses it.
fn leave(state: &Path, cluster: &str, name: &str) -> Result<(), Error> {
    stop_client(state, name)?;
    let folder = Cluster::folder(state, cluster);
    let others = process::all(state)?.iter().any(|process| process.launch.folder.starts_with(&folder));
    if others { Ok(()) } else { down(state, cluster).map(|_| ()) }
}

fn undo(error: Error, state: &Path, name: &str) -> Error {
    match down(state, name) {
        Ok(_) => error,
        Err(left) => Error::Failed(format!("{error}; and not taken down: {left}")),
    }
}

fn listed(addresses: &[Ipv4Addr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(servers: &[&str], clients: &[&str], own: &str) -> Members {
        let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Members { servers: all(servers), clients: all(clients), own: own.parse().unwrap() }
    }

    #[test]
    fn a_host_has_the_data_of_its_own_server_alone() {
        let members = members(&["10.1.0.1", "10.1.0.2"], &["10.1.0.3"], "10.1.0.2");
        let found = record("moosefs", &members, Some(&ServerStorage::Own)).unwrap();
        let here: Vec<&str> = found.servers_here().map(|server| server.host.as_str()).collect();
        assert_eq!(here, ["server-1"]);
        assert_eq!(found.addresses()["first"].as_str(), "10.1.0.1");
        assert_eq!(found.addresses()["clients"].as_str(), "10.1.0.3");
    }

    #[test]
    fn hosts_that_cannot_be_are_refused() {
        for (servers, clients, why) in [
            (&["8.8.8.8"][..], &["10.1.0.3"][..], "8.8.8.8 is no address of a test network"),
            (&["10.1.0.1"], &["10.1.0.1"], "server and client"),
            (&["10.1.0.1", "10.1.0.1"], &["10.1.0.3"], "listed twice"),
            (&["0.0.0.0"], &["10.1.0.3"], "0.0.0.0 is no address of a test network"),
        ] {
            let refused = record("moosefs", &members(servers, clients, "10.1.0.2"), None).unwrap_err();
            assert!(refused.is_refusal() && refused.to_string().contains(why), "{refused}");
        }
    }

    #[test]
    fn who_is_no_member_starts_nothing() {
        let state = Path::new("/nonexistent/weir");
        let of = members(&["10.1.0.1"], &["10.1.0.3"], "10.1.0.2");
        let description = Description::load("moosefs").unwrap();
        let refused = serve(&description, state, &of, &ServerStorage::Own).unwrap_err();
        assert!(refused.to_string().contains("none of the servers of moosefs: 10.1.0.1"), "{refused}");
        let filesystem = FileSystem::load("moosefs-direct").unwrap();
        let refused = join(&filesystem, state, &of, Path::new("/nonexistent/mnt"), "mount", 0).unwrap_err();
        assert!(refused.to_string().contains("none of the clients of moosefs: 10.1.0.3"), "{refused}");
    }
}
