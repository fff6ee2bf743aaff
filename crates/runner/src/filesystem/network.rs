//! Network file systems of a run: the client that the run mounts, servers that outlive the run, and the run's folder.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use weir_daemons::cluster::Cluster;
use weir_daemons::process::{self, Identity, Process};
use weir_daemons::{Group, Scope, ServerStorage, client};
use weir_host::page_cache::{Method, Residency};
use weir_network::counters;
use weir_study::{FileSystem, NetworkAccess, Run};

use crate::Error;
use crate::context::journal::{Change, Journal};
use crate::context::run_context::RunContext;
use crate::device::block_device::BlockDevice;
use crate::device::kernel_queue;
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::owned_folder;

/// Name of the client's process in the state folder.
const CLIENT: &str = "run.client";
/// Share of a server's data that may stay in its page cache after dropping: pages in use.
const HELD_SHARE: f64 = 0.01;
/// Attempts to drop pages, and the pause between them.
const FORGET_TRIES: u32 = 10;
const FORGET_PAUSE: Duration = Duration::from_millis(100);
/// Files written in parallel.
const WRITERS: usize = 8;

fn cluster(state: &Path, access: &NetworkAccess) -> Result<Cluster, Error> {
    let found = Cluster::load(state, &access.cluster)?;
    found.filter(|cluster| cluster.complete).ok_or_else(|| {
        Error::Refused(format!(
            "{}: the cluster {} is not running. Use the playbook, or weir network up and weir cluster up",
            state.display(),
            access.cluster
        ))
    })
}

/// Opens the disks that the servers have mounted; none if servers keep their data in folders.
pub(crate) fn open_devices(
    context: &RunContext<'_>,
    access: &NetworkAccess,
) -> Result<Vec<BlockDevice>, Error> {
    let RunContext { run, testbed, .. } = *context;
    let cluster = cluster(context.state(), access)?;
    if !cluster.servers.iter().all(|server| matches!(server.storage, Some(ServerStorage::Device(_)))) {
        return match factor_of_disks(run) {
            None => Ok(Vec::new()),
            Some(factor) => Err(Error::Refused(format!(
                "the servers of {} keep their data in folders, and the run cannot set the disks below. Give each server a device, or leave `{factor}` out of the study's factors",
                access.cluster
            ))),
        };
    }
    if cluster.servers.len() != run.devices.len() {
        return Err(Error::Refused(format!(
            "cluster {}: wrong number of servers (found {}, expected {}, the study's heads)",
            access.cluster,
            cluster.servers.len(),
            run.devices.len()
        )));
    }
    let open = |wanted: &weir_study::RunDevice| {
        let device = testbed.devices.get(&wanted.name).ok_or_else(|| {
            Error::Refused(format!(
                "device `{}` is not in the testbed. List a device of that name",
                wanted.name
            ))
        })?;
        let device = BlockDevice::open_mounted(wanted, device)?;
        let is_its = |server: &weir_daemons::cluster::Server| {
            server.storage == Some(ServerStorage::Device(device.node.clone()))
        };
        if !cluster.servers.iter().any(is_its) {
            return Err(Error::Refused(format!(
                "device `{}` ({}): no server of {} has its data there",
                wanted.name,
                device.node.display(),
                access.cluster
            )));
        }
        device.queues.iter().try_for_each(|queue| kernel_queue::check(queue, &run.settings))?;
        Ok(device)
    };
    run.devices.iter().map(open).collect()
}

/// A factor of the study that sets the disks below the file system.
pub(crate) fn factor_of_disks(run: &Run) -> Option<&'static str> {
    let all = ["scheduler", "queue_depth", "wbt_lat_usec", "read_ahead_kib"];
    all.into_iter().find(|factor| run.levels.contains_key(*factor))
}

/// Mounts the file system and makes the run's folder.
pub(crate) fn mount(
    context: &RunContext<'_>,
    devices: &mut [BlockDevice],
    journal: &mut Journal,
) -> Result<MountPoint, Error> {
    let RunContext { run, filesystem, .. } = *context;
    let state = context.state();
    if let Some(access) = &filesystem.network {
        set_servers(state, filesystem, access)?;
    }
    // A killed run leaves service times on.
    devices.iter_mut().try_for_each(|device| device.set_timing(false))?;
    let path = point_of(state, filesystem);
    journal.note(Change::Process { state: state.to_owned(), name: CLIENT.to_owned() })?;
    // Writing files is not measured: the client's write buffers are outside the run's memory limit.
    let filling = Group::of_state(state).within("filling");
    client::mount(filesystem, state, &path, CLIENT, Scope::Run, filling)?;
    let (files, owner) = owned_folder::of_run(&path, &run.id, state, journal)?;
    let device = run.classes.first().map(|class| class.device.clone()).unwrap_or_default();
    Ok(MountPoint { device, source: filesystem.name.clone().into(), path, files, owner: Some(owner) })
}

/// Sets the servers' options of the file system: the defaults, or the run's.
fn set_servers(state: &Path, filesystem: &FileSystem, access: &NetworkAccess) -> Result<(), Error> {
    let of_servers = filesystem.options.iter().filter(|(_, option)| option.of_servers);
    let wanted = of_servers.filter_map(|(name, option)| Some((name.clone(), option.default.clone()?)));
    let wanted = wanted.collect();
    for line in weir_daemons::cluster::set(state, &access.cluster, &wanted)? {
        eprintln!("{line}");
    }
    Ok(())
}

/// Drops written data from all caches: remounts the client, and drops the servers' pages.
pub(crate) fn remount(
    state: &Path,
    filesystem: &FileSystem,
    group: Group,
    point: &MountPoint,
) -> Result<(), Error> {
    client::unmount(state, &point.path, CLIENT)?;
    forget(state, filesystem)?;
    client::mount(filesystem, state, &point.path, CLIENT, Scope::Run, group)?;
    Ok(())
}

/// Reports a client that has ended, which may be why a run failed, and mounts it again outside the run's memory limit: the run's
/// files can then be removed. `None` if the client is alive, or nothing was mounted.
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
    let but = mended
        .err()
        .map_or_else(String::new, |error| format!("; the run's files could not be removed: {error}"));
    Some(format!(
        "the client of {} ended unexpectedly, probably for lack of memory. Raise memory_mib{but}",
        filesystem.name
    ))
}

/// Text for a client that ended during the measurement.
pub(crate) fn problem(state: &Path, filesystem: &FileSystem) -> Option<String> {
    filesystem.network.as_ref()?;
    let known = process::find(state, CLIENT).ok().flatten();
    (!known.as_ref().is_some_and(is_alive))
        .then(|| format!("the client of {} ended during the measurement", filesystem.name))
}

fn is_alive(client: &Process) -> bool {
    client.identity.is_some_and(Identity::is_alive)
}

fn point_of(state: &Path, filesystem: &FileSystem) -> PathBuf {
    state.join("mnt").join(&filesystem.name)
}

/// Control groups of the servers' processes that cache data, by process.
pub(crate) fn data_groups(
    state: &Path,
    access: &NetworkAccess,
) -> Result<std::collections::BTreeMap<String, Group>, Error> {
    cluster(state, access)?.data_groups(state).map_err(Error::from)
}

/// Drops the servers' page cache; does nothing on a local file system.
///
/// Called again after all files were opened, which reads parts of them. A server that writes back, or reads its metadata, keeps
/// pages in use: dropping is repeated.
pub(crate) fn forget(state: &Path, filesystem: &FileSystem) -> Result<(), Error> {
    let Some(access) = &filesystem.network else { return Ok(()) };
    let cluster = cluster(state, access)?;
    let mut told = 1;
    while let Some(left) = cluster.forget()?.into_iter().find(holds_too_much) {
        if told == FORGET_TRIES {
            return Err(Error::Failed(format!(
                "a server of {} has {} of {} bytes in its page cache after {told} attempts to drop them",
                access.cluster, left.cached_bytes, left.total_bytes
            )));
        }
        told += 1;
        sleep(FORGET_PAUSE);
    }
    Ok(())
}

/// Whether more of a server's data is cached than pages in use.
fn holds_too_much(left: &Residency) -> bool {
    left.method == Method::Cachestat && left.cached_bytes as f64 > left.total_bytes as f64 * HELD_SHARE
}

/// Number of threads that write the files of a class.
pub(crate) fn writers(filesystem: &FileSystem) -> usize {
    if filesystem.is_remote() { WRITERS } else { 1 }
}

/// Counter of bytes sent over the network while files are written.
pub(crate) struct Filling {
    namespace: std::path::PathBuf,
    sent_before: u64,
}

impl Filling {
    /// Begins to count; `None` on a local file system.
    pub(crate) fn begin(filesystem: &FileSystem, state: &Path) -> Result<Option<Self>, Error> {
        let Some(access) = &filesystem.network else { return Ok(None) };
        let namespace = cluster(state, access)?.client_namespace;
        let sent_before = sent_bytes(&namespace)?;
        Ok(Some(Filling { namespace, sent_before }))
    }

    /// Bytes of the written files, and bytes that left the client's host since the beginning.
    pub(crate) fn end(&self, written_bytes: u64) -> Result<(u64, u64), Error> {
        Ok((written_bytes, sent_bytes(&self.namespace)?.saturating_sub(self.sent_before)))
    }
}

fn sent_bytes(namespace: &Path) -> Result<u64, Error> {
    counters(namespace).map(|found| found.sent_bytes).map_err(Error::failed)
}
