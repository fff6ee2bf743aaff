//! The course of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;
use serde_json::json;
use weir_coordination::{Coordination, Ended};
use weir_records::write_all;
use weir_study::{Capture, Engine, FileSystem, Run};

use crate::Error;
use crate::access::Ground;
use crate::capture::Recording;
use crate::children::{self, wait_for_children};
use crate::control;
use crate::joint::{self, Meet};
use crate::journal::Journal;
use crate::limits::Limits;
use crate::live;
use crate::measure::{Measured, measure, read_bytes};
use crate::prepare::state_problems;
use crate::queue_record::put_back as put_queues_back;
use crate::run_folder::{RunFolder, write_json};
use crate::site::{self, After};
use crate::stage::{self, Stage};
use crate::testbed::Testbed;
use crate::usage::{Use, residency};
use crate::verdict::{Facts, Verdict, is_invalid, is_skipped, judge, skipped};
use crate::{fs_options, given, medium, networked, service};

/// Where a run works on this host.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the study's results; the run's own folder is made in it.
    pub results: PathBuf,
    /// Folder for the journal and for mount points.
    pub state: PathBuf,
    /// Whether a run that is there, but was judged invalid, is carried out again and replaced.
    pub retry_invalid: bool,
    /// How often a run is carried out at most, where a hypervisor that kept processors alone made it invalid (1 or more).
    pub attempts: u32,
    /// Set to `true` to end the run early and undo it.
    pub stop: Arc<AtomicBool>,
    /// Whether the kernel's controller of disks may be moved to version 2 of control groups for a run that uses it.
    pub move_io_controller: bool,
    /// Where this host meets the others of a run that several carry out together.
    pub meet: Option<Meet>,
}

impl Options {
    /// What this host calls its own of a run where others have theirs, too.
    pub(crate) fn own_name(&self, run: &Run) -> String {
        match &self.meet {
            None => run.id.clone(),
            Some(meet) => format!("{}.{}", run.id, meet.roster.me()),
        }
    }
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
    /// This host's kernel does not have what it varies; its folder says so.
    Skipped {
        /// What it does not have.
        reason: String,
    },
    /// Another host ended it, of those that carried it out together; what was done here was undone.
    Ended {
        /// Which, and how.
        ended: Ended,
        /// Time until then, in seconds.
        spent_s: f64,
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
    match (&run.hosts, &options.meet) {
        (Some(_), Some(meet)) => return joint::carry_out(run, testbed, options, meet),
        (None, None) => {}
        (Some(hosts), None) => {
            return Err(Error::Refused(format!(
                "run {} is one of {} hosts at once: give the coordinator's address (--meet), as the playbook does",
                run.id, hosts.clients
            )));
        }
        (None, Some(_)) => {
            return Err(Error::Refused(format!("run {} is one of a host alone: leave out --meet", run.id)));
        }
    }
    let folder = options.results.join(&run.id);
    // What could not be had before is asked for again: it may be there now.
    let again = || (options.retry_invalid && is_invalid(&folder)) || is_skipped(&folder);
    if folder.is_dir() && !again() {
        return Ok(Outcome::Present);
    }
    let place = RunFolder::take(&options.results, &run.id)?;
    // Another process may have just ended.
    if folder.is_dir() && !again() {
        return Ok(Outcome::Present);
    }
    until_undisturbed(options, |attempt| {
        if attempt > 1 {
            eprintln!("run {}: attempt {} was disturbed by the host; once more", run.id, attempt - 1);
        }
        alone(run, testbed, options, None, &place, attempt)
    })
}

/// Gives `once` the number of each attempt, from 1, until one was not disturbed, the last has been, or all is to end.
fn until_undisturbed(
    options: &Options,
    mut once: impl FnMut(u32) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let mut attempt = 1;
    loop {
        let outcome = once(attempt)?;
        let disturbed = matches!(&outcome, Outcome::Done { verdict, .. } if verdict.disturbed);
        if !disturbed || attempt >= options.attempts || options.stop.load(Ordering::Relaxed) {
            return Ok(outcome);
        }
        attempt += 1;
    }
}

/// Carries out one run, or a part of it, in its folder.
pub(crate) fn alone(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    meeting: Option<&mut Coordination>,
    place: &RunFolder,
    attempt: u32,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let filesystem = FileSystem::load(&run.settings.filesystem)
        .ok_or_else(|| Error::Refused(format!("file system {} is unknown", run.settings.filesystem)))?
        .with(&run.settings);
    let filesystem = given::on(filesystem, testbed);
    // First what a dead run left: a device that it had mounted would look as if it were in use.
    wait_for_children(&options.state)?;
    let (mut journal, undone) = Journal::begin(&options.state.join("journal"))?;
    children::hold(&options.state)?;
    // Services of a run that died before its journal knew them, or whose journal was removed.
    let ended = weir_daemons::stop_all(&options.state, |scope| scope == weir_daemons::Scope::Run);
    let ended = ended.map_err(|error| Error::Failed(error.to_string()))?;
    let traced =
        weir_collectors::recover(&options.state).map_err(|error| Error::Failed(error.to_string()))?;
    let queues = put_queues_back(&options.state)?;
    for line in undone.into_iter().chain(ended).chain(traced).chain(queues.undone) {
        eprintln!("undone of a run that died: {line}");
    }
    queues.left.iter().for_each(|line| eprintln!("left by a run that died: {line}"));
    let mut limits = Limits::new(run, &options.state);
    let bench = Bench { run, testbed, options, place, filesystem: &filesystem, began, attempt };
    let done = prepare_and_measure(&bench, meeting, &mut limits, &mut journal);
    limits.leave();
    let done = done.map_err(|error| match networked::revive_client(&options.state, &filesystem) {
        Some(why) => Error::Failed(format!("{error}; {why}")),
        None => error,
    });
    let mut left = journal.undo();
    match put_queues_back(&options.state) {
        Ok(queues) => left.extend(queues.left),
        Err(error) => left.push(error.to_string()),
    }
    if let Err(Error::Unavailable(reason)) = done {
        return skip(run, reason, &left, place);
    }
    let mut finished = done?;
    if !left.is_empty() {
        return Err(Error::Failed(format!("measured, but not undone: {}", left.join("; "))));
    }
    finished.timing.teardown_s += began.elapsed().as_secs_f64() - finished.ended_s;
    publish(&finished, place)?;
    Ok(Outcome::Done { verdict: finished.verdict, timing: finished.timing, requests: finished.requests })
}

/// Leaves a folder that says why there is no such run on this host.
fn skip(run: &Run, reason: String, left: &[String], place: &RunFolder) -> Result<Outcome, Error> {
    if !left.is_empty() {
        return Err(Error::Failed(format!("{reason}; not undone: {}", left.join("; "))));
    }
    place.make()?;
    place.write_run(run)?;
    write_json(&place.partial().join("verdict.json"), &skipped(&reason))?;
    place.publish()?;
    Ok(Outcome::Skipped { reason })
}

/// A run whose data lie in its partial folder.
struct Finished {
    observed: serde_json::Value,
    verdict: Verdict,
    timing: Timing,
    requests: u64,
    /// When the measuring ended, in seconds from the run's beginning.
    ended_s: f64,
}

/// Completes the folder and gives it its name. An invalid one of that name, if there is one, goes when this is there.
fn publish(finished: &Finished, place: &RunFolder) -> Result<(), Error> {
    let mut observed = finished.observed.clone();
    observed["timing"] = json!(finished.timing);
    write_json(&place.partial().join("observed.json"), &observed)?;
    place.publish()
}

/// What a run works with.
struct Bench<'a> {
    run: &'a Run,
    testbed: &'a Testbed,
    options: &'a Options,
    place: &'a RunFolder,
    filesystem: &'a FileSystem,
    began: Instant,
    attempt: u32,
}

fn prepare_and_measure(
    bench: &Bench<'_>,
    meeting: Option<&mut Coordination>,
    limits: &mut Limits,
    journal: &mut Journal,
) -> Result<Finished, Error> {
    let Bench { run, testbed, options, place, filesystem, began, attempt } = *bench;
    control::move_controller(run, options, journal)?;
    let mut stage = stage::set(run, testbed, options, place, filesystem, limits, journal)?;
    if run.classes.iter().all(|class| matches!(class.engine, Engine::Web | Engine::Site)) {
        // The memory is the servers': who asks them has rows to keep, and reads no file. What was written stays charged.
        limits.leave();
    }
    let use_before = Use::now(&options.state, filesystem, limits)?;
    let ground = Ground { state: &options.state, filesystem, limits, points: &stage.points };
    stage.controls.begin();
    let (devices, places, policies) = (&mut stage.devices, &stage.places, &stage.policies);
    let (controls, partial) = (&stage.controls, &stage.partial);
    let mut measured =
        measure(run, options, meeting, devices, places, policies, &ground, controls, partial, began)?;
    if let Some(problem) = networked::problem(&options.state, filesystem) {
        return Err(Error::Failed(problem));
    }
    let used = Use::now(&options.state, filesystem, limits)?.since(use_before);
    if options.stop.load(Ordering::Relaxed) {
        return Err(Error::Failed("interrupted; undone".to_owned()));
    }
    let state: Vec<String> = state_problems(run, filesystem, &stage.devices, &stage.points)
        .into_iter()
        .chain(limits.problems())
        .chain(fs_options::problems(run, testbed, filesystem, &stage.points))
        .chain(service::problems(&stage.services))
        .collect();
    if run.settings.buffered || !stage.sites.is_empty() {
        // What is asked from here on is not part of the run. A server that died is judged elsewhere.
        stage.devices.iter_mut().for_each(|device| drop(device.set_timing(false)));
    }
    if !stage.sites.is_empty() {
        limits.lift()?;
    }
    let after = site::check(run, &options.state, &stage.logs, &stage.sites)?;
    let facts = facts(run, filesystem, &stage, &measured, &after, &used, state)?;
    let verdict = Verdict { attempt, ..judge(&facts) };
    let all_answered = facts.failed == 0;
    let mut observed = record(run, &options.state, &stage, limits, &mut measured, &after, &used, &verdict)?;
    observed["devices"] = json!(medium::of_devices(run, testbed));
    observed["media"] = json!(medium::of_classes(run, testbed));
    if all_answered {
        stage.kept_files.leave();
    }
    let ended_s = began.elapsed().as_secs_f64();
    let (setup_s, measured_s) = (measured.setup_s, measured.measured_s);
    let timing = Timing { setup_s, measured_s, teardown_s: ended_s - setup_s - measured_s };
    let requests = measured.rows.len() as u64;
    Ok(Finished { observed, verdict, timing, requests, ended_s })
}

/// What the verdict is made of.
fn facts<'a>(
    run: &'a Run,
    filesystem: &FileSystem,
    stage: &Stage,
    measured: &'a Measured,
    after: &[After],
    used: &Use,
    state: Vec<String>,
) -> Result<Facts<'a>, Error> {
    let failed = || measured.rows.iter().filter(|row| row.status != 0);
    Ok(Facts {
        fidelity: measured.fidelity.as_ref(),
        fio: &measured.fio,
        web: measured.web.as_ref(),
        access: measured.access.as_ref(),
        failed: failed().count() as u64,
        first_failure: failed().next().map(|row| std::io::Error::from_raw_os_error(row.status).to_string()),
        rows: measured.rows.len() as u64,
        loss: measured.capture.as_ref().map(Recording::loss),
        allowed_loss: run.allowed_loss,
        capture_required: run.capture == Capture::Required,
        read_bytes: (!stage.devices.is_empty())
            .then(|| (read_bytes(run, &measured.rows), measured.device_read_bytes)),
        cached_by_right: networked::cached_by_right(run, filesystem),
        written: match &run.access {
            Some(access) => stage.filling.as_ref().map(|it| it.end(access.total_bytes())).transpose()?,
            None => stage.moved,
        },
        ways: live::ways(run, &measured.rows, &measured.live),
        is_raw: filesystem.mount_type.is_none(),
        clock_step_ns: measured.clock_step_ns,
        sites: after.iter().map(After::findings).collect(),
        state,
        controls: stage.controls.judge(&measured.rows),
        models: measured.models.clone(),
        policies: measured.live.iter().map(|(device, live)| (device.clone(), live.verify())).collect(),
        stolen: used.stolen.map_or(0.0, |stolen| stolen.of_wanted),
    })
}

/// Writes all but `observed.json`, and gives that.
#[allow(clippy::too_many_arguments)]
fn record(
    run: &Run,
    state: &Path,
    stage: &Stage,
    limits: &Limits,
    measured: &mut Measured,
    after: &[After],
    used: &Use,
    verdict: &Verdict,
) -> Result<serde_json::Value, Error> {
    let failed = |error: weir_records::Error| Error::Failed(error.to_string());
    let residency = residency(run, &stage.places)?;
    write_all(&stage.partial.join("requests.parquet"), measured.epoch_ns, &measured.rows).map_err(failed)?;
    if !stage.sites.is_empty() {
        write_all(&stage.partial.join("pages.parquet"), measured.epoch_ns, &measured.pages)
            .map_err(failed)?;
    }
    write_json(&stage.partial.join("verdict.json"), verdict)?;
    if let Some(met) = &measured.met {
        write_json(&stage.partial.join(joint::PART), met)?;
    }
    let models: BTreeMap<&String, _> = measured.models.iter().map(|(name, stats)| (name, stats)).collect();
    let hot: BTreeMap<&String, _> =
        stage.hot.iter().map(|hot| (&hot.service, hot.used(&measured.rows))).collect();
    Ok(json!({
        "replay": measured.fidelity,
        "fio": measured.fio,
        "web": measured.web,
        "access": measured.access,
        "capture": measured.capture.as_ref().map(Recording::report),
        "models": models,
        "live": measured.live,
        "device_read_bytes": measured.device_read_bytes,
        "clock_step_ns": measured.clock_step_ns,
        "controllers": stage.controls.report(state),
        "services": stage.services,
        "filesystem_options": stage.options,
        "sites": site::observed(after, std::mem::take(&mut measured.visited), measured.web.as_ref()),
        "network": used.network,
        "cpu": used.cpu,
        "stolen": used.stolen,
        "memory": used.memory,
        "memory_of": used.memory_of,
        "reads": limits.reads(),
        "hot": hot,
        "residency": residency,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(attempts: u32, stop: bool) -> Options {
        Options {
            results: PathBuf::new(),
            state: PathBuf::new(),
            retry_invalid: false,
            attempts,
            stop: Arc::new(AtomicBool::new(stop)),
            move_io_controller: false,
            meet: None,
        }
    }

    /// Attempts that are made of at most `attempts`, where the first `disturbed` are, and whether the last of them was.
    fn tried(attempts: u32, disturbed: u32, stop: bool) -> (u32, bool) {
        let options = options(attempts, stop);
        let mut last = 0;
        let outcome = until_undisturbed(&options, |attempt| {
            assert_eq!(attempt, last + 1);
            last = attempt;
            let verdict = Verdict { disturbed: attempt <= disturbed, attempt, ..Verdict::of(Vec::new()) };
            let timing = Timing { setup_s: 0.0, measured_s: 0.0, teardown_s: 0.0 };
            Ok(Outcome::Done { verdict, timing, requests: 0 })
        });
        let Ok(Outcome::Done { verdict, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(verdict.attempt, last);
        (last, verdict.disturbed)
    }

    #[test]
    fn only_what_was_disturbed_is_repeated_and_not_for_ever() {
        assert_eq!(tried(3, 0, false), (1, false));
        assert_eq!(tried(3, 1, false), (2, false));
        assert_eq!(tried(3, 9, false), (3, true));
        assert_eq!(tried(1, 9, false), (1, true));
        assert_eq!(tried(3, 9, true), (1, true), "it was to end");
    }

    #[test]
    fn an_attempt_that_went_wrong_is_not_repeated() {
        let options = options(3, false);
        let mut made = 0;
        let outcome = until_undisturbed(&options, |_| {
            made += 1;
            Err(Error::Failed("no room".to_owned()))
        });
        assert!(outcome.is_err());
        assert_eq!(made, 1);
    }
}
