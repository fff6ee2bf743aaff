//! Putting devices and file systems in the state that a run asks for.

use std::fs;
use std::path::{Path, PathBuf};

use weir_collectors::Disk;
use weir_collectors::host::{self, HostRecord};
use weir_host::device::contents::{make_blank, write_label};
use weir_host::device::{
    Claim, Mark, Written, check_before_writing, make_file_system as format, random_uuid,
};
use weir_host::mounts;
use weir_host::owned::Owner;
use weir_study::{FileSystem, Run};

use crate::Error;
use crate::block_device::{self, BlockDevice, Held};
use crate::carry_out::Options;
use crate::journal::{Change, Journal};
use crate::limits::Limits;
use crate::live::{self, Asked};
use crate::place::Place;
use crate::testbed::Testbed;
use crate::{array, given, mount, networked, queue};

/// Opens every device of a run, and refuses what can be known to be impossible.
pub(crate) fn open_devices(
    run: &Run,
    testbed: &Testbed,
    state: &Path,
    filesystem: &FileSystem,
) -> Result<Vec<BlockDevice>, Error> {
    if let Some(access) = &filesystem.network {
        return networked::open_devices(run, testbed, state, access);
    }
    if !filesystem.on_device {
        return Ok(Vec::new());
    }
    let listed = |wanted: &weir_study::RunDevice| {
        testbed.devices.get_key_value(&wanted.name).ok_or_else(|| {
            Error::Refused(format!("device `{}` is not in the test bed; name one for it", wanted.name))
        })
    };
    let all = run.devices.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    block_device::check_distinct(all.into_iter())?;
    let open = |wanted: &weir_study::RunDevice| {
        let device = BlockDevice::open(wanted, listed(wanted)?.1)?;
        let room_bytes = if filesystem.mount_type.is_none() { device.raw_bytes() } else { device.size_bytes };
        if room_bytes < wanted.size_mib << 20 {
            return Err(Error::Refused(format!(
                "device `{}` ({}) has {} MiB; the study needs {}",
                wanted.name,
                device.kernel_names().collect::<Vec<_>>().join(", "),
                room_bytes >> 20,
                wanted.size_mib
            )));
        }
        let scheduler = run.scheduler_of(&wanted.name);
        if !scheduler.is_of_kernel() && !device.has_policies {
            return Err(Error::Refused(format!(
                "device `{}`: scheduler {} needs a server with policies before it, and there is {}; have it served as the plan says (`live`), or use the kernel's schedulers",
                wanted.name,
                scheduler.name,
                if device.control.is_some() { "one without" } else { "none before a disk" }
            )));
        }
        let settings = run.kernel_settings(&wanted.name);
        device.queues.iter().try_for_each(|queue| queue::check(queue, &settings))?;
        Ok(device)
    };
    run.devices.iter().map(open).collect()
}

/// The host as the requests find it: with the devices and file systems in the state of the run.
pub(crate) fn host_record(devices: &[BlockDevice], points: &[MountPoint]) -> Result<HostRecord, Error> {
    let disks = devices
        .iter()
        .flat_map(BlockDevice::kernel_names)
        .map(Disk::find)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Failed(error.to_string()))?;
    let points: Vec<&Path> = points.iter().map(|point| point.path.as_path()).collect();
    Ok(host::record(&disks, &points))
}

/// Where a device's file system is mounted.
pub(crate) struct MountPoint {
    pub(crate) device: String,
    pub(crate) source: PathBuf,
    pub(crate) path: PathBuf,
    /// The run's own folder on it.
    pub(crate) files: PathBuf,
    /// Whose marker the run's folder bears there, where the file system outlives the run.
    pub(crate) owner: Option<Owner>,
}

/// Blanks the devices, assembles arrays, makes and mounts the file systems. A raw device is blanked, or labelled if it is a real
/// disk.
pub(crate) fn make_file_systems(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    filesystem: &FileSystem,
    devices: &mut [BlockDevice],
    journal: &mut Journal,
) -> Result<Vec<MountPoint>, Error> {
    if filesystem.mounted {
        return Ok(vec![given::point(run, testbed, options, filesystem, journal)?]);
    }
    if filesystem.network.is_some() {
        return Ok(vec![networked::mount(run, &options.state, filesystem, devices, journal)?]);
    }
    for device in devices.iter_mut() {
        if let Some(problem) = device.problems().into_iter().next() {
            return Err(Error::Refused(problem));
        }
        if let Some(control) = &mut device.control {
            let failed = |error: weir_blockserver::Error| Error::Failed(error.to_string());
            control.timing(false).map_err(failed)?;
            control.discard().map_err(failed)?;
        }
    }
    for device in devices.iter_mut().filter(|device| device.is_array) {
        let wanted = run.devices.iter().find(|wanted| wanted.name == device.name);
        let stripe_unit_kib = wanted.map_or(0, |wanted| wanted.stripe_unit_kib);
        array::assemble(&device.node, &mut device.held, stripe_unit_kib, journal)?;
        // The mount table knows it by its kernel name.
        device.node = device.node.canonicalize().map_err(Error::io("cannot find", &device.node))?;
    }
    if filesystem.mount_type.is_none() {
        let real = devices.iter().filter(|device| device.is_real() && !device.is_array);
        real.flat_map(|device| &device.held).try_for_each(|held| label(held, run, journal))?;
        return Ok(Vec::new());
    }
    let mut points = Vec::new();
    for wanted in &run.devices {
        let device = devices.iter_mut().find(|device| device.name == wanted.name);
        // What has no device has a name of this run's own in the table of mounts.
        let source =
            device.as_ref().map_or_else(|| format!("weir-{}", run.id).into(), |device| device.node.clone());
        let path = options.state.join("mnt").join(&wanted.name);
        fs::create_dir_all(&path).map_err(Error::io("cannot make", &path))?;
        if let Some(found) = mounts::at(&path) {
            let found = found.source.display();
            return Err(Error::Refused(format!("{}: {found} is mounted there. Unmount it", path.display())));
        }
        if let Some(device) = device {
            make_file_system(device, filesystem, journal)?;
        }
        journal.note(Change::Mounted { point: path.clone(), source: source.clone() })?;
        mount::mount(filesystem, &source, &path, wanted.size_mib)?;
        let files = path.clone();
        points.push(MountPoint { device: wanted.name.clone(), source, files, path, owner: None });
    }
    Ok(points)
}

/// Marks a real disk that a run writes to without a file system.
fn label(held: &Held, run: &Run, journal: &mut Journal) -> Result<(), Error> {
    check_before_writing(&held.claim, held.may_overwrite).map_err(Error::of_host)?;
    let token = format!("run {} {}", run.id, random_uuid().map_err(Error::of_host)?);
    journal.note(Change::Formatted(Written::on(&held.claim, Mark::Label(token.clone()))))?;
    // Signatures that may be lost would say later that the disk is somebody's.
    if held.may_overwrite {
        make_blank(&held.claim, &token).map_err(Error::of_host)?;
    }
    write_label(&held.claim, &token).map_err(Error::of_host)
}

/// Makes a file system with a UUID that the journal knows before the disk is written.
fn make_file_system(
    device: &mut BlockDevice,
    filesystem: &FileSystem,
    journal: &mut Journal,
) -> Result<(), Error> {
    let words = filesystem.make_command();
    let uuid = random_uuid().map_err(Error::of_host)?;
    let must_be_given_back = device.is_real() && !device.is_array;
    if device.is_array {
        // The members are the array's now; the array itself is what is formatted.
        let mut array = Claim::take(&device.node).map_err(Error::of_host)?;
        return format(&mut array, &words, &uuid, true).map(|_| ()).map_err(Error::of_host);
    }
    let modelled = !device.is_real();
    let Some(held) = device.held.first_mut() else { return Ok(()) };
    if must_be_given_back {
        check_before_writing(&held.claim, held.may_overwrite).map_err(Error::of_host)?;
        journal.note(Change::Formatted(Written::on(&held.claim, Mark::Uuid(uuid.clone()))))?;
    }
    // Whatever a modelled disk held was discarded.
    let made =
        format(&mut held.claim, &words, &uuid, held.may_overwrite || modelled).map_err(Error::of_host)?;
    if must_be_given_back && made != uuid {
        // A tool that takes no UUID chose one of its own.
        journal.note(Change::Formatted(Written::on(&held.claim, Mark::Uuid(made))))?;
    }
    Ok(())
}

pub(crate) fn target(device: &str, devices: &[BlockDevice], points: &[MountPoint]) -> PathBuf {
    let point = points.iter().find(|point| point.device == device).map(|point| point.files.clone());
    let node = || devices.iter().find(|found| found.name == device).map(|found| found.node.clone());
    point.or_else(node).unwrap_or_default()
}

/// Everything written reaches its device, and nothing of it is remembered: file systems are mounted afresh, device caches
/// dropped. Not by sync(2) and drop_caches, which would make the run wait for, and disturb, everything else on the host.
pub(crate) fn forget_what_was_written(
    run: &Run,
    options: &Options,
    filesystem: &FileSystem,
    limits: &Limits,
    devices: &[BlockDevice],
    points: &[MountPoint],
) -> Result<(), Error> {
    if filesystem.network.is_some() {
        return points
            .iter()
            .try_for_each(|point| networked::remount(&options.state, filesystem, limits, point));
    }
    if filesystem.mounted {
        return points.iter().try_for_each(|point| given::forget(&point.files));
    }
    if !filesystem.on_device {
        return Ok(());
    }
    for point in points {
        mount::unmount(&point.path).map_err(Error::Failed)?;
    }
    for device in devices {
        device.drop_cache().map_err(Error::io("cannot drop the cache of", &device.node))?;
    }
    for point in points {
        let size_mib =
            run.devices.iter().find(|device| device.name == point.device).map_or(0, |device| device.size_mib);
        mount::mount(filesystem, &point.source, &point.path, size_mib)?;
    }
    Ok(())
}

/// From here on a modelled device takes the model's time, and a server with a policy rules by the run's, with its classes where
/// their files lie.
pub(crate) fn start_timing(
    run: &Run,
    device: &mut BlockDevice,
    places: &[Place],
) -> Result<Option<Asked>, Error> {
    let asked = live::arrange(run, device, places)?;
    device.set_timing(true)?;
    let Some(control) = &mut device.control else { return Ok(asked) };
    let failed = |error: weir_blockserver::Error| Error::Failed(error.to_string());
    control.stats(true).map_err(failed)?;
    Ok(asked)
}

/// What is not as it was set.
pub(crate) fn state_problems(
    run: &Run,
    filesystem: &FileSystem,
    devices: &[BlockDevice],
    points: &[MountPoint],
) -> Vec<String> {
    let mounted =
        points.iter().filter_map(|point| mount::check(filesystem, &point.source, &point.path).err());
    let changed = devices.iter().flat_map(BlockDevice::problems);
    let queues = devices.iter().flat_map(|device| {
        let settings = run.kernel_settings(&device.name);
        let is_of_kernel = run.scheduler_of(&device.name).is_of_kernel();
        device.queues.iter().filter_map(move |queue| queue::verify(queue, &settings, is_of_kernel).err())
    });
    mounted.chain(changed).chain(queues).collect()
}
