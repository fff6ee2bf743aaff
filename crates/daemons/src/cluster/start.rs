//! Start of a cluster: plan, check, storage, daemons; and new settings of a running one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use weir_network::Network;
use weir_specs::one_of;
use weir_specs::template::{Value, Values, fill};

use super::description::{Description, Member, On};
use super::down::down;
use super::record::{Cluster, Server, process_name};
use crate::Error;
use crate::cgroup::Group;
use crate::description::Daemon;
use crate::process::{self, Scope};
use crate::server_storage::{self, Holder, ServerStorage};
use crate::start::{Start, Tier, check_installed, start};

/// Name of the client's host.
pub const CLIENT: &str = "client";

/// Name of a server's host by number.
pub fn server_name(index: usize) -> String {
    format!("server-{index}")
}

/// Starts the servers of a cluster, one for each entry of `storages`, on the hosts `server-0`, `server-1` and so on. A running
/// cluster with the same storage is kept.
///
/// # Errors
/// As of [`plan`] and [`check`], before anything was changed; [`Error::Failed`] if a daemon does not start: [`down`] removes
/// the rest.
pub fn up(
    description: &Description,
    network: &Network,
    state: &Path,
    storages: &[ServerStorage],
) -> Result<Cluster, Error> {
    let cluster = plan(description, network, storages)?;
    check(description, &cluster, state)?;
    start_here(description, cluster, state).map(|(cluster, _)| cluster)
}

/// Plans a cluster on the hosts of a test network; changes nothing.
///
/// # Errors
/// [`Error::Refused`] if hosts are missing.
pub(crate) fn plan(
    description: &Description,
    network: &Network,
    storages: &[ServerStorage],
) -> Result<Cluster, Error> {
    let host = |name: &str| {
        network.host(name).ok_or_else(|| {
            Error::Refused(format!(
                "the test network `{}` has no host `{name}`. Bring the network up with that host",
                network.name
            ))
        })
    };
    let client = host(CLIENT)?;
    let servers = storages.iter().enumerate().map(|(index, storage)| {
        let host = host(&server_name(index))?;
        let (address, namespace) = (host.address, host.namespace.path());
        Ok(Server { host: host.name.clone(), address, namespace, storage: Some(storage.clone()), data: None })
    });
    Ok(Cluster {
        name: description.name.clone(),
        servers: servers.collect::<Result<_, Error>>()?,
        clients: vec![client.address],
        client_namespace: client.namespace.path(),
        complete: false,
        set: BTreeMap::new(),
    })
}

/// Checks whether a cluster can be started here: storage is free or its own, servers do not share storage, and the daemons are
/// installed. Touches nothing.
///
/// # Errors
/// [`Error::Refused`] with the first obstacle.
pub(crate) fn check(description: &Description, cluster: &Cluster, state: &Path) -> Result<(), Error> {
    let name = &description.name;
    if cluster.servers.is_empty() {
        return Err(Error::Refused(format!("cluster {name} has no server (expected at least one)")));
    }
    let known = Cluster::load(state, name)?;
    if let Some(known) = &known
        && is_up(description, known, cluster, state)?
    {
        return Ok(());
    }
    let before: Vec<&ServerStorage> =
        known.iter().flat_map(|known| &known.servers).filter_map(|server| server.storage.as_ref()).collect();
    for server in &cluster.servers {
        let Some(storage) = &server.storage else { continue };
        let holder = Holder { state, purpose: &cluster.purpose(server) };
        storage.check(holder, before.contains(&storage))?;
    }
    check_apart(cluster.servers.iter().filter_map(|server| server.storage.as_ref()?.path()))?;
    for member in &description.daemons {
        let daemon = member.load(name)?;
        let user = check_installed(&daemon)?;
        let folders = cluster.servers.iter().filter_map(|server| match &server.storage {
            Some(ServerStorage::Folder(folder)) if member.on == On::Each => {
                Some(folder.join(server_storage::DATA))
            }
            _ => None,
        });
        for data in folders {
            user.as_ref().map_or(Ok(()), |user| user.reaches(&data, state))?;
        }
    }
    Ok(())
}

/// Checks that no path equals or contains another.
fn check_apart<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<(), Error> {
    let mut before: Vec<(&Path, PathBuf)> = Vec::new();
    for path in paths {
        let real = path.canonicalize().map_err(Error::io("cannot look at", path))?;
        if let Some((other, _)) =
            before.iter().find(|(_, known)| known.starts_with(&real) || real.starts_with(known))
        {
            return Err(Error::Refused(format!(
                "{} and {} are given to two servers, but overlap. Name a separate folder or device for each server",
                other.display(),
                path.display()
            )));
        }
        before.push((path, real));
    }
    Ok(())
}

/// Whether the recorded cluster is the wanted one and all its processes run.
fn is_up(description: &Description, known: &Cluster, wanted: &Cluster, state: &Path) -> Result<bool, Error> {
    let living = |process: &process::Process| process.identity.is_some_and(process::Identity::is_alive);
    let mine = format!("{}.", description.name);
    let all = process::all(state)?;
    let alive =
        all.iter().filter(|process| process.launch.name.starts_with(&mine) && living(process)).count();
    Ok(known.complete && known.is_like(wanted) && alive == known.expected(description))
}

/// Starts the part of a cluster on this machine, after [`check`]. A running cluster that is equal is kept. Returns whether
/// anything was started.
///
/// # Errors
/// As of [`up`].
pub(crate) fn start_here(
    description: &Description,
    mut cluster: Cluster,
    state: &Path,
) -> Result<(Cluster, bool), Error> {
    let name = &description.name;
    if let Some(known) = Cluster::load(state, name)? {
        if is_up(description, &known, &cluster, state)? {
            return Ok((known, false));
        }
        down(state, name)?;
    }
    cluster.save(state)?;
    let folder = Cluster::folder(state, name);
    for index in 0..cluster.servers.len() {
        let server = &cluster.servers[index];
        let Some(storage) = &server.storage else { continue };
        let holder = Holder { state, purpose: &cluster.purpose(server) };
        let data = storage.make(holder, &folder.join(&server.host).join("brick"))?;
        cluster.servers[index].data = Some(data);
    }
    cluster.save(state)?;
    for member in &description.daemons {
        start_member(member, &cluster, state)?;
    }
    cluster.complete = true;
    cluster.save(state)?;
    Ok((cluster, true))
}

/// Applies settings to a running cluster: daemons with another value of one of them are restarted on their data. Returns their
/// names.
///
/// # Errors
/// [`Error::Refused`] if the cluster is not up, no daemon has such a setting, or a setting does not take the value: nothing
/// was touched; [`Error::Failed`] if a daemon does not come up.
pub fn set(state: &Path, name: &str, wanted: &BTreeMap<String, String>) -> Result<Vec<String>, Error> {
    let mut cluster = Cluster::load(state, name)?.ok_or_else(|| {
        Error::Refused(format!("cluster {name} is not running. Start it: weir cluster up {name}"))
    })?;
    let description = Description::load(name).ok_or_else(|| {
        Error::Refused(format!("unknown cluster `{name}`. `weir list clusters` names them"))
    })?;
    let daemons: Vec<(&Member, Daemon)> =
        description.daemons.iter().filter_map(|m| Some((m, Daemon::load(&m.daemon)?))).collect();
    let known: Vec<&str> =
        daemons.iter().flat_map(|(_, daemon)| daemon.settings.keys().map(String::as_str)).collect();
    for (setting, value) in wanted {
        let refused = |problem: String| Err(Error::Refused(format!("cluster {name}: {problem}")));
        if !known.contains(&setting.as_str()) {
            return refused(one_of("setting", setting, known));
        }
        let of = daemons.iter().filter_map(|(_, daemon)| daemon.settings.get(setting));
        if let Some(problem) = of.filter_map(|found| found.kind.problem(value)).next() {
            return refused(format!("setting `{setting}`: {problem}"));
        }
    }
    let mut restarted = Vec::new();
    for (member, daemon) in daemons {
        let differs = wanted.iter().any(|(name, value)| {
            daemon
                .settings
                .get(name)
                .is_some_and(|setting| cluster.set.get(name).or(setting.default.as_ref()) != Some(value))
        });
        if !differs {
            continue;
        }
        for server in &cluster.servers {
            if let Some(process) = process::find(state, &process_name(name, &member.daemon, &server.host))? {
                process::stop(state, &process)?;
                restarted.push(format!("{} was restarted", process.launch.name));
            }
        }
        let own = wanted.iter().filter(|(name, _)| daemon.settings.contains_key(*name));
        cluster.set.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        // If the daemon does not answer, the cluster stays incomplete and the next start replaces it.
        cluster.complete = false;
        cluster.save(state)?;
        start_member(member, &cluster, state)?;
        cluster.complete = true;
        cluster.save(state)?;
    }
    Ok(restarted)
}

fn start_member(member: &Member, cluster: &Cluster, state: &Path) -> Result<(), Error> {
    let daemon = member.load(&cluster.name)?;
    let addresses = cluster.addresses();
    let mut own: Values = member
        .set
        .iter()
        .map(|(name, text)| Ok((name.clone(), fill(text, &addresses).map_err(Error::Refused)?.into())))
        .collect::<Result<_, Error>>()?;
    // A daemon with the placeholder `first` gets it without an entry in the description.
    if let (true, Some(first)) = (daemon.defaults.contains_key("first"), addresses.get("first")) {
        own.insert("first".to_owned(), first.clone());
    }
    let set = cluster.set.iter().filter(|(name, _)| daemon.settings.contains_key(*name));
    let set: BTreeMap<String, String> = set.map(|(name, value)| (name.clone(), value.clone())).collect();
    let count = if member.on == On::First { 1 } else { cluster.servers.len() };
    for (index, server) in cluster.servers[..count].iter().enumerate() {
        if server.storage.is_none() {
            continue;
        }
        // The placeholder `index` is the server's number.
        if daemon.defaults.contains_key("index") {
            own.insert("index".to_owned(), Value::number(index as u64));
        }
        let folder = Cluster::folder(state, &cluster.name).join(&server.host);
        let name = process_name(&cluster.name, &member.daemon, &server.host);
        let data = match member.on {
            On::First => Some(folder.join(&member.daemon)),
            On::Each => server.data.clone(),
        };
        start(
            &daemon,
            state,
            &Start {
                scope: Scope::Study,
                run: folder.join(format!("{}.run", member.daemon)),
                root: None,
                data,
                address: IpAddr::V4(server.address),
                port: member.port,
                namespace: Some(server.namespace.clone()),
                group: Group::of_state(state).within(&name),
                memory_mib: 0,
                set: set.clone(),
                own: own.clone(),
                log: folder.join(format!("{}.log", member.daemon)),
                tier: Tier::default(),
                name,
            },
        )?;
    }
    Ok(())
}
