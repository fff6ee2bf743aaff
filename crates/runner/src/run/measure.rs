//! Measurement of a run: from the start of the capture to the last completion.

use std::collections::BTreeMap;

use weir_coordination::{Coordination, Record};
use weir_host::clock::{self, wall_minus_monotonic_ns};

use crate::Error;
use crate::cgroup::limits::Limits;
use crate::context::run_context::RunContext;
use crate::device::block_device::BlockDevice;
use crate::device::capture::{Capture, Recording};
use crate::device::server_scheduler::{self, InForce};
use crate::load::access::AccessContext;
use crate::run::barrier;
use crate::run::load::{Load, Sent};
use crate::run::prepare::Prepared;

/// Result of the measurement.
pub(crate) struct Measured {
    pub(crate) sent: Sent,
    pub(crate) epoch_ns: i64,
    pub(crate) capture: Option<Recording>,
    pub(crate) models: Vec<(String, weir_blockserver::Stats)>,
    /// Active schedulers of devices with one of weir's, by device.
    pub(crate) schedulers: BTreeMap<String, InForce>,
    pub(crate) device_read_bytes: u64,
    pub(crate) clock_step_ns: f64,
    pub(crate) setup_s: f64,
    pub(crate) measured_s: f64,
    /// Of a part of a run of several hosts: its epoch and clock offsets.
    pub(crate) coordination: Option<Record>,
}

/// Sends the requests of all classes, and waits for the last completion.
///
/// # Errors
/// Something cannot be opened or started, or failed.
pub(crate) fn measure(
    context: &RunContext<'_>,
    prepared: &mut Prepared,
    limits: &Limits,
    mut peers: Option<&mut Coordination>,
) -> Result<Measured, Error> {
    let RunContext { run, began, .. } = *context;
    prepared.groups.begin();
    let devices = &mut prepared.devices;
    let load = Load::prepare(context, &prepared.places, &prepared.groups)?;
    let lead = load.lead();
    let names: Vec<&str> = devices.iter().flat_map(BlockDevice::kernel_names).collect();
    let capture = Capture::start(run, &names, &context.partial.join("block.parquet"), context.state())?;
    let before: u64 = devices.iter().map(BlockDevice::read_bytes).sum();
    let wall_before = wall_minus_monotonic_ns();
    let epoch_ns = match &mut peers {
        None => clock::monotonic_ns() + i64::try_from(lead.as_nanos()).unwrap_or(0),
        Some(peers) => barrier::begin(peers, lead)?,
    };
    let begun = server_scheduler::begin(devices, epoch_ns)?;
    let setup_s = began.elapsed().as_secs_f64();

    let sent = load.send(epoch_ns, &AccessContext { context, limits, points: &prepared.points })?;
    let measured_s = began.elapsed().as_secs_f64() - setup_s;
    // A host that is done waits for the others, which still send.
    let coordination = peers.map(Coordination::end).transpose()?;
    let after: u64 = devices.iter().map(BlockDevice::read_bytes).sum();
    let clock_step_ns = (wall_minus_monotonic_ns() - wall_before) as f64;
    let capture = capture.map(|capture| capture.stop(epoch_ns));
    let mut models = Vec::new();
    for device in devices.iter_mut() {
        // A dead server does not answer; R-ERRORS judges its failed requests.
        if let Some(Ok(stats)) = device.control.as_mut().map(|control| control.stats(false)) {
            models.push((device.name.clone(), stats));
        }
    }
    let schedulers = server_scheduler::read_back(devices, &prepared.schedulers, &begun);
    let device_read_bytes = after.saturating_sub(before);
    Ok(Measured {
        sent,
        epoch_ns,
        capture,
        models,
        schedulers,
        device_read_bytes,
        clock_step_ns,
        setup_s,
        measured_s,
        coordination,
    })
}
