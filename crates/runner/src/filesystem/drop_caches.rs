//! Dropping of caches before a run: written data are on their device, and in no cache.

use crate::Error;
use crate::cgroup::limits::Limits;
use crate::context::run_context::RunContext;
use crate::device::block_device::BlockDevice;
use crate::filesystem::mount_point::MountPoint;
use crate::filesystem::{mount, network, premounted};

/// Writes data back, remounts file systems, and drops the caches of devices. sync(2) and drop_caches would affect the whole
/// host.
///
/// # Errors
/// A file system cannot be written back, unmounted or mounted.
pub(crate) fn drop_all(
    context: &RunContext<'_>,
    limits: &Limits,
    devices: &[BlockDevice],
    points: &[MountPoint],
) -> Result<(), Error> {
    let RunContext { run, filesystem, .. } = *context;
    if filesystem.network.is_some() {
        return points.iter().try_for_each(|point| {
            network::remount(context.state(), filesystem, limits.group("client"), point)
        });
    }
    if filesystem.mounted {
        return points.iter().try_for_each(|point| premounted::drop_pages(&point.files));
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
