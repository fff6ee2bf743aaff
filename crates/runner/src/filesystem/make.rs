//! File systems of a run, made and mounted on its devices.

use std::fs;

use weir_host::device::contents::{make_blank, write_label};
use weir_host::device::{
    Claim, Mark, Written, check_before_writing, make_file_system as format, random_uuid,
};
use weir_host::mounts;
use weir_study::{FileSystem, Run};

use crate::Error;
use crate::context::journal::{Change, Journal};
use crate::context::run_context::RunContext;
use crate::device::array;
use crate::device::block_device::BlockDevice;
use crate::device::held_disk::Held;
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::{mount, network, premounted};

/// Blanks the devices, assembles arrays, makes and mounts the file systems. A raw device is blanked, or labelled if it is a real
/// disk.
///
/// # Errors
/// A device has changed, or a tool fails.
pub(crate) fn file_systems(
    context: &RunContext<'_>,
    devices: &mut [BlockDevice],
    journal: &mut Journal,
) -> Result<Vec<MountPoint>, Error> {
    let RunContext { run, filesystem, .. } = *context;
    if filesystem.mounted {
        return Ok(vec![premounted::point(context, journal)?]);
    }
    if filesystem.network.is_some() {
        return Ok(vec![network::mount(context, devices, journal)?]);
    }
    for device in devices.iter_mut() {
        if let Some(problem) = device.problems().into_iter().next() {
            return Err(Error::Refused(problem));
        }
        if let Some(control) = &mut device.control {
            control.timing(false).map_err(Error::failed)?;
            control.discard().map_err(Error::failed)?;
        }
    }
    for device in devices.iter_mut().filter(|device| device.is_array) {
        let wanted = run.devices.iter().find(|wanted| wanted.name == device.name);
        let stripe_unit_kib = wanted.map_or(0, |wanted| wanted.stripe_unit_kib);
        array::assemble(&device.node, &mut device.held, stripe_unit_kib, journal)?;
        // The mount table has the kernel name.
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
        // In the mount table a file system without a device has a name made for this run.
        let source =
            device.as_ref().map_or_else(|| format!("weir-{}", run.id).into(), |device| device.node.clone());
        let path = context.state().join("mnt").join(&wanted.name);
        fs::create_dir_all(&path).map_err(Error::io("cannot make", &path))?;
        if let Some(found) = mounts::at(&path)? {
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

/// Labels a real disk that a run writes without a file system.
fn label(held: &Held, run: &Run, journal: &mut Journal) -> Result<(), Error> {
    check_before_writing(&held.claim, held.may_overwrite)?;
    let token = format!("run {} {}", run.id, random_uuid()?);
    journal.note(Change::Formatted(Written::on(&held.claim, Mark::Label(token.clone()))))?;
    // Old signatures would later make the disk look used.
    if held.may_overwrite {
        make_blank(&held.claim, &token)?;
    }
    write_label(&held.claim, &token).map_err(Error::from)
}

/// Makes a file system with a UUID that the journal lists before the disk is written.
fn make_file_system(
    device: &mut BlockDevice,
    filesystem: &FileSystem,
    journal: &mut Journal,
) -> Result<(), Error> {
    let words = filesystem.make_command();
    let uuid = random_uuid()?;
    let must_be_given_back = device.is_real() && !device.is_array;
    if device.is_array {
        // The array has claimed its members; the array itself is formatted.
        let mut array = Claim::take(&device.node)?;
        return format(&mut array, &words, &uuid, true).map(|_| ()).map_err(Error::from);
    }
    let modelled = !device.is_real();
    let Some(held) = device.held.first_mut() else { return Ok(()) };
    if must_be_given_back {
        check_before_writing(&held.claim, held.may_overwrite)?;
        journal.note(Change::Formatted(Written::on(&held.claim, Mark::Uuid(uuid.clone()))))?;
    }
    // A modelled disk has discarded its data.
    let made = format(&mut held.claim, &words, &uuid, held.may_overwrite || modelled)?;
    if must_be_given_back && made != uuid {
        // A tool without a UUID option has chosen one.
        journal.note(Change::Formatted(Written::on(&held.claim, Mark::Uuid(made))))?;
    }
    Ok(())
}
