//! The course of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use weir_collectors::Disk;
use weir_collectors::host::{self, HostRecord};
use weir_records::{Op, Request, write_all};
use weir_replayer::{Fidelity, Targets, clock};
use weir_studies::{Engine, FileSystem, Run};

use crate::Error;
use crate::block_device::BlockDevice;
use crate::capture::{Capture, Recording};
use crate::fio;
use crate::journal::{Change, Journal};
use crate::open_loop::{Merged, layout};
use crate::place::{self, Place};
use crate::testbed::Testbed;
use crate::verdict::{Facts, Verdict, is_invalid, judge};
use crate::{array, fill, mount, queue};

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
    for line in undone {
        eprintln!("undone of a run that died: {line}");
    }
    let done = prepare_and_measure(run, testbed, options, &filesystem, &mut journal, began);
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
    journal: &mut Journal,
    began: Instant,
) -> Result<Finished, Error> {
    let mut devices = open_devices(run, testbed, filesystem)?;
    let partial = options.results.join(format!(".{}.partial", run.id));
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(partial.join("logs")).map_err(Error::io("cannot make", &partial))?;
    write_json(&partial.join("run.json"), run)?;

    let points = make_file_systems(run, options, filesystem, &mut devices, journal)?;
    let raw = filesystem.mount_type.is_none();
    let places = place::all(run, raw, |device| target(device, &devices, &points));
    for place in &places {
        fill::fill(place, run.seed)?;
    }
    forget_what_was_written(run, filesystem, &devices, &points)?;
    for device in &mut devices {
        device.queues.iter().try_for_each(|queue| queue::apply(queue, &run.settings, journal))?;
        if !device.members.is_empty() {
            array::read_ahead(&device.node, run.settings.read_ahead_kib, journal)?;
        }
        start_timing(device)?;
    }
    write_json(&partial.join("host.json"), &host_record(&devices, &points)?)?;

    let measured = measure(run, options, &mut devices, &places, &partial, began)?;
    if options.stop.load(Ordering::Relaxed) {
        return Err(Error::Failed("interrupted; undone".to_owned()));
    }
    let setup_s = measured.setup_s;
    let facts = Facts {
        fidelity: measured.fidelity.as_ref(),
        fio: &measured.fio,
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
        clock_step_ns: measured.clock_step_ns,
        state: state_problems(run, filesystem, &devices, &points),
        models: measured.models.clone(),
    };
    let verdict = judge(&facts);
    let requests = write_all(&partial.join("requests.parquet"), measured.epoch_ns, &measured.rows)
        .map_err(|error| Error::Failed(error.to_string()))?;
    write_json(&partial.join("verdict.json"), &verdict)?;
    let observed = json!({
        "replay": measured.fidelity,
        "fio": measured.fio,
        "capture": measured.capture.as_ref().map(Recording::report),
        "models": measured.models.iter().map(|(name, stats)| (name.clone(), json!(stats))).collect::<serde_json::Map<_, _>>(),
        "device_read_bytes": measured.device_read_bytes,
        "clock_step_ns": measured.clock_step_ns,
    });
    let ended_s = began.elapsed().as_secs_f64();
    let measured_s = measured.measured_s;
    let timing = Timing { setup_s, measured_s, teardown_s: ended_s - setup_s - measured_s };
    Ok(Finished { partial, observed, verdict, timing, requests, ended_s })
}

/// Opens every device of a run, and refuses what can be known to be impossible.
fn open_devices(run: &Run, testbed: &Testbed, filesystem: &FileSystem) -> Result<Vec<BlockDevice>, Error> {
    if !filesystem.on_device {
        return Ok(Vec::new());
    }
    let open = |wanted: &weir_studies::RunDevice| {
        let device = testbed.devices.get(&wanted.name).ok_or_else(|| {
            Error::Refused(format!("device `{}` is not in the test bed; name one for it", wanted.name))
        })?;
        let device = BlockDevice::open(wanted, device)?;
        if device.size_bytes < wanted.size_mib << 20 {
            return Err(Error::Refused(format!(
                "device `{}` ({}) has {} MiB; the study needs {}",
                wanted.name,
                device.kernel_names().collect::<Vec<_>>().join(", "),
                device.size_bytes >> 20,
                wanted.size_mib
            )));
        }
        device.queues.iter().try_for_each(|queue| queue::check(queue, &run.settings))?;
        Ok(device)
    };
    run.devices.iter().map(open).collect()
}

/// The host as the requests find it: with the devices and file systems in the state of the run.
fn host_record(devices: &[BlockDevice], points: &[MountPoint]) -> Result<HostRecord, Error> {
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
struct MountPoint {
    device: String,
    source: PathBuf,
    path: PathBuf,
}

/// Blanks the devices, assembles arrays, makes and mounts the file systems; on a raw device only the blanking.
fn make_file_systems(
    run: &Run,
    options: &Options,
    filesystem: &FileSystem,
    devices: &mut [BlockDevice],
    journal: &mut Journal,
) -> Result<Vec<MountPoint>, Error> {
    for device in devices.iter_mut() {
        if let Some(control) = &mut device.control {
            let failed = |error: weir_blockserver::Error| Error::Failed(error.to_string());
            control.timing(false).map_err(failed)?;
            control.discard().map_err(failed)?;
        }
    }
    for device in devices.iter_mut().filter(|device| !device.members.is_empty()) {
        let wanted = run.devices.iter().find(|wanted| wanted.name == device.name);
        let stripe_unit_kib = wanted.map_or(0, |wanted| wanted.stripe_unit_kib);
        array::assemble(&device.node, &device.members, stripe_unit_kib, journal)?;
        // The mount table knows it by its kernel name.
        device.node = device.node.canonicalize().map_err(Error::io("cannot find", &device.node))?;
    }
    if filesystem.mount_type.is_none() {
        return Ok(Vec::new());
    }
    let mut points = Vec::new();
    for wanted in &run.devices {
        let device = devices.iter().find(|device| device.name == wanted.name);
        let source = device.map_or_else(|| PathBuf::from(&filesystem.name), |device| device.node.clone());
        let path = options.state.join("mnt").join(&wanted.name);
        fs::create_dir_all(&path).map_err(Error::io("cannot make", &path))?;
        if let Some(device) = device {
            if device.control.is_none() {
                journal.note(Change::Formatted(source.clone()))?;
            }
            mount::make(filesystem, &source)?;
        }
        journal.note(Change::Mounted(path.clone()))?;
        mount::mount(filesystem, &source, &path, wanted.size_mib)?;
        points.push(MountPoint { device: wanted.name.clone(), source, path });
    }
    Ok(points)
}

fn target(device: &str, devices: &[BlockDevice], points: &[MountPoint]) -> PathBuf {
    let point = points.iter().find(|point| point.device == device).map(|point| point.path.clone());
    let node = || devices.iter().find(|found| found.name == device).map(|found| found.node.clone());
    point.or_else(node).unwrap_or_default()
}

/// Everything written reaches its device, and nothing of it is remembered: file systems are mounted afresh, device caches
/// dropped. Not by sync(2) and drop_caches, which would make the run wait for, and disturb, everything else on the host.
fn forget_what_was_written(
    run: &Run,
    filesystem: &FileSystem,
    devices: &[BlockDevice],
    points: &[MountPoint],
) -> Result<(), Error> {
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

fn start_timing(device: &mut BlockDevice) -> Result<(), Error> {
    let Some(control) = &mut device.control else { return Ok(()) };
    let failed = |error: weir_blockserver::Error| Error::Failed(error.to_string());
    control.timing(true).map_err(failed)?;
    control.stats(true).map_err(failed)?;
    Ok(())
}

/// What came out of the measuring itself.
struct Measured {
    rows: Vec<Request>,
    epoch_ns: i64,
    fidelity: Option<Fidelity>,
    fio: Vec<fio::Report>,
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
    let targets = Targets::open(&layout(places)).map_err(|error| Error::Failed(error.to_string()))?;
    let lead_ns = i64::try_from(LEAD.as_nanos()).unwrap_or(0);
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
    for (row, number) in rows.iter_mut().zip(0..) {
        row.request = number;
    }
    let device_read_bytes = after.saturating_sub(before);
    Ok(Measured {
        rows,
        epoch_ns,
        fidelity,
        fio: reports,
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

/// What is not as it was set.
fn state_problems(
    run: &Run,
    filesystem: &FileSystem,
    devices: &[BlockDevice],
    points: &[MountPoint],
) -> Vec<String> {
    let mounts = points.iter().filter_map(|point| mount::check(filesystem, &point.source, &point.path).err());
    let queues = devices.iter().flat_map(|device| &device.queues);
    let queues = queues.filter_map(|queue| queue::verify(queue, &run.settings).err());
    mounts.chain(queues).collect()
}
