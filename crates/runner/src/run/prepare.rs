//! All that lies ready before the first request of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use weir_daemons::Instance;
use weir_study::{FileSystem, Run};

use crate::block_device::BlockDevice;
use crate::carry_out::Options;
use crate::control::Controls;
use crate::hot::HotDocuments;
use crate::journal::Journal;
use crate::kept_files::{self, KeptFiles};
use crate::limits::Limits;
use crate::live::Asked;
use crate::networked::Filling;
use crate::place::{self, Place};
use crate::prepare::{
    MountPoint, forget_what_was_written, host_record, make_file_systems, open_devices, start_timing, target,
};
use crate::run_folder::{RunFolder, write_json};
use crate::site::{self, Laid};
use crate::testbed::Testbed;
use crate::{Error, array, fs_options, hot, queue, service, warm};

pub(crate) struct Stage {
    /// Folder of the run's data as long as it is not whole.
    pub(crate) partial: PathBuf,
    /// That of its logs.
    pub(crate) logs: PathBuf,
    pub(crate) devices: Vec<BlockDevice>,
    /// Control groups of the classes.
    pub(crate) controls: Controls,
    pub(crate) points: Vec<MountPoint>,
    pub(crate) places: Vec<Place>,
    /// What servers with policies were told.
    pub(crate) policies: Vec<Asked>,
    /// Options of the file system that were set, as they were read back.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) sites: Vec<Laid>,
    pub(crate) hot: Vec<HotDocuments>,
    pub(crate) services: Vec<Instance>,
    pub(crate) kept_files: KeptFiles,
    /// What went over the network since files were written, on a network file system.
    pub(crate) filling: Option<Filling>,
    /// Bytes that were written, and that left the client's host meanwhile.
    pub(crate) moved: Option<(u64, u64)>,
}

/// Makes the devices, file systems, files and databases of a run, and starts its services. The journal knows what is to be
/// undone.
///
/// # Errors
/// [`Error::Refused`] if nothing was touched, [`Error::Failed`] if something went wrong on the way.
pub(crate) fn set(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    place: &RunFolder,
    filesystem: &FileSystem,
    limits: &mut Limits,
    journal: &mut Journal,
) -> Result<Stage, Error> {
    service::check(run)?;
    fs_options::check(run, testbed, filesystem)?;
    let mut devices = open_devices(run, testbed, &options.state, filesystem)?;
    place.make()?;
    let partial = place.partial().to_owned();
    let logs = partial.join("logs");
    fs::create_dir_all(&logs).map_err(Error::io("cannot make", &logs))?;
    place.write_run(run)?;

    let mut controls = Controls::make(run, limits, journal)?;
    // Outside of the run's memory: what loads them is not part of it.
    let mut kept = Vec::new();
    for (service, of_site) in site::all(run) {
        kept.push((service, site::keep(service, of_site, &options.state, &logs, journal)?));
    }
    limits.enter(journal)?;
    controls.calibrate(run, &mut devices, &options.stop, &options.state)?;
    let points = make_file_systems(run, testbed, options, filesystem, &mut devices, journal)?;
    fs_options::set(run, filesystem, &points)?;
    let filling = Filling::begin(filesystem, &options.state)?;
    let folder = |device: &str| target(device, &devices, &points);
    let places = place::all(run, filesystem.mount_type.is_none(), folder);
    let (kept_files, files_bytes) = kept_files::put(run, filesystem, &points, &places)?;
    let mut sites = Vec::new();
    for (service, kept) in kept {
        sites.push(site::lay_out(run, service, kept, &options.state, folder, journal)?);
    }
    forget_what_was_written(run, options, filesystem, limits, &devices, &points)?;
    let data_bytes: u64 = sites.iter().map(|laid| laid.data_bytes).sum();
    let moved = filling.as_ref().map(|filling| filling.end(files_bytes + data_bytes)).transpose()?;
    let set = fs_options::read(run, testbed, filesystem, &points)?;
    if run.settings.warm_start {
        warm::read(run, filesystem, &places, &sites)?;
    }
    let mut policies = Vec::new();
    for device in &mut devices {
        let settings = run.kernel_settings(&device.name);
        let is_of_kernel = run.scheduler_of(&device.name).is_of_kernel();
        device
            .queues
            .iter()
            .try_for_each(|queue| queue::apply(queue, &settings, is_of_kernel, &options.state))?;
        if device.is_array {
            array::read_ahead(&device.node, run.settings.read_ahead_kib, journal)?;
        }
        policies.extend(start_timing(run, device, &places)?);
    }
    controls.set(&devices, journal)?;
    limits.hold_servers(run, &options.state, filesystem, journal)?;
    run.services.iter().try_for_each(|service| limits.hold(service, &devices, journal))?;
    let hot = hot::lay_out(run, &places, &options.state, journal)?;
    let laid = service::LaidOut { places: &places, sites: &sites, hot: &hot };
    let services = service::start_all(run, &options.state, &laid, limits, &logs, journal)?;
    write_json(&partial.join("host.json"), &host_record(&devices, &points)?)?;
    let options = set;
    Ok(Stage {
        partial,
        logs,
        devices,
        controls,
        points,
        places,
        policies,
        options,
        sites,
        hot,
        services,
        kept_files,
        filling,
        moved,
    })
}
