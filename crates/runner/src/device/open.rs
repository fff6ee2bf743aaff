//! Devices of a run, opened and claimed: everything that can be checked is checked before anything is written.

use crate::Error;
use crate::context::run_context::RunContext;
use crate::device::block_device::{self, BlockDevice};
use crate::device::kernel_queue;

/// Opens every device of a run.
///
/// # Errors
/// [`Error::Refused`]: a device is absent, in use, too small, or cannot have the run's scheduler.
pub(crate) fn open_devices(context: &RunContext<'_>) -> Result<Vec<BlockDevice>, Error> {
    let RunContext { run, testbed, filesystem, .. } = *context;
    let listed = |wanted: &weir_study::RunDevice| {
        testbed.devices.get_key_value(&wanted.name).ok_or_else(|| {
            Error::Refused(format!(
                "device `{}` is not in the testbed. List a device of that name",
                wanted.name
            ))
        })
    };
    let all = run.devices.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    block_device::check_distinct(all.into_iter())?;
    let open = |wanted: &weir_study::RunDevice| {
        let device = BlockDevice::open(wanted, listed(wanted)?.1)?;
        let room_bytes = if filesystem.mount_type.is_none() { device.raw_bytes() } else { device.size_bytes };
        if room_bytes < wanted.size_mib << 20 {
            return Err(Error::Refused(format!(
                "device `{}` ({}) is too small (found {} MiB, expected {})",
                wanted.name,
                device.kernel_names().collect::<Vec<_>>().join(", "),
                room_bytes >> 20,
                wanted.size_mib
            )));
        }
        let scheduler = run.scheduler_of(&wanted.name);
        if !scheduler.is_of_kernel() && !device.has_policies {
            return Err(Error::Refused(format!(
                "device `{}`: scheduler {} needs a block server with `live`, and the device has {}. Serve it as the plan says, or use the kernel's schedulers",
                wanted.name,
                scheduler.name,
                if device.control.is_some() { "one without" } else { "no block server" }
            )));
        }
        let settings = run.kernel_settings(&wanted.name);
        device.queues.iter().try_for_each(|queue| kernel_queue::check(queue, &settings))?;
        Ok(device)
    };
    run.devices.iter().map(open).collect()
}
