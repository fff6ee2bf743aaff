//! The course of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use weir_records::{Op, Page, Request, write_all};
use weir_replayer::{Fidelity, Targets, clock};
use weir_studies::{Engine, FileSystem, Run};

use crate::Error;
use crate::block_device::BlockDevice;
use crate::capture::{Capture, Recording};
use crate::fio;
use crate::journal::Journal;
use crate::limits::{self, Limits, Use};
use crate::networked::{self, Filling};
use crate::open_loop::{Merged, layout};
use crate::place::{self, Place};
use crate::prepare::{
    forget_what_was_written, host_record, make_file_systems, open_devices, start_timing, state_problems,
    target,
};
use crate::site::{self, After, Visited};
use crate::testbed::Testbed;
use crate::verdict::{Facts, Verdict, is_invalid, judge};
use crate::web::{self, Asking};
use crate::{array, fill, queue, service};

/// Requests begin this long after everything is ready, so that the first is not late.
const LEAD: Duration = Duration::from_millis(20);

/// Where a run works on this host.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the study's results; the run's own folder is made in it.
    pub results: PathBuf,
    /// Folder for the journal and for mount points.
    pub state: PathBuf,
    /// Whether a run that is there, but was judged invalid, is carried out again and replaced.
    pub retry_invalid: bool,
    /// Set to `true` to end the run early and undo it.
    pub stop: Arc<AtomicBool>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Its folder is there already; nothing was done.
    Present,
    /// It was carried out; its folder is whole.
    Done {
        /// What is to be thought of its data.
        verdict: Verdict,
        /// Time before, during and after the requests.
        timing: Timing,
        /// Rows of `requests.parquet`.
        requests: u64,
    },
}

/// Where the time of a run went, in seconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Timing {
    /// Devices, file systems, files, collectors.
    pub setup_s: f64,
    /// Requests.
    pub measured_s: f64,
    /// Records, verdict, undoing.
    pub teardown_s: f64,
}

/// Carries out one run.
///
/// # Errors
/// [`Error::Refused`] if nothing was touched, [`Error::Failed`] if something went wrong on the way; what had been
/// done was undone then.
pub fn carry_out(run: &Run, testbed: &Testbed, options: &Options) -> Result<Outcome, Error> {
    let folder = options.results.join(&run.id);
    if folder.is_dir() && !(options.retry_invalid && is_invalid(&folder)) {
        return Ok(Outcome::Present);
    }
    let began = Instant::now();
    let filesystem = FileSystem::load(&run.settings.filesystem)
        .ok_or_else(|| Error::Refused(format!("file system {} is unknown", run.settings.filesystem)))?;
    // First what a dead run left: a device that it had mounted would look as if it were in use.
    let (mut journal, undone) = Journal::begin(&options.state.join("journal"))?;
    // Services of a run that died before its journal knew them, or whose journal was removed.
    let ended = weir_services::stop_all(&options.state, |scope| scope == weir_services::Scope::Run);
    let ended = ended.map_err(|error| Error::Failed(error.to_string()))?;
    for line in undone.into_iter().chain(ended) {
        eprintln!("undone of a run that died: {line}");
    }
    let limits = Limits::new(run, &options.state);
    let done = prepare_and_measure(run, testbed, options, &filesystem, &limits, &mut journal, began);
    limits.leave();
    let left = journal.undo();
    let mut finished = done?;
    if !left.is_empty() {
        return Err(Error::Failed(format!("measured, but not undone: {}", left.join("; "))));
    }
    finished.timing.teardown_s += began.elapsed().as_secs_f64() - finished.ended_s;
    publish(&finished, &folder)?;
    Ok(Outcome::Done { verdict: finished.verdict, timing: finished.timing, requests: finished.requests })
}

/// A run whose data lie in its partial folder.
struct Finished {
    partial: PathBuf,
    observed: serde_json::Value,
    verdict: Verdict,
    timing: Timing,
    requests: u64,
    /// When the measuring ended, in seconds from the run's beginning.
    ended_s: f64,
}

/// Completes the folder and gives it its name. An invalid one of that name, if there is one, goes when this is there.
fn publish(finished: &Finished, folder: &Path) -> Result<(), Error> {
    let mut observed = finished.observed.clone();
    observed["timing"] = json!(finished.timing);
    write_json(&finished.partial.join("observed.json"), &observed)?;
    let replaced = finished.partial.with_extension("replaced");
    if folder.is_dir() {
        let _ = fs::remove_dir_all(&replaced);
        fs::rename(folder, &replaced).map_err(Error::io("cannot replace", folder))?;
    }
    fs::rename(&finished.partial, folder).map_err(Error::io("cannot complete", folder))?;
    let _ = fs::remove_dir_all(&replaced);
    Ok(())
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
    fs::write(path, text + "\n").map_err(Error::io("cannot write", path))
}

fn prepare_and_measure(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    filesystem: &FileSystem,
    limits: &Limits,
    journal: &mut Journal,
    began: Instant,
) -> Result<Finished, Error> {
    service::check(run)?;
    let mut devices = open_devices(run, testbed, &options.state, filesystem)?;
    let partial = options.results.join(format!(".{}.partial", run.id));
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(partial.join("logs")).map_err(Error::io("cannot make", &partial))?;
    write_json(&partial.join("run.json"), run)?;

    let logs = partial.join("logs");
    // Outside of the run's memory: what loads them is not part of it.
    let mut kept = Vec::new();
    for (service, of_site) in site::all(run) {
        kept.push((service, site::keep(service, of_site, &options.state, &logs, journal)?));
    }
    limits.enter(journal)?;
    let points = make_file_systems(run, options, filesystem, &mut devices, journal)?;
    let raw = filesystem.mount_type.is_none();
    let written = Filling::begin(filesystem, &options.state)?;
    let places = place::all(run, raw, |device| target(device, &devices, &points));
    for place in &places {
        fill::fill(place, run.seed, networked::writers(filesystem))?;
    }
    let mut sites = Vec::new();
    for (service, kept) in kept {
        let target = |device: &str| target(device, &devices, &points);
        sites.push(site::lay_out(run, service, kept, &options.state, target, journal)?);
    }
    forget_what_was_written(run, options, filesystem, limits, &devices, &points)?;
    let written = written.map(|filling| filling.end(&places, &sites)).transpose()?;
    for device in &mut devices {
        device.queues.iter().try_for_each(|queue| queue::apply(queue, &run.settings, journal))?;
        if !device.members.is_empty() {
            array::read_ahead(&device.node, run.settings.read_ahead_kib, journal)?;
        }
        start_timing(device)?;
    }
    let services = service::start_all(run, &options.state, &places, &sites, limits, &logs, journal)?;
    write_json(&partial.join("host.json"), &host_record(&devices, &points)?)?;

    if run.classes.iter().all(|class| matches!(class.engine, Engine::Web | Engine::Site)) {
        // The memory is the servers': who asks them has rows to keep, and reads no file. What was written stays charged.
        limits.leave();
    }
    let use_before = Use::now(&options.state, filesystem, limits)?;
    let mut measured = measure(run, options, &mut devices, &places, &partial, began)?;
    let used = Use::now(&options.state, filesystem, limits)?.since(use_before);
    if options.stop.load(Ordering::Relaxed) {
        return Err(Error::Failed("interrupted; undone".to_owned()));
    }
    let setup_s = measured.setup_s;
    let state: Vec<String> = state_problems(run, filesystem, &devices, &points)
        .into_iter()
        .chain(limits.problem())
        .chain(service::problems(&services))
        .collect();
    if run.settings.buffered || !sites.is_empty() {
        // What is asked from here on is not part of the run. A server that died is judged elsewhere.
        devices.iter_mut().for_each(|device| drop(device.set_timing(false)));
    }
    let after = site::check(run, &options.state, &logs, &sites)?;
    let facts = Facts {
        fidelity: measured.fidelity.as_ref(),
        fio: &measured.fio,
        web: measured.web.as_ref(),
        failed: measured.rows.iter().filter(|row| row.status != 0).count() as u64,
        first_failure: measured
            .rows
            .iter()
            .find(|row| row.status != 0)
            .map(|row| std::io::Error::from_raw_os_error(row.status).to_string()),
        rows: measured.rows.len() as u64,
        loss: measured.capture.as_ref().map(Recording::loss),
        allowed_loss: run.allowed_loss,
        capture_required: run.capture == weir_studies::Capture::Required,
        read_bytes: filesystem.on_device.then(|| (read_bytes(&measured.rows), measured.device_read_bytes)),
        cached_by_right: networked::cached_by_right(run, filesystem),
        written,
        clock_step_ns: measured.clock_step_ns,
        sites: after.iter().map(After::findings).collect(),
        state,
        models: measured.models.clone(),
    };
    let verdict = judge(&facts);
    let residency = limits::residency(run, &places)?;
    let requests = write_all(&partial.join("requests.parquet"), measured.epoch_ns, &measured.rows)
        .map_err(|error| Error::Failed(error.to_string()))?;
    if !sites.is_empty() {
        write_all(&partial.join("pages.parquet"), measured.epoch_ns, &measured.pages)
            .map_err(|error| Error::Failed(error.to_string()))?;
    }
    write_json(&partial.join("verdict.json"), &verdict)?;
    let sites = site::observed(&after, std::mem::take(&mut measured.visited), measured.web.as_ref());
    let observed = json!({
        "replay": measured.fidelity,
        "fio": measured.fio,
        "web": measured.web,
        "capture": measured.capture.as_ref().map(Recording::report),
        "models": measured.models.iter().map(|(name, stats)| (name.clone(), json!(stats))).collect::<serde_json::Map<_, _>>(),
        "device_read_bytes": measured.device_read_bytes,
        "clock_step_ns": measured.clock_step_ns,
        "services": services,
        "sites": sites,
        "network": used.network,
        "cpu": used.cpu,
        "memory": used.memory,
        "memory_of": used.memory_of,
        "residency": residency,
    });
    let ended_s = began.elapsed().as_secs_f64();
    let measured_s = measured.measured_s;
    let timing = Timing { setup_s, measured_s, teardown_s: ended_s - setup_s - measured_s };
    Ok(Finished { partial, observed, verdict, timing, requests, ended_s })
}

/// What came out of the measuring itself.
struct Measured {
    rows: Vec<Request>,
    epoch_ns: i64,
    fidelity: Option<Fidelity>,
    fio: Vec<fio::Report>,
    web: Option<weir_browsers::Report>,
    pages: Vec<Page>,
    visited: Visited,
    capture: Option<Recording>,
    models: Vec<(String, weir_blockserver::Stats)>,
    device_read_bytes: u64,
    clock_step_ns: f64,
    setup_s: f64,
    measured_s: f64,
}

fn measure(
    run: &Run,
    options: &Options,
    devices: &mut [BlockDevice],
    places: &[Place],
    partial: &Path,
    began: Instant,
) -> Result<Measured, Error> {
    let stream = Merged::new(run, places)?;
    let targets = Targets::open(&layout(places, run.settings.buffered))
        .map_err(|error| Error::Failed(error.to_string()))?;
    if let Some(filesystem) = FileSystem::load(&run.settings.filesystem) {
        networked::forget(&options.state, &filesystem)?;
    }
    let lead_ns = i64::try_from(LEAD.as_nanos()).unwrap_or(0);
    let visitors = web::classes(run, places)?;
    let visits = site::visits(run, &partial.join("logs"), &options.stop)?;
    let names: Vec<&str> = devices.iter().flat_map(BlockDevice::kernel_names).collect();
    let capture = Capture::start(run, &names, &partial.join("block.parquet"))?;
    let before: u64 = devices.iter().map(BlockDevice::read_bytes).sum();
    let wall_before = wall_against_monotonic_ns();
    let epoch_ns = clock::monotonic_ns() + lead_ns;
    let setup_s = began.elapsed().as_secs_f64();

    let mut jobs = Vec::new();
    for (index, place) in places.iter().enumerate().filter(|(_, place)| place.class.engine == Engine::Fio) {
        let folder = partial.join("logs").join(format!("fio-{}", place.class.name));
        jobs.push(fio::start(run, place, index, &folder)?);
    }
    let asking = Asking::begin(visitors, visits, run, epoch_ns, &options.stop)?;
    let mut rows = Vec::new();
    let fidelity = if stream.is_empty() {
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
    let mut reports = Vec::new();
    for job in jobs {
        let (found, report) = job.finish(run, places, epoch_ns)?;
        rows.extend(found);
        reports.push(report);
    }
    let (mut web, mut visited) = (None, Visited::default());
    if let Some(asking) = asking {
        let asked = asking.finish()?;
        rows.extend(asked.rows);
        (web, visited) = (Some(asked.report), asked.visited);
    }
    let measured_s = began.elapsed().as_secs_f64() - setup_s;
    let after: u64 = devices.iter().map(BlockDevice::read_bytes).sum();
    let clock_step_ns = (wall_against_monotonic_ns() - wall_before) as f64;
    let capture = capture.map(|capture| capture.stop(epoch_ns));
    let mut models = Vec::new();
    for device in devices.iter_mut() {
        // A server that died has nothing to say any more; its requests failed, which is judged elsewhere.
        if let Some(Ok(stats)) = device.control.as_mut().map(|control| control.stats(false)) {
            models.push((device.name.clone(), stats));
        }
    }
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
        capture,
        models,
        device_read_bytes,
        clock_step_ns,
        setup_s,
        measured_s,
    })
}

/// Wall clock minus monotonic clock, in ns: constant unless somebody sets the wall clock.
fn wall_against_monotonic_ns() -> i64 {
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(wall.as_nanos()).unwrap_or(0) - clock::monotonic_ns()
}

fn read_bytes(rows: &[Request]) -> u64 {
    let read = |row: &&Request| row.op == Op::Read && row.status == 0 && row.completed_ns.is_some();
    rows.iter().filter(read).map(|row| row.size_bytes).sum()
}
