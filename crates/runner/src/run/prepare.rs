//! Preparation of a run: devices, file systems, files, databases and daemons, all ready before the first request.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use weir_collectors::Disk;
use weir_collectors::host::{self, HostRecord};
use weir_daemons::Instance;

use crate::Error;
use crate::cgroup::class_groups::ClassGroups;
use crate::cgroup::limits::Limits;
use crate::context::journal::Journal;
use crate::context::run_context::RunContext;
use crate::context::write_json;
use crate::daemon::hot_documents::{self, HotDocuments};
use crate::daemon::site::{self, Laid};
use crate::daemon::start::{self, LaidOut};
use crate::device::block_device::BlockDevice;
use crate::device::server_scheduler::{self, Asked};
use crate::device::{array, kernel_queue, open};
use crate::files::placement::{self, Placement};
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::network::{self, Filling};
use crate::filesystem::{drop_caches, make, options};
use crate::load::kept_files::{self, KeptFiles};
use crate::load::warm_start;
use crate::run::folder::RunFolder;

/// Everything that is ready before the first request of a run.
pub(crate) struct Prepared {
    pub(crate) devices: Vec<BlockDevice>,
    /// Control groups of the classes.
    pub(crate) groups: ClassGroups,
    pub(crate) points: Vec<MountPoint>,
    pub(crate) places: Vec<Placement>,
    /// Schedulers and classes that block servers were given.
    pub(crate) schedulers: Vec<Asked>,
    /// Options of the file system that were set, as read back.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) sites: Vec<Laid>,
    pub(crate) hot: Vec<HotDocuments>,
    pub(crate) daemons: Vec<Instance>,
    pub(crate) kept_files: KeptFiles,
    /// Counter of bytes sent over the network since files were written, on a network file system.
    pub(crate) filling: Option<Filling>,
    /// Bytes written, and bytes that left the client's host in the same interval.
    pub(crate) moved: Option<(u64, u64)>,
}

/// Makes the devices, file systems, files and databases of a run, and starts its daemons. The journal lists each change before
/// it is made.
///
/// # Errors
/// [`Error::Refused`] if nothing was touched, [`Error::Failed`] if something went wrong on the way.
pub(crate) fn prepare(
    context: &RunContext<'_>,
    folder: &RunFolder,
    limits: &mut Limits,
    journal: &mut Journal,
) -> Result<Prepared, Error> {
    let RunContext { run, filesystem, .. } = *context;
    let state = context.state();
    start::check(run)?;
    options::check(context)?;
    let mut devices = open_devices(context)?;
    folder.make()?;
    let logs = context.logs();
    fs::create_dir_all(&logs).map_err(Error::io("cannot make", &logs))?;
    folder.write_run(run)?;

    let mut groups = ClassGroups::make(run, limits, journal)?;
    // Outside the run's memory limit: loading a database is not part of the run.
    let mut kept = Vec::new();
    for (service, of_site) in site::all(run) {
        kept.push((service, site::keep(service, of_site, state, &logs, journal)?));
    }
    limits.enter(journal)?;
    groups.calibrate(context, &mut devices)?;
    let points = make::file_systems(context, &mut devices, journal)?;
    options::set(context, &points)?;
    let filling = Filling::begin(filesystem, state)?;
    let target = |device: &str| files_of(device, &devices, &points);
    let places = placement::all(run, filesystem.mount_type.is_none(), target);
    let (kept_files, files_bytes) = kept_files::put(run, filesystem, &points, &places)?;
    let mut sites = Vec::new();
    for (service, kept) in kept {
        sites.push(site::lay_out(run, service, kept, state, target, journal)?);
    }
    drop_caches::drop_all(context, limits, &devices, &points)?;
    let data_bytes: u64 = sites.iter().map(|laid| laid.data_bytes).sum();
    let moved = filling.as_ref().map(|filling| filling.end(files_bytes + data_bytes)).transpose()?;
    let options = options::read(context, &points)?;
    if run.settings.warm_start {
        warm_start::read(run, filesystem, &places, &sites)?;
    }
    let schedulers = set_queues(context, &mut devices, &places, journal)?;
    groups.set(&devices, journal)?;
    let server_mib = run.settings.server_memory_mib.or(run.settings.memory_mib);
    if let (Some(mib), Some(access)) = (server_mib, &filesystem.network) {
        limits.limit_servers(network::data_groups(state, access)?, mib, journal)?;
    }
    run.services.iter().try_for_each(|service| limits.limit_daemon(service, &devices, journal))?;
    let hot = hot_documents::lay_out(run, &places, state, journal)?;
    let laid = LaidOut { places: &places, sites: &sites, hot: &hot };
    let daemons = start::start_all(context, &laid, limits, journal)?;
    write_json(&context.partial.join("host.json"), &host_record(context, &devices, &points)?)?;
    Ok(Prepared {
        devices,
        groups,
        points,
        places,
        schedulers,
        options,
        sites,
        hot,
        daemons,
        kept_files,
        filling,
        moved,
    })
}

fn open_devices(context: &RunContext<'_>) -> Result<Vec<BlockDevice>, Error> {
    match &context.filesystem.network {
        Some(access) => network::open_devices(context, access),
        None if context.filesystem.on_device => open::open_devices(context),
        None => Ok(Vec::new()),
    }
}

/// The run's folder on the file system of a device, or the node of a raw device.
fn files_of(device: &str, devices: &[BlockDevice], points: &[MountPoint]) -> PathBuf {
    let point = points.iter().find(|point| point.device == device).map(|point| point.files.clone());
    let node = || devices.iter().find(|found| found.name == device).map(|found| found.node.clone());
    point.or_else(node).unwrap_or_default()
}

/// Sets the queues and schedulers of all devices, and lets modelled devices take the model's time.
fn set_queues(
    context: &RunContext<'_>,
    devices: &mut [BlockDevice],
    places: &[Placement],
    journal: &mut Journal,
) -> Result<Vec<Asked>, Error> {
    let run = context.run;
    let mut schedulers = Vec::new();
    for device in devices {
        kernel_queue::apply_all(run, device, context.state())?;
        if device.is_array {
            array::read_ahead(&device.node, run.settings.read_ahead_kib, journal)?;
        }
        schedulers.extend(server_scheduler::arrange(run, device, places)?);
        device.start_timing()?;
    }
    Ok(schedulers)
}

/// The host just before the requests: with devices and file systems in the state of the run.
fn host_record(
    context: &RunContext<'_>,
    devices: &[BlockDevice],
    points: &[MountPoint],
) -> Result<HostRecord, Error> {
    let disks = devices
        .iter()
        .flat_map(BlockDevice::kernel_names)
        .map(Disk::find)
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::failed)?;
    let points: Vec<&Path> = points.iter().map(|point| point.path.as_path()).collect();
    Ok(HostRecord { kernel: context.testbed.kernel.clone(), ..host::record(&disks, &points) })
}
