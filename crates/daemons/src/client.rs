//! The client of a network file system: mount, unmount, and checks of the mount.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_host::space::{self, Space};
use weir_host::{mounts, owned};
use weir_network::{Counters, counters};
use weir_specs::template::{Filled, Value, Values, fill};
use weir_study::{FileSystem, NetworkAccess as Access};

use crate::Error;
use crate::cgroup::Group;
use crate::cluster::Cluster;
use crate::process::{self, Launch, Scope};
use crate::ready::last_words;
use crate::server_storage::unmount as unmount_point;
use crate::start::on_path;

/// How long a client may take until it is mounted.
const MOUNT_LIMIT: Duration = Duration::from_secs(30);
/// How long servers may take until files can be written.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
const PROBE_BYTES: usize = 1 << 20;

/// Mounts a network file system at `point`, and checks the type of the mount.
///
/// `name` is the name of the client's process in the state folder; [`unmount`] needs it.
///
/// # Errors
/// [`Error::Refused`] if it is no network file system, its cluster is not up, or the client is not installed;
/// [`Error::Failed`] if it cannot be mounted: the client is stopped.
pub fn mount(
    filesystem: &FileSystem,
    state: &Path,
    point: &Path,
    name: &str,
    scope: Scope,
    group: Group,
) -> Result<Cluster, Error> {
    let Planned { cluster, kind, files, settled, launch } =
        plan(filesystem, state, point, name, scope, group)?;
    if let Some(found) = type_at(point)? {
        return Err(Error::Refused(format!(
            "{}: {found} is already mounted here. Unmount it, or name another folder",
            point.display()
        )));
    }
    // Existing files there would be hidden.
    owned::check_empty(point)?;
    for folder in [&launch.folder, point] {
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
    }
    for (path, text) in &files {
        fs::write(path, text).map_err(Error::io("cannot write", Path::new(path)))?;
    }
    let log = &launch.log;
    let identity = process::start(state, &launch)?;
    let began = Instant::now();
    let failed = loop {
        let found = match type_at(point) {
            Ok(found) => found,
            Err(error) => break error.to_string(),
        };
        match found {
            Some(found) if found == kind => match settle(&settled, &cluster) {
                Ok(()) => return Ok(cluster),
                Err(error) => break error,
            },
            Some(found) => {
                break format!("a file system of another type is mounted (found {found}, expected {kind})");
            }
            None if !identity.is_alive() => break format!("the client exited: {}", last_words(log)),
            None if began.elapsed() > MOUNT_LIMIT => {
                break format!("nothing was mounted: {}", last_words(log));
            }
            None => sleep(Duration::from_millis(10)),
        }
    };
    let _ = unmount(state, point, name);
    Err(Error::Failed(format!("{}: {failed}", point.display())))
}

/// Whether a client of that name has mounted exactly this there, and lives.
///
/// # Errors
/// As of [`mount`], before anything is made; or a record is damaged.
pub fn is_mounted(
    filesystem: &FileSystem,
    state: &Path,
    point: &Path,
    name: &str,
    group: Group,
) -> Result<bool, Error> {
    let Some(known) = process::find(state, name)? else { return Ok(false) };
    let planned = plan(filesystem, state, point, name, known.launch.scope, group)?;
    let lives = known.identity.is_some_and(process::Identity::is_alive);
    let same_files =
        planned.files.iter().all(|(path, text)| fs::read_to_string(path).is_ok_and(|it| it == *text));
    let is_there = type_at(point)?.is_some_and(|found| found == planned.kind);
    Ok(lives && is_there && same_files && known.launch == planned.launch)
}

/// A client, before it is started.
struct Planned {
    cluster: Cluster,
    kind: String,
    /// Files that the client reads, by path.
    files: Vec<(String, String)>,
    /// Command run after the mount.
    settled: Vec<String>,
    launch: Launch,
}

fn plan(
    filesystem: &FileSystem,
    state: &Path,
    point: &Path,
    name: &str,
    scope: Scope,
    group: Group,
) -> Result<Planned, Error> {
    let (access, kind) = network_of(filesystem)?;
    let cluster =
        Cluster::load(state, &access.cluster)?.filter(|cluster| cluster.complete).ok_or_else(|| {
            Error::Refused(format!(
                "{}: cluster {} is not running. Start it: weir cluster up {1}",
                filesystem.name, access.cluster
            ))
        })?;
    let run = Cluster::folder(state, &cluster.name).join("clients").join(name);
    let mut values = values(access, &cluster, &run, point).map_err(Error::Refused)?;
    for (name, option) in filesystem.options.iter().filter(|(_, option)| !option.of_servers) {
        let Some(value) = &option.default else { continue };
        let value = option
            .kind
            .value(value)
            .map_err(|problem| Error::Refused(format!("{}: option `{name}`: {problem}", filesystem.name)))?;
        values.insert(name.clone(), value);
    }
    let filled = |text: &String| {
        let filled = fill(text, &values).map(Filled::into_string);
        filled.map_err(|error| Error::Refused(format!("{}: {error}", filesystem.name)))
    };
    let files = access.files.iter().map(|(path, text)| Ok((filled(path)?, filled(text)?)));
    let files = files.collect::<Result<_, Error>>()?;
    let settled = access.once_mounted.iter().map(filled).collect::<Result<_, _>>()?;
    let words = access.client.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
    let (program, arguments) = words.split_first().ok_or_else(|| {
        Error::Refused(format!(
            "testbeds/filesystems/{}.yml: network.client is empty (expected a program and its arguments)",
            filesystem.name
        ))
    })?;
    let program = on_path(program).ok_or_else(|| {
        Error::Refused(format!(
            "{program} is not installed. Install the package {}",
            filesystem.packages.join(", ")
        ))
    })?;
    let launch = Launch {
        name: name.to_owned(),
        scope,
        program,
        arguments: arguments.to_vec(),
        log: run.join("words.log"),
        folder: run,
        namespace: Some(cluster.client_namespace.clone()),
        user: None,
        stop_signal: if access.kill_unmounted { libc::SIGKILL } else { libc::SIGTERM },
        stop_limit_ms: 10_000,
        mounts: Some(point.to_owned()),
        group,
    };
    Ok(Planned { cluster, kind: kind.to_owned(), files, settled, launch })
}

/// Runs the command of a mounted client, on its host.
fn settle(words: &[String], cluster: &Cluster) -> Result<(), String> {
    if words.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", cluster.client_namespace.display())).args(words);
    let done = command.output().map_err(|error| format!("{}: {error}", words[0]))?;
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if done.status.success() { Ok(()) } else { Err(format!("{}: {}", words.join(" "), said.trim())) }
}

/// Unmounts a network file system and waits until its client has ended. Without a mount nothing happens.
///
/// # Errors
/// It is in use.
pub fn unmount(state: &Path, point: &Path, name: &str) -> Result<(), Error> {
    if let Some(client) = process::find(state, name)? {
        process::stop(state, &client)?;
    }
    unmount_point(point)
}

/// Smallest share of the servers' space that a mount shows after all servers have joined. Some servers reserve a part.
const ROOM_SHARE: f64 = 0.6;

/// Space on the file systems of the servers' data on this machine, in bytes.
///
/// # Errors
/// The space of a file system cannot be read.
pub fn room_of_servers(cluster: &Cluster) -> Result<u64, Error> {
    let data = cluster.servers.iter().filter_map(|server| server.data.as_deref());
    // Space reserved for root does not count.
    let of = |path: &Path| space(path).map(|found| found.used_bytes() + found.available_bytes);
    data.map(of).sum()
}

/// Waits until all servers have joined: the mount then shows the room of all of them, `wanted` bytes.
///
/// # Errors
/// It has less after a while.
pub fn wait_for_all(cluster: &Cluster, point: &Path, wanted: u64) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let found = space(point)?.size_bytes;
        if found as f64 >= wanted as f64 * ROOM_SHARE {
            return Ok(());
        }
        if began.elapsed() > WRITE_LIMIT {
            return Err(Error::Failed(format!(
                "{}: the mount has too little room (found {} MiB, expected about {} MiB): not all servers of {} have joined. Look at their logs",
                point.display(),
                found >> 20,
                wanted >> 20,
                cluster.name
            )));
        }
        sleep(Duration::from_millis(50));
    }
}

/// Room on the file system of a path.
fn space(path: &Path) -> Result<Space, Error> {
    space::of(path).map_err(Error::io("cannot read the free space of", path))
}

/// File system type of the mount at a point.
fn type_at(point: &Path) -> Result<Option<String>, Error> {
    Ok(mounts::at(point)?.map(|mount| mount.fs_type))
}

/// Checks that a mount is on the network: written bytes leave the client's host, and reach the servers' hosts that are on this
/// machine. Waits until the servers accept files. Returns the bytes that the client sent and received meanwhile.
///
/// # Errors
/// No file can be written, or it did not go over the network.
pub fn check_on_network(cluster: &Cluster, point: &Path) -> Result<Counters, Error> {
    let path = point.join(format!(".weir-probe-{}", std::process::id()));
    if fs::symlink_metadata(&path).is_ok() {
        return Err(Error::Refused(format!(
            "{}: a file of this name exists. Look at it, then remove it",
            path.display()
        )));
    }
    let before = counters(&cluster.client_namespace)?;
    let servers_before = received(cluster)?;
    let began = Instant::now();
    let bytes: Vec<u8> = (0..PROBE_BYTES).map(|index| (index % 251) as u8).collect();
    let write = || {
        let mut file = File::options().write(true).create(true).truncate(true).open(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    };
    let mut written = write();
    while written.is_err() && began.elapsed() < WRITE_LIMIT {
        sleep(Duration::from_millis(50));
        written = write();
    }
    let removed = fs::remove_file(&path);
    written.and(removed).map_err(Error::io("the servers accept no file:", &path))?;
    let moved = counters(&cluster.client_namespace)? - before;
    let arrived = received(cluster)?.saturating_sub(servers_before);
    // Bytes received by other machines are unknown here.
    let all_here = cluster.servers_here().count() == cluster.servers.len();
    if moved.sent_bytes < PROBE_BYTES as u64 || (all_here && arrived < PROBE_BYTES as u64) {
        return Err(Error::Failed(format!(
            "{}: the mount does not use the network: {PROBE_BYTES} bytes were written, {} left the client's host, {arrived} reached the servers' hosts",
            point.display(),
            moved.sent_bytes
        )));
    }
    Ok(moved)
}

/// Bytes that the hosts of servers on this machine received since they were made.
fn received(cluster: &Cluster) -> Result<u64, Error> {
    let each = cluster.servers_here().map(|server| Ok(counters(&server.namespace)?.received_bytes));
    each.sum()
}

fn network_of(filesystem: &FileSystem) -> Result<(&Access, &str), Error> {
    match (&filesystem.network, &filesystem.mount_type) {
        (Some(access), Some(kind)) => Ok((access, kind)),
        _ => Err(Error::Refused(format!(
            "{} is not a network file system. `weir list clusters` names those that have servers",
            filesystem.name
        ))),
    }
}

fn values(access: &Access, cluster: &Cluster, run: &Path, point: &Path) -> Result<Values, String> {
    let mut values = cluster.addresses();
    for (name, text) in &access.each_server {
        let mut all = Filled::default();
        for (index, server) in cluster.servers.iter().enumerate() {
            let own: Values =
                [("index", Value::number(index as u64)), ("address", Value::address(server.address.into()))]
                    .map(|(name, value)| (name.to_owned(), value))
                    .into();
            all.push(&fill(text, &own)?);
        }
        values.insert(name.clone(), all.into());
    }
    values.insert("run".to_owned(), Value::path(run)?);
    values.insert("point".to_owned(), Value::path(point)?);
    Ok(values)
}
