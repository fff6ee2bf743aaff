//! Runs on network file systems: their servers outlive the run, which has a folder of its own there.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use weir_daemons::cluster::Cluster;
use weir_daemons::process::{self, Identity, Process};
use weir_daemons::{Brick, Group, Scope, client};
use weir_host::page_cache::{Method, Residency};
use weir_network::counters;
use weir_study::{FileSystem, NetworkAccess, Run};

use crate::Error;
use crate::block_device::BlockDevice;
use crate::journal::{Change, Journal};
use crate::limits::Limits;
use crate::prepare::MountPoint;
use crate::site;
use crate::testbed::Testbed;
use crate::tree;

/// What the client's process is called in the state folder.
const CLIENT: &str = "run.client";
/// Pages that servers may hold after they were told to forget, as a share: those that are just in use.
const HELD_SHARE: f64 = 0.01;
/// How often they are told, and how long they have in between.
const FORGET_TRIES: u32 = 10;
const FORGET_PAUSE: Duration = Duration::from_millis(100);
/// Files that are written at a time.
const WRITERS: usize = 8;

fn failed(error: weir_daemons::Error) -> Error {
    if error.is_refusal() { Error::Refused(error.to_string()) } else { Error::Failed(error.to_string()) }
}

fn cluster(state: &Path, access: &NetworkAccess) -> Result<Cluster, Error> {
    let found = Cluster::load(state, &access.cluster).map_err(failed)?;
    found.filter(|cluster| cluster.complete).ok_or_else(|| {
        Error::Refused(format!(
            "{}: the cluster {} is not up: the playbook brings it up, or weir network up and weir cluster up",
            state.display(),
            access.cluster
        ))
    })
}

/// Opens the disks of the servers, which have mounted them. Without disks of the harness's own there are none to be set.
pub(crate) fn open_devices(
    run: &Run,
    testbed: &Testbed,
    state: &Path,
    access: &NetworkAccess,
) -> Result<Vec<BlockDevice>, Error> {
    let cluster = cluster(state, access)?;
    if !cluster.servers.iter().all(|server| matches!(server.brick, Some(Brick::Device(_)))) {
        return match factor_of_disks(run) {
            None => Ok(Vec::new()),
            Some(factor) => Err(Error::Refused(format!(
                "the servers of {} keep their data in folders, whose disks this run may not set: give each a device, or leave `{factor}` out of the study's factors",
                access.cluster
            ))),
        };
    }
    if cluster.servers.len() != run.devices.len() {
        return Err(Error::Refused(format!(
            "the cluster {} has {} servers; the study has {} heads, one for each",
            access.cluster,
            cluster.servers.len(),
            run.devices.len()
        )));
    }
    let open = |wanted: &weir_study::RunDevice| {
        let device = testbed.devices.get(&wanted.name).ok_or_else(|| {
            Error::Refused(format!("device `{}` is not in the test bed; name one for it", wanted.name))
        })?;
        let device = BlockDevice::open_mounted(wanted, device)?;
        let is_its =
            |server: &weir_daemons::cluster::Server| server.brick == Some(Brick::Device(device.node.clone()));
        if !cluster.servers.iter().any(is_its) {
            return Err(Error::Refused(format!(
                "device `{}` ({}) is not what a server of {} has its data on",
                wanted.name,
                device.node.display(),
                access.cluster
            )));
        }
        device.queues.iter().try_for_each(|queue| crate::queue::check(queue, &run.settings))?;
        Ok(device)
    };
    run.devices.iter().map(open).collect()
}

/// A factor of the run's study that sets the disks below its file system.
pub(crate) fn factor_of_disks(run: &Run) -> Option<&'static str> {
    let all = ["scheduler", "queue_depth", "wbt_lat_usec", "read_ahead_kib"];
    all.into_iter().find(|factor| run.levels.contains_key(*factor))
}

/// Mounts the file system and makes the run's folder on it.
pub(crate) fn mount(
    run: &Run,
    state: &Path,
    filesystem: &FileSystem,
    devices: &mut [BlockDevice],
    journal: &mut Journal,
) -> Result<MountPoint, Error> {
    if let Some(access) = &filesystem.network {
        set_servers(state, filesystem, access)?;
    }
    // A run that was killed leaves them slow.
    devices.iter_mut().try_for_each(|device| device.set_timing(false))?;
    let path = point_of(state, filesystem);
    journal.note(Change::Process { state: state.to_owned(), name: CLIENT.to_owned() })?;
    // Writing is not what the run measures: a client that keeps what it has still to send may have the memory for it.
    let filling = Group::of_state(state).within("filling");
    client::mount(filesystem, state, &path, CLIENT, Scope::Run, filling).map_err(failed)?;
    let (files, owner) = tree::of_run(&path, &run.id, state, journal)?;
    let device = run.classes.first().map(|class| class.device.clone()).unwrap_or_default();
    Ok(MountPoint { device, source: filesystem.name.clone().into(), path, files, owner: Some(owner) })
}

/// Has the servers work as the options of the file system say, which is what they have by default or what the run sets.
fn set_servers(state: &Path, filesystem: &FileSystem, access: &NetworkAccess) -> Result<(), Error> {
    let of_servers = filesystem.options.iter().filter(|(_, option)| option.of_servers);
    let wanted = of_servers.filter_map(|(name, option)| Some((name.clone(), option.default.clone()?)));
    let wanted = wanted.collect();
    for line in weir_daemons::cluster::set(state, &access.cluster, &wanted).map_err(failed)? {
        eprintln!("{line}");
    }
    Ok(())
}

/// Nothing of what was written is remembered: by the client, which is mounted afresh, nor by the page cache of the servers.
pub(crate) fn remount(
    state: &Path,
    filesystem: &FileSystem,
    limits: &Limits,
    point: &MountPoint,
) -> Result<(), Error> {
    client::unmount(state, &point.path, CLIENT).map_err(failed)?;
    forget(state, filesystem)?;
    client::mount(filesystem, state, &point.path, CLIENT, Scope::Run, limits.group("client"))
        .map_err(failed)?;
    Ok(())
}

/// Why a run that failed may have failed: its client has ended. It is mounted once more, outside of the run's memory, so that
/// the run's files can be removed. `None` if it lives, or nothing was mounted.
pub(crate) fn revive_client(state: &Path, filesystem: &FileSystem) -> Option<String> {
    filesystem.network.as_ref()?;
    let known = process::find(state, CLIENT).ok()??;
    if is_alive(&known) {
        return None;
    }
    let path = point_of(state, filesystem);
    let filling = Group::of_state(state).within("filling");
    let mended = client::unmount(state, &path, CLIENT)
        .and_then(|()| client::mount(filesystem, state, &path, CLIENT, Scope::Run, filling));
    let but = mended.err().map_or_else(String::new, |error| format!("; the run's files stay there: {error}"));
    Some(format!(
        "the client of {} ended by itself, as it does without memory: give the run more of it (memory_mib){but}",
        filesystem.name
    ))
}

/// What is not as it should be: a client that ended measured nothing.
pub(crate) fn problem(state: &Path, filesystem: &FileSystem) -> Option<String> {
    filesystem.network.as_ref()?;
    let known = process::find(state, CLIENT).ok().flatten();
    (!known.as_ref().is_some_and(is_alive))
        .then(|| format!("{} was lost while it was measured", filesystem.name))
}

fn is_alive(client: &Process) -> bool {
    client.identity.is_some_and(Identity::is_alive)
}

fn point_of(state: &Path, filesystem: &FileSystem) -> PathBuf {
    state.join("mnt").join(&filesystem.name)
}

/// The control groups of what holds data on the servers, by process.
pub(crate) fn data_groups(
    state: &Path,
    access: &NetworkAccess,
) -> Result<std::collections::BTreeMap<String, Group>, Error> {
    cluster(state, access)?.data_groups(state).map_err(failed)
}

/// Has the page cache forget what servers hold; nothing on a local file system.
///
/// Also once all files were opened: whatever that took of them. A server that is about to end a write or a look at its own data
/// keeps some pages meanwhile, and is told again.
pub(crate) fn forget(state: &Path, filesystem: &FileSystem) -> Result<(), Error> {
    let Some(access) = &filesystem.network else { return Ok(()) };
    let cluster = cluster(state, access)?;
    let mut told = 1;
    while let Some(left) = cluster.forget().map_err(failed)?.into_iter().find(holds_too_much) {
        if told == FORGET_TRIES {
            return Err(Error::Failed(format!(
                "a server of {} holds {} of {} bytes in its page cache after it was told {told} times to forget them",
                access.cluster, left.cached_bytes, left.total_bytes
            )));
        }
        told += 1;
        sleep(FORGET_PAUSE);
    }
    Ok(())
}

/// Whether more of a server's data is in memory than what is just in use.
fn holds_too_much(left: &Residency) -> bool {
    left.method == Method::Cachestat && left.cached_bytes as f64 > left.total_bytes as f64 * HELD_SHARE
}

/// How many write the files of a class.
pub(crate) fn writers(filesystem: &FileSystem) -> usize {
    if filesystem.is_remote() { WRITERS } else { 1 }
}

/// Why reads of a run need not reach the devices; `None` if they must.
pub(crate) fn cached_by_right(run: &Run, filesystem: &FileSystem) -> Option<&'static str> {
    if run.access.is_some() {
        // Client and servers forget the files before each uncached read.
        None
    } else if site::all(run).next().is_some() {
        Some("a database keeps what it has read")
    } else if run.settings.buffered {
        Some("files are read through the page cache")
    } else if filesystem.mounted {
        Some("its servers are not part of the run")
    } else if filesystem.network.is_some() {
        Some("servers read their disks through the page cache")
    } else {
        None
    }
}

/// What goes over the network while files are written.
pub(crate) struct Filling {
    namespace: std::path::PathBuf,
    sent_before: u64,
}

impl Filling {
    /// Begins; `None` on a local file system.
    pub(crate) fn begin(filesystem: &FileSystem, state: &Path) -> Result<Option<Self>, Error> {
        let Some(access) = &filesystem.network else { return Ok(None) };
        let namespace = cluster(state, access)?.client_namespace;
        let sent_before = sent_bytes(&namespace)?;
        Ok(Some(Filling { namespace, sent_before }))
    }

    /// Bytes of the files that were written, and bytes that left the client's host since.
    pub(crate) fn end(&self, written_bytes: u64) -> Result<(u64, u64), Error> {
        Ok((written_bytes, sent_bytes(&self.namespace)?.saturating_sub(self.sent_before)))
    }
}

fn sent_bytes(namespace: &Path) -> Result<u64, Error> {
    counters(namespace).map(|found| found.sent_bytes).map_err(|error| Error::Failed(error.to_string()))
}
