//! Clusters: the servers of a network file system on the hosts of a test network.
//!
//! `STATE/clusters/NAME/cluster.json` records each process, mount and folder before it is made. [`down`] removes exactly these.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_host::durable;
use weir_host::owned::{self, Owner};
use weir_host::page_cache::{self, Residency};
use weir_network::Network;
use weir_specs::template::{Value, Values, fill};
use weir_specs::{Document, one_of};
use weir_testbeds::CLUSTERS;

use crate::Error;
use crate::cgroup::Group;
use crate::description::Daemon;
use crate::process::{self, Scope};
use crate::server_storage::{self, Holder, ServerStorage};
use crate::start::{Start, Tier, check_installed, start};

/// Description of a cluster: `testbeds/clusters/NAME.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Debian packages that bring servers and client.
    pub packages: Vec<String>,
    /// Its daemons, in the order in which they are started.
    #[serde(rename = "services", alias = "daemons")]
    pub daemons: Vec<Member>,
    /// Commands run on the client's host after the first mount, at `{point}`.
    #[serde(default)]
    pub set_up: Vec<Vec<String>>,
}

/// A daemon of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its description's name.
    #[serde(rename = "service", alias = "daemon")]
    pub daemon: String,
    /// Servers that run it.
    pub on: On,
    /// Its port.
    pub port: u16,
    /// Placeholders of the daemon (`defaults`); in them `{first}` is the address of the first server, and `{clients}` are
    /// those of the clients, with commas between them. One that is called `index` is the server's number, from 0.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

impl Member {
    fn load(&self, cluster: &str) -> Result<Daemon, Error> {
        Daemon::load(&self.daemon)
            .ok_or_else(|| Error::Refused(format!("testbeds/clusters/{cluster}.yml: services: unknown daemon `{}`. Describe it in testbeds/daemons", self.daemon)))
    }
}

/// Servers that run a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The first server; its data are metadata and lie in the state folder.
    First,
    /// Every server; its data lie in the server's folder or on its device.
    Each,
}

impl Description {
    /// Names of all clusters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CLUSTERS.names()
    }

    /// A cluster by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        Document::from_text(name.as_ref(), CLUSTERS.text(name)?).ok()?.parse().ok()
    }
}

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
        let file = Self::file(state, name);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Error::io("cannot read", &file))?,
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            Error::Refused(format!(
                "{}: is damaged: {error}. Look at the processes and folders that it lists, then remove it",
                file.display()
            ))
        })
    }

    /// Writes the record, in a folder that is marked as this state folder's.
    ///
    /// # Errors
    /// The folder holds something else, or cannot be written.
    pub(crate) fn save(&self, state: &Path) -> Result<(), Error> {
        let folder = Self::folder(state, &self.name);
        owned::claim(&folder, &Owner::of_state(state)?, &format!("cluster {}", self.name))?;
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::Failed(error.to_string()))?;
        durable::write(&Self::file(state, &self.name), &text, 0o600)
    }

    /// Purpose in the marker of a server's folder.
    fn purpose(&self, server: &Server) -> String {
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
    fn expected(&self, description: &Description) -> usize {
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
fn process_name(cluster: &str, daemon: &str, host: &str) -> String {
    format!("{cluster}.{daemon}.{host}")
}

/// Name of the client's host.
pub const CLIENT: &str = "client";

/// Name of a server's host by number.
pub fn server_name(index: usize) -> String {
    format!("server-{index}")
}

/// Starts the servers of a cluster, one for each place in `storages`, on the hosts `server-0`, `server-1` and so on; one that is up already
/// with the same storage is left as it is.
///
/// # Errors
/// As of [`plan`] and [`check`], before anything was touched; [`Error::Failed`] if a daemon does not come up: [`down`] takes
/// back what had been made.
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

/// A cluster on the hosts of a test network, before anything of it is made.
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

/// Starts the part of a cluster on this machine, after [`check`]. A running cluster that is equal is left alone. Returns whether
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
    let mut anew = Vec::new();
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
                anew.push(format!("{} was started anew", process.launch.name));
            }
        }
        let own = wanted.iter().filter(|(name, _)| daemon.settings.contains_key(*name));
        cluster.set.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        // Until it answers again the cluster is not whole: whoever finds it so brings it up anew.
        cluster.complete = false;
        cluster.save(state)?;
        start_member(member, &cluster, state)?;
        cluster.complete = true;
        cluster.save(state)?;
    }
    Ok(anew)
}

fn start_member(member: &Member, cluster: &Cluster, state: &Path) -> Result<(), Error> {
    let daemon = member.load(&cluster.name)?;
    let addresses = cluster.addresses();
    let mut own: Values = member
        .set
        .iter()
        .map(|(name, text)| Ok((name.clone(), fill(text, &addresses).map_err(Error::Refused)?.into())))
        .collect::<Result<_, Error>>()?;
    // Those that know the first server by that name need not be told in every description.
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
        // Those that have a number have that of their server.
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

/// Takes a cluster down: clients that are left, daemons, mounts of devices, what its servers put into marked folders, its own
/// folder. None being there is fine. Says what went, and what was left because weir had not made it.
///
/// # Errors
/// [`Error::Refused`] if the name is none of a cluster: nothing was touched; [`Error::Failed`] if something is still in use, or
/// its folder in the state folder bears no marker: what is left stays written down.
pub fn down(state: &Path, name: &str) -> Result<Vec<String>, Error> {
    check_name(name)?;
    let mut gone = Vec::new();
    let folder = Cluster::folder(state, name);
    for mut process in process::all(state)? {
        // The last started first: clients before what serves them.
        if process.launch.name.starts_with(&format!("{name}.")) || process.launch.folder.starts_with(&folder)
        {
            if process.launch.mounts.is_none() {
                // Its data go with it: nothing is worth waiting for until it is written out.
                process.launch.stop_signal = libc::SIGKILL;
            }
            process::stop(state, &process)?;
            gone.push(format!("process {}", process.launch.name));
        }
    }
    if let Some(cluster) = Cluster::load(state, name)? {
        for server in &cluster.servers {
            let Some(storage) = &server.storage else { continue };
            let holder = Holder { state, purpose: &cluster.purpose(server) };
            let is_cleared =
                storage.clear(holder, &folder.join(&server.host).join("brick")).map_err(as_failure)?;
            if let (false, Some(path), true) = (is_cleared, storage.path(), server.data.is_some()) {
                gone.push(format!("nothing in {}, which bears no marker of this cluster", path.display()));
            }
        }
        gone.push(format!("cluster {name}"));
    }
    remove_folder(state, &folder).map_err(as_failure)?;
    let _ = fs::remove_dir(state.join("clusters"));
    Ok(gone)
}

/// Something was done before: it is no refusal any more.
fn as_failure(error: Error) -> Error {
    Error::Failed(error.to_string())
}

/// A name is a folder's: not a way to another place.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_plain && !name.is_empty() && !name.starts_with('.') {
        return Ok(());
    }
    Err(Error::Refused(format!("`{name}` is not a cluster's name (expected letters, digits, - and _)")))
}

/// Removes a cluster's folder if it is marked, and never into a mount.
fn remove_folder(state: &Path, folder: &Path) -> Result<(), Error> {
    if !folder.try_exists().map_err(Error::io("cannot look at", folder))? {
        return Ok(());
    }
    let owner = Owner::of_state(state)?;
    // A process that was killed had made the folder, and nothing in it.
    if owned::check_empty(folder).is_ok() {
        owned::claim(folder, &owner, "a cluster")?;
    }
    owned::remove(folder, &owner)
}

/// Takes all clusters of a state folder down; one that fails does not keep the others.
///
/// # Errors
/// As of [`down`].
pub fn down_all(state: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(state.join("clusters")).into_iter().flatten().flatten();
    let (mut gone, mut failures) = (Vec::new(), Vec::new());
    for entry in entries {
        match down(state, &entry.file_name().to_string_lossy()) {
            Ok(lines) => gone.extend(lines),
            Err(error) => failures.push(error.to_string()),
        }
    }
    let _ = fs::remove_dir(state.join("clusters"));
    if failures.is_empty() { Ok(gone) } else { Err(Error::Failed(failures.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_study::FileSystem;

    #[test]
    fn every_cluster_parses_and_its_daemons_are_there() {
        for name in Description::names() {
            let text = CLUSTERS.text(name).unwrap();
            let found =
                Document::from_text(name.as_ref(), text).and_then(|document| document.parse::<Description>());
            let found = found.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(found.name, name);
            for member in found.daemons {
                let daemon =
                    Daemon::load(&member.daemon).unwrap_or_else(|| panic!("{name}: {}", member.daemon));
                // A setting is the study's; what the cluster sets is its own.
                assert!(
                    member.set.keys().all(|set| daemon.defaults.contains_key(set)),
                    "{name}: {}",
                    member.daemon
                );
            }
        }
    }

    #[test]
    fn a_setting_that_is_more_than_a_value_touches_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let cluster = Cluster {
            name: "glusterfs".to_owned(),
            servers: Vec::new(),
            clients: Vec::new(),
            client_namespace: "/proc/self/ns/net".into(),
            complete: true,
            set: BTreeMap::new(),
        };
        cluster.save(state).unwrap();
        for (name, value, said) in [
            ("io_threads", "4\nend-volume", "setting `io_threads`: is `4\\nend-volume`"),
            ("io_thraeds", "4", "unknown setting `io_thraeds`; did you mean `io_threads`?"),
            ("clients", "0.0.0.0", "unknown setting `clients`"),
        ] {
            let wanted = [(name.to_owned(), value.to_owned())].into();
            let refused = set(state, "glusterfs", &wanted).unwrap_err();
            assert!(refused.is_refusal() && refused.to_string().contains(said), "{refused}");
        }
        assert_eq!(Cluster::load(state, "glusterfs").unwrap().unwrap(), cluster);
    }

    #[test]
    fn every_network_file_system_has_its_cluster() {
        let all = FileSystem::names().filter_map(FileSystem::load).filter_map(|found| found.network);
        let clusters: Vec<String> = all.map(|network| network.cluster).collect();
        assert!(!clusters.is_empty());
        assert!(clusters.iter().all(|name| Description::load(name).is_some()), "{clusters:?}");
    }
}
