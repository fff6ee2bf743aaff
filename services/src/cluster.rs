//! The servers of a network file system on the hosts of a test network.
//!
//! What is made is written down in `STATE/clusters/NAME/cluster.json` before it is made; [`down`] takes back exactly that.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_fsbench::{Residency, forget};
use weir_network::Network;
use weir_specs::template::{Value, Values, fill};
use weir_specs::{Document, one_of};

use crate::Error;
use crate::brick::{Brick, unmount};
use crate::cgroup::Group;
use crate::description::Service;
use crate::process::{self, Scope};
use crate::service::{Start, Tier, start};

/// Registry: the name and the text of each.
const ALL: [(&str, &str); 3] = [
    ("cephfs", include_str!("../clusters/cephfs.yml")),
    ("glusterfs", include_str!("../clusters/glusterfs.yml")),
    ("moosefs", include_str!("../clusters/moosefs.yml")),
];

/// What a cluster consists of: `clusters/NAME.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Debian packages that bring servers and client.
    pub packages: Vec<String>,
    /// Its services, in the order in which they are started.
    pub services: Vec<Member>,
    /// Commands that are carried out on the client's host once it is mounted for the first time, at `{point}`.
    #[serde(default)]
    pub set_up: Vec<Vec<String>>,
}

/// A service of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its description's name.
    pub service: String,
    /// Which servers have it.
    pub on: On,
    /// The port at which it is asked.
    pub port: u16,
    /// Placeholders of the service (`defaults`); in them `{first}` is the address of the first server, and `{clients}` are
    /// those of the clients, with commas between them. One that is called `index` is the server's number, from 0.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// Which servers have a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The first one, besides what else it has; what it keeps is no file's data and lies in the state folder.
    First,
    /// Each of them; its data lie on the server's folder or device.
    Each,
}

impl Description {
    /// Names of all clusters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|(name, _)| *name)
    }

    /// A cluster by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        let (_, text) = ALL.iter().find(|(known, _)| *known == name)?;
        Document::from_text(name.as_ref(), text).ok()?.parse().ok()
    }
}

/// A cluster that is up, or was being brought up.
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
    /// Whether all its services answered that this record is of.
    pub complete: bool,
    /// Settings of its services that were set since, by name.
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
    /// What its data lie on; absent if it is another machine, which has a record of its own.
    pub brick: Option<Brick>,
    /// Where they lie; absent until that is ready.
    pub data: Option<PathBuf>,
}

impl Cluster {
    pub(crate) fn folder(state: &Path, name: &str) -> PathBuf {
        state.join("clusters").join(name)
    }

    fn file(state: &Path, name: &str) -> PathBuf {
        Self::folder(state, name).join("cluster.json")
    }

    /// What is written down; `None` if there is no such cluster.
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
            Error::Refused(format!("{}: {error}; look at what it lists, then remove it", file.display()))
        })
    }

    pub(crate) fn save(&self, state: &Path) -> Result<(), Error> {
        let folder = Self::folder(state, &self.name);
        fs::create_dir_all(&folder).map_err(Error::io("cannot make", &folder))?;
        let file = Self::file(state, &self.name);
        let partial = file.with_extension("partial");
        let write = || {
            fs::write(&partial, serde_json::to_vec_pretty(self)?).and_then(|()| fs::rename(&partial, &file))
        };
        write().map_err(Error::io("cannot write", &file))
    }

    /// Has the page cache forget the data of all servers; returns what it still holds of them.
    ///
    /// # Errors
    /// Data cannot be read or written out.
    pub fn forget(&self) -> Result<Vec<Residency>, Error> {
        let data = self.servers.iter().filter_map(|server| server.data.as_deref());
        data.map(|data| forget(data).map_err(|error| Error::Failed(error.to_string()))).collect()
    }

    /// The control groups of what holds data on the servers, by process.
    ///
    /// # Errors
    /// What is written down of one is damaged; or there is none.
    pub fn data_groups(&self, state: &Path) -> Result<BTreeMap<String, Group>, Error> {
        let members = Description::load(&self.name).map(|found| found.services).unwrap_or_default();
        let mut groups = BTreeMap::new();
        for member in members.iter().filter(|member| member.on == On::Each) {
            for server in self.servers_here() {
                let name = process_name(&self.name, &member.service, &server.host);
                let group = process::find(state, &name)?.map(|found| found.launch.group);
                let group = group.filter(|group| group.memory().is_some()).ok_or_else(|| {
                    Error::Refused(format!(
                        "{name} has no control group whose memory could be limited: take the cluster {} down and bring it up again, on a host that has the memory controller",
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

    /// The servers that this record has processes of.
    pub(crate) fn servers_here(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.brick.is_some())
    }

    /// How many processes it has here while it is up.
    fn expected(&self, description: &Description) -> usize {
        let first = self.servers.first().is_some_and(|server| server.brick.is_some());
        let of =
            |member: &Member| if member.on == On::First { first.into() } else { self.servers_here().count() };
        description.services.iter().map(of).sum()
    }

    /// Whether what it was made from is the same, whatever was set since.
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

/// What a server's processes are called.
fn process_name(cluster: &str, service: &str, host: &str) -> String {
    format!("{cluster}.{service}.{host}")
}

/// Name of the host that mounts.
pub const CLIENT: &str = "client";

/// Name of a server's host by number.
pub fn server_name(index: usize) -> String {
    format!("server-{index}")
}

/// Starts the servers of a cluster, one for each brick, on the hosts `server-0`, `server-1` and so on; one that is up already
/// with the same bricks is left as it is.
///
/// # Errors
/// [`Error::Refused`] if hosts are missing or something is not installed; [`Error::Failed`] if a service does not come up:
/// [`down`] takes back what had been made.
pub fn up(
    description: &Description,
    network: &Network,
    state: &Path,
    bricks: &[Brick],
) -> Result<Cluster, Error> {
    let name = &description.name;
    let host = |name: &str| {
        network.host(name).ok_or_else(|| {
            Error::Refused(format!(
                "the test network `{}` has no host `{name}`: bring it up with one",
                network.name
            ))
        })
    };
    let client = host(CLIENT)?;
    let servers = bricks.iter().enumerate().map(|(index, brick)| {
        let host = host(&server_name(index))?;
        let (address, namespace) = (host.address, host.namespace.path());
        Ok(Server { host: host.name.clone(), address, namespace, brick: Some(brick.clone()), data: None })
    });
    let cluster = Cluster {
        name: name.clone(),
        servers: servers.collect::<Result<_, Error>>()?,
        clients: vec![client.address],
        client_namespace: client.namespace.path(),
        complete: false,
        set: BTreeMap::new(),
    };
    start_here(description, cluster, state).map(|(cluster, _)| cluster)
}

/// Starts what a record has of a cluster on this machine; what is up already and like it is left as it is. Says whether
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
    if cluster.servers.is_empty() {
        return Err(Error::Refused(format!("cluster {name} needs at least one server")));
    }
    if let Some(known) = Cluster::load(state, name)? {
        let living = |process: &process::Process| process.identity.is_some_and(process::Identity::is_alive);
        let mine = format!("{name}.");
        let all = process::all(state)?;
        let alive =
            all.iter().filter(|process| process.launch.name.starts_with(&mine) && living(process)).count();
        if known.complete && known.is_like(&cluster) && alive == known.expected(description) {
            return Ok((known, false));
        }
        down(state, name)?;
    }
    cluster.save(state)?;
    let folder = Cluster::folder(state, name);
    for server in &mut cluster.servers {
        let Some(brick) = &server.brick else { continue };
        server.data = Some(brick.make(&folder.join(&server.host).join("brick"))?);
    }
    cluster.save(state)?;
    for member in &description.services {
        start_member(member, &cluster, state)?;
    }
    cluster.complete = true;
    cluster.save(state)?;
    Ok((cluster, true))
}

/// Has the services of a cluster that is up work with these settings: those that have one of them, and worked with another
/// value, are started anew on their data. Says which were.
///
/// # Errors
/// [`Error::Refused`] if the cluster is not up, no service has such a setting, or a setting does not take the value: nothing
/// was touched; [`Error::Failed`] if a service does not come up.
pub fn set(state: &Path, name: &str, wanted: &BTreeMap<String, String>) -> Result<Vec<String>, Error> {
    let mut cluster = Cluster::load(state, name)?
        .ok_or_else(|| Error::Refused(format!("the cluster {name} is not up; weir cluster up {name}")))?;
    let description = Description::load(name)
        .ok_or_else(|| Error::Refused(format!("{name}: there is no cluster of that name")))?;
    let services: Vec<(&Member, Service)> =
        description.services.iter().filter_map(|m| Some((m, Service::load(&m.service)?))).collect();
    let known: Vec<&str> =
        services.iter().flat_map(|(_, service)| service.settings.keys().map(String::as_str)).collect();
    for (setting, value) in wanted {
        let refused = |problem: String| Err(Error::Refused(format!("cluster {name}: {problem}")));
        if !known.contains(&setting.as_str()) {
            return refused(one_of("setting", setting, known));
        }
        let of = services.iter().filter_map(|(_, service)| service.settings.get(setting));
        if let Some(problem) = of.filter_map(|found| found.kind.problem(value)).next() {
            return refused(format!("setting `{setting}`: {problem}"));
        }
    }
    let mut anew = Vec::new();
    for (member, service) in services {
        let differs = wanted.iter().any(|(name, value)| {
            service
                .settings
                .get(name)
                .is_some_and(|setting| cluster.set.get(name).or(setting.default.as_ref()) != Some(value))
        });
        if !differs {
            continue;
        }
        for server in &cluster.servers {
            if let Some(process) = process::find(state, &process_name(name, &member.service, &server.host))? {
                process::stop(state, &process)?;
                anew.push(format!("{} was started anew", process.launch.name));
            }
        }
        let own = wanted.iter().filter(|(name, _)| service.settings.contains_key(*name));
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
    let service = Service::load(&member.service).ok_or_else(|| {
        Error::Refused(format!("cluster {}: service {} is unknown", cluster.name, member.service))
    })?;
    let addresses = cluster.addresses();
    let mut own: Values = member
        .set
        .iter()
        .map(|(name, text)| Ok((name.clone(), fill(text, &addresses).map_err(Error::Refused)?.into())))
        .collect::<Result<_, Error>>()?;
    // Those that know the first server by that name need not be told in every description.
    if let (true, Some(first)) = (service.defaults.contains_key("first"), addresses.get("first")) {
        own.insert("first".to_owned(), first.clone());
    }
    let set = cluster.set.iter().filter(|(name, _)| service.settings.contains_key(*name));
    let set: BTreeMap<String, String> = set.map(|(name, value)| (name.clone(), value.clone())).collect();
    let count = if member.on == On::First { 1 } else { cluster.servers.len() };
    for (index, server) in cluster.servers[..count].iter().enumerate() {
        if server.brick.is_none() {
            continue;
        }
        // Those that have a number have that of their server.
        if service.defaults.contains_key("index") {
            own.insert("index".to_owned(), Value::number(index as u64));
        }
        let folder = Cluster::folder(state, &cluster.name).join(&server.host);
        let name = process_name(&cluster.name, &member.service, &server.host);
        let data = match member.on {
            On::First => Some(folder.join(&member.service)),
            On::Each => server.data.clone(),
        };
        start(
            &service,
            state,
            &Start {
                scope: Scope::Study,
                run: folder.join(format!("{}.run", member.service)),
                root: None,
                data,
                address: IpAddr::V4(server.address),
                port: member.port,
                namespace: Some(server.namespace.clone()),
                group: Group::of_state(state).within(&name),
                memory_mib: 0,
                set: set.clone(),
                own: own.clone(),
                log: folder.join(format!("{}.log", member.service)),
                tier: Tier::default(),
                name,
            },
        )?;
    }
    Ok(())
}

/// Takes a cluster down: clients that are left, services, mounts of devices, its folder. None being there is fine. Says what
/// went.
///
/// # Errors
/// Something is still in use; what is left stays written down.
pub fn down(state: &Path, name: &str) -> Result<Vec<String>, Error> {
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
            let Some(brick) = &server.brick else { continue };
            brick.clear(&folder.join(&server.host).join("brick"))?;
        }
        gone.push(format!("cluster {name}"));
    }
    // Never into a mount.
    let mounted = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let inner = format!("{}/", folder.display());
    if let Some(line) =
        mounted.lines().find(|line| line.split(' ').nth(4).is_some_and(|point| point.starts_with(&inner)))
    {
        let point = PathBuf::from(line.split(' ').nth(4).unwrap_or_default());
        unmount(&point)?;
    }
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", &folder)(error))
        }
        _ => {
            let _ = fs::remove_dir(state.join("clusters"));
            Ok(gone)
        }
    }
}

/// Takes all clusters of a state folder down.
///
/// # Errors
/// As of [`down`].
pub fn down_all(state: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(state.join("clusters")).into_iter().flatten().flatten();
    let mut gone = Vec::new();
    for entry in entries {
        gone.extend(down(state, &entry.file_name().to_string_lossy())?);
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_studies::FileSystem;

    #[test]
    fn every_cluster_parses_and_its_services_are_there() {
        for (name, text) in ALL {
            let found =
                Document::from_text(name.as_ref(), text).and_then(|document| document.parse::<Description>());
            let found = found.unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(found.name, name);
            for member in found.services {
                let service =
                    Service::load(&member.service).unwrap_or_else(|| panic!("{name}: {}", member.service));
                // A setting is the study's; what the cluster sets is its own.
                assert!(
                    member.set.keys().all(|set| service.defaults.contains_key(set)),
                    "{name}: {}",
                    member.service
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
        assert_eq!(clusters.len(), 6);
        assert!(clusters.iter().all(|name| Description::load(name).is_some()), "{clusters:?}");
    }
}
