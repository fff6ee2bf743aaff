//! Course of a run on this host: attempts, each prepared, measured, finished and undone.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::json;
use weir_coordination::Coordination;
use weir_study::{Engine, FileSystem, Run};

use crate::Error;
use crate::cgroup::class_groups;
use crate::cgroup::limits::Limits;
use crate::context::child_processes::{self, wait_for_children};
use crate::context::journal::Journal;
use crate::context::kernel;
use crate::context::options::Options;
use crate::context::run_context::RunContext;
use crate::context::testbed::Testbed;
use crate::context::write_json;
use crate::device::queue_record::put_back as put_queues_back;
use crate::filesystem::network;
use crate::run::finish::{Finished, finish};
use crate::run::folder::RunFolder;
use crate::run::measure::measure;
use crate::run::outcome::Outcome;
use crate::run::prepare::prepare;
use crate::run::usage::Use;
use crate::validity::rule::{is_invalid, is_skipped, skipped};

/// Carries out a run of this host alone, unless its folder exists.
///
/// # Errors
/// As [`crate::carry_out`].
pub(crate) fn carry_out(run: &Run, testbed: &Testbed, options: &Options) -> Result<Outcome, Error> {
    let path = options.results.join(&run.id);
    // A skipped run is tried again: the kernel may have changed.
    let again = || (options.retry_invalid && is_invalid(&path)) || is_skipped(&path);
    if path.is_dir() && !again() {
        return Ok(Outcome::Present);
    }
    kernel::check(run, testbed)?;
    let folder = RunFolder::take(&options.results, &run.id)?;
    // Another process may have just finished it.
    if path.is_dir() && !again() {
        return Ok(Outcome::Present);
    }
    until_undisturbed(options, |number| {
        if number > 1 {
            eprintln!("run {}: CPU steal disturbed attempt {}; trying again", run.id, number - 1);
        }
        attempt(run, testbed, options, &folder, number, None)
    })
}

/// Calls `once` with the number of each attempt, from 1, until one was not disturbed, the limit of attempts is reached, or the
/// run is interrupted.
fn until_undisturbed(
    options: &Options,
    mut once: impl FnMut(u32) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let mut number = 1;
    loop {
        let outcome = once(number)?;
        let disturbed = matches!(&outcome, Outcome::Done { validity, .. } if validity.disturbed);
        if !disturbed || number >= options.attempts || options.stop.load(Ordering::Relaxed) {
            return Ok(outcome);
        }
        number += 1;
    }
}

/// Makes one attempt at a run, or at a host's part of it, in its folder.
///
/// # Errors
/// As [`crate::carry_out`].
pub(crate) fn attempt(
    run: &Run,
    testbed: &Testbed,
    options: &Options,
    folder: &RunFolder,
    number: u32,
    peers: Option<&mut Coordination>,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let filesystem = FileSystem::load(&run.settings.filesystem)
        .ok_or_else(|| {
            Error::Refused(format!(
                "file system {} is not known to weir (weir list filesystems)",
                run.settings.filesystem
            ))
        })?
        .with(&run.settings);
    let filesystem = &testbed.as_mounted(filesystem);
    let mut journal = begin_journal(options)?;
    let mut limits = Limits::new(run, &options.state);
    let context =
        RunContext { run, testbed, options, partial: folder.partial(), filesystem, began, attempt: number };
    let done = prepare_and_measure(&context, folder, peers, &mut limits, &mut journal);
    limits.leave();
    let done = done.map_err(|error| match network::revive_client(&options.state, filesystem) {
        Some(why) => Error::Failed(format!("{error}; {why}")),
        None => error,
    });
    let mut left = journal.undo();
    match put_queues_back(&options.state) {
        Ok(queues) => left.extend(queues.left),
        Err(error) => left.push(error.to_string()),
    }
    if let Err(Error::Unavailable(reason)) = done {
        return skip(run, reason, &left, folder);
    }
    let mut finished = done?;
    if !left.is_empty() {
        return Err(Error::Failed(format!(
            "measured, but not all changes of the host were undone: {}",
            left.join("; ")
        )));
    }
    finished.timing.teardown_s += began.elapsed().as_secs_f64() - finished.ended_s;
    publish(&finished, folder)?;
    Ok(Outcome::Done { validity: finished.validity, timing: finished.timing, requests: finished.requests })
}

/// Undoes the changes of a killed run, then begins the journal of this one: a device that the killed run had mounted would be
/// refused as in use.
fn begin_journal(options: &Options) -> Result<Journal, Error> {
    wait_for_children(&options.state)?;
    let (journal, undone) = Journal::begin(&options.state.join("journal"))?;
    child_processes::hold(&options.state)?;
    // Daemons of a run that was killed before its journal listed them, or whose journal was removed.
    let ended = weir_daemons::stop_all(&options.state, |scope| scope == weir_daemons::Scope::Run);
    let ended = ended.map_err(Error::failed)?;
    let traced = weir_collectors::recover(&options.state).map_err(Error::failed)?;
    let queues = put_queues_back(&options.state)?;
    for line in undone.into_iter().chain(ended).chain(traced).chain(queues.undone) {
        eprintln!("undone after a run that was killed: {line}");
    }
    queues.left.iter().for_each(|line| eprintln!("left by a run that was killed: {line}"));
    Ok(journal)
}

fn prepare_and_measure(
    context: &RunContext<'_>,
    folder: &RunFolder,
    peers: Option<&mut Coordination>,
    limits: &mut Limits,
    journal: &mut Journal,
) -> Result<Finished, Error> {
    let RunContext { run, options, filesystem, .. } = *context;
    class_groups::move_controller(context, journal)?;
    let mut prepared = prepare(context, folder, limits, journal)?;
    if run.classes.iter().all(|class| matches!(class.engine, Engine::Web | Engine::Site)) {
        // The memory limit is for servers: browsers keep rows, and read no file. Pages already written stay charged.
        limits.leave();
    }
    let use_before = Use::now(context.state(), filesystem, limits)?;
    let measured = measure(context, &mut prepared, limits, peers)?;
    if let Some(problem) = network::problem(context.state(), filesystem) {
        return Err(Error::Failed(problem));
    }
    let used = Use::now(context.state(), filesystem, limits)?.since(use_before);
    if options.stop.load(Ordering::Relaxed) {
        return Err(Error::Failed("interrupted; undone".to_owned()));
    }
    finish(context, prepared, measured, limits, &used)
}

/// Publishes a folder that says why the run is not available on this host.
fn skip(run: &Run, reason: String, left: &[String], folder: &RunFolder) -> Result<Outcome, Error> {
    if !left.is_empty() {
        return Err(Error::Failed(format!(
            "{reason}; not all changes of the host were undone: {}",
            left.join("; ")
        )));
    }
    folder.make()?;
    folder.write_run(run)?;
    write_json(&folder.partial().join("verdict.json"), &skipped(&reason))?;
    folder.publish()?;
    Ok(Outcome::Skipped { reason })
}

/// Completes the folder and gives it its final name. It replaces an invalid run of that name.
fn publish(finished: &Finished, folder: &RunFolder) -> Result<(), Error> {
    let mut observed = finished.observed.clone();
    observed["timing"] = json!(finished.timing);
    write_json(&folder.partial().join("observed.json"), &observed)?;
    folder.publish()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::run::outcome::Timing;
    use crate::validity::rule::Validity;

    fn options(attempts: u32, stop: bool) -> Options {
        Options {
            results: PathBuf::new(),
            state: PathBuf::new(),
            retry_invalid: false,
            attempts,
            stop: Arc::new(AtomicBool::new(stop)),
            move_io_controller: false,
            coordination: None,
        }
    }

    /// Attempts that are made of at most `attempts`, where the first `disturbed` are, and whether the last of them was.
    fn tried(attempts: u32, disturbed: u32, stop: bool) -> (u32, bool) {
        let options = options(attempts, stop);
        let mut last = 0;
        let outcome = until_undisturbed(&options, |attempt| {
            assert_eq!(attempt, last + 1);
            last = attempt;
            let validity = Validity { disturbed: attempt <= disturbed, attempt, ..Validity::of(Vec::new()) };
            Ok(Outcome::Done { validity, timing: Timing::default(), requests: 0 })
        });
        let Ok(Outcome::Done { validity, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(validity.attempt, last);
        (last, validity.disturbed)
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
