//! The part of a run that is measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_coordination::{Coordination, Record};
use weir_host::clock::{self, wall_minus_monotonic_ns};
use weir_records::{Op, Page, Request};
use weir_replayer::{Fidelity, Targets};
use weir_study::{Engine, Run};

use crate::Error;
use crate::access::{self, Accessed, Ground};
use crate::apart;
use crate::block_device::BlockDevice;
use crate::capture::{Capture, Recording};
use crate::carry_out::Options;
use crate::control::Controls;
use crate::fio;
use crate::joint;
use crate::live::{self, Asked, InForce};
use crate::networked;
use crate::open_loop::{Merged, layout};
use crate::place::Place;
use crate::site::{self, Visited};
use crate::web::{self, Asking};

/// Requests begin this long after everything is ready, so that the first is not late.
const LEAD: Duration = Duration::from_millis(20);

/// What came out of the measuring itself.
pub(crate) struct Measured {
    pub(crate) rows: Vec<Request>,
    pub(crate) epoch_ns: i64,
    pub(crate) fidelity: Option<Fidelity>,
    pub(crate) fio: Vec<fio::Report>,
    pub(crate) web: Option<weir_web_client::Report>,
    pub(crate) pages: Vec<Page>,
    pub(crate) visited: Visited,
    pub(crate) access: Option<Accessed>,
    pub(crate) capture: Option<Recording>,
    pub(crate) models: Vec<(String, weir_blockserver::Stats)>,
    /// Of devices with policies, by name.
    pub(crate) live: BTreeMap<String, InForce>,
    pub(crate) device_read_bytes: u64,
    pub(crate) clock_step_ns: f64,
    pub(crate) setup_s: f64,
    pub(crate) measured_s: f64,
    /// Of a part of a run of several hosts: when it began, and on which clock.
    pub(crate) met: Option<Record>,
}

/// Sends what the classes ask for, and waits for the last answer.
///
/// # Errors
/// Something cannot be opened or started, or failed.
#[allow(clippy::too_many_arguments)]
pub(crate) fn measure(
    run: &Run,
    options: &Options,
    mut meeting: Option<&mut Coordination>,
    devices: &mut [BlockDevice],
    places: &[Place],
    policies: &[Asked],
    ground: &Ground<'_>,
    controls: &Controls,
    partial: &Path,
    began: Instant,
) -> Result<Measured, Error> {
    // Classes with control groups have processes; all others are sent together, by one clock.
    let (grouped, together): (Vec<&Place>, Vec<&Place>) =
        places.iter().partition(|place| controls.group(&place.class.name).is_some());
    let stream = Merged::new(run, together.iter().copied())?;
    let targets = Targets::open(&layout(together.iter().copied(), run.settings.buffered))
        .map_err(|error| Error::Failed(error.to_string()))?;
    let mut alone = Vec::new();
    for place in grouped.into_iter().filter(|place| place.class.engine == Engine::Replay) {
        let Some(group) = controls.group(&place.class.name) else { continue };
        let folder = partial.join("logs").join(format!("replay-{}", place.class.name));
        alone.extend(apart::start(run, place, group, &folder)?);
    }
    if !run.settings.warm_start {
        networked::forget(ground.state, ground.filesystem)?;
    }
    let lead_ns = i64::try_from(LEAD.as_nanos()).unwrap_or(0);
    let visitors = web::classes(run, places)?;
    let visits = site::visits(run, &partial.join("logs"), &options.stop)?;
    let names: Vec<&str> = devices.iter().flat_map(BlockDevice::kernel_names).collect();
    let capture = Capture::start(run, &names, &partial.join("block.parquet"), &options.state)?;
    let before: u64 = devices.iter().map(BlockDevice::read_bytes).sum();
    let wall_before = wall_minus_monotonic_ns();
    let epoch_ns = match &mut meeting {
        None => clock::monotonic_ns() + lead_ns,
        Some(meeting) => joint::begin(meeting, LEAD)?,
    };
    let begun = live::begin(devices, epoch_ns)?;
    let setup_s = began.elapsed().as_secs_f64();

    let mut jobs = Vec::new();
    for (index, place) in places.iter().enumerate().filter(|(_, place)| place.class.engine == Engine::Fio) {
        let folder = partial.join("logs").join(format!("fio-{}", place.class.name));
        jobs.push(fio::start(run, place, index, &folder, controls.group(&place.class.name))?);
    }
    alone.iter_mut().try_for_each(|replay| replay.begin(epoch_ns))?;
    let asking = Asking::begin(visitors, visits, run, epoch_ns, &options.stop)?;
    let mut rows = Vec::new();
    let mut fidelity = if stream.is_empty() {
        None
    } else {
        let replay_options = weir_replayer::Options {
            epoch_monotonic_ns: Some(epoch_ns),
            stop: Arc::clone(&options.stop),
            seed: run.seed,
            ..weir_replayer::Options::default()
        };
        // The device's name in the study, not the path that the replayer was given.
        let names: Vec<(Arc<str>, Arc<str>)> = places
            .iter()
            .map(|place| (place.class.name.as_str().into(), place.class.device.as_str().into()))
            .collect();
        let sink = |mut row: Request| {
            if let Some((_, device)) = names.iter().find(|(class, _)| *class == row.class) {
                row.device = Some(Arc::clone(device));
            }
            rows.push(row);
        };
        Some(
            weir_replayer::replay(stream, &targets, &replay_options, sink)
                .map_err(|error| Error::Failed(error.to_string()))?,
        )
    };
    for replay in alone {
        let (found, told) = replay.finish(&options.stop)?;
        rows.extend(found);
        fidelity = Some(match fidelity {
            None => told,
            Some(others) => others.and(told),
        });
    }
    let mut reports = Vec::new();
    for job in jobs {
        let (found, report) = job.finish(run, places, epoch_ns, &options.stop)?;
        rows.extend(found);
        reports.push(report);
    }
    let (mut web, mut visited) = (None, Visited::default());
    if let Some(asking) = asking {
        let asked = asking.finish()?;
        rows.extend(asked.rows);
        (web, visited) = (Some(asked.report), asked.visited);
    }
    let mut accessed = None;
    if let Some(access) = &run.access {
        let (found, report) = access::measure(run, access, ground, epoch_ns, &options.stop)?;
        rows.extend(found);
        accessed = Some(report);
    }
    let measured_s = began.elapsed().as_secs_f64() - setup_s;
    // Whoever is done first waits for the others: they still ask.
    let met = meeting.map(Coordination::end).transpose().map_err(joint::from_coordination)?;
    let after: u64 = devices.iter().map(BlockDevice::read_bytes).sum();
    let clock_step_ns = (wall_minus_monotonic_ns() - wall_before) as f64;
    let capture = capture.map(|capture| capture.stop(epoch_ns));
    let mut models = Vec::new();
    for device in devices.iter_mut() {
        // A server that died has nothing to say any more; its requests failed, which is judged elsewhere.
        if let Some(Ok(stats)) = device.control.as_mut().map(|control| control.stats(false)) {
            models.push((device.name.clone(), stats));
        }
    }
    let live = live::look(devices, policies, &begun);
    rows.sort_by_key(|row| (row.intended_ns, row.request));
    let mut pages = Vec::new();
    for (row, number) in rows.iter_mut().zip(0..) {
        pages.extend(visited.take(row, number));
        row.request = number;
    }
    let device_read_bytes = after.saturating_sub(before);
    Ok(Measured {
        rows,
        epoch_ns,
        fidelity,
        fio: reports,
        web,
        pages,
        visited,
        access: accessed,
        capture,
        models,
        live,
        device_read_bytes,
        clock_step_ns,
        setup_s,
        measured_s,
        met,
    })
}

/// Bytes that the application read and that need not have been in the page cache.
/// Bytes that requests read, as far as they were answered.
pub(crate) fn read_bytes(run: &Run, rows: &[Request]) -> u64 {
    if let Some(access) = &run.access {
        return access::uncached_bytes(access, rows);
    }
    let read = |row: &&Request| row.op == Op::Read && row.status == 0 && row.completed_ns.is_some();
    rows.iter().filter(read).map(|row| row.size_bytes).sum()
}
