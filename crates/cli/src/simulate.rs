//! `weir simulate`: the runs of a study in virtual time.

use std::collections::{BTreeMap, HashSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use weir_runner::{Durability, Error, Outcome, Status};
use weir_study::{Plan, Run, Testbed, to_rows};

use crate::analysis;
use crate::exit::bad_input;
use crate::memory;
use crate::output::{self, Output};
use crate::plan::{describe, duration};
use crate::plan_file::read_plan;
use crate::project::Project;
use crate::shard::{is_of_shard, shard};
use crate::wanted::Wanted;

/// Without a terminal, a line at most this often.
const EVERY: Duration = Duration::from_secs(10);

/// Simulate the runs of a study in virtual time: no root, no device.
///
/// Each run has its own folder in DIR/STUDY, which appears when the run is complete. Finished runs are not repeated.
/// The outcome does not depend on --jobs. Runs on devices of the same study are left out.
#[derive(clap::Args)]
pub struct Args {
    /// Name or file of the study, or its plan (`plan.json`).
    study: String,
    /// Folder of results; the study gets a folder in it.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Runs in parallel. Default: number of processors.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Part I of N of the runs: 1/3, 2/3 and 3/3 on three machines are the whole study.
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Only these runs. `weir plan STUDY --tasks N` prints such commands for job schedulers.
    #[arg(long = "id", value_name = "ID", value_delimiter = ',', conflicts_with_all = ["shard", "repetitions"])]
    ids: Vec<String>,
    /// Only the first N repetitions of each cell. Default: all; of a study with `precision`, those up to the next decision
    /// (`python -m weir precision`).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Repeat invalid runs, and replace them.
    #[arg(long)]
    retry_invalid: bool,
    /// Label of the runs, in place of that of the study: keeps the runs of two kernels or commits apart.
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Do not wait for the disk: a crash of the host may damage runs. For a folder that `weir gather` reads and checks.
    #[arg(long)]
    no_sync: bool,
    /// Let the workers of the Dask scheduler at this address, such as tcp://10.0.0.1:8786, simulate the runs. They send the
    /// folders of runs back: no file system is shared. Ctrl-C keeps finished runs; the same command continues.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "shard", "ids", "repetitions", "no_sync"])]
    dask: Option<String>,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let given = Path::new(&args.study);
    let is_plan = given.extension().is_some_and(|extension| extension == "json");
    if is_plan && args.label.is_some() {
        return Err(bad_input(format!(
            "--label: {} is a plan, which has its label: leave it out",
            args.study
        )));
    }
    let plan = if is_plan {
        read_plan(given)?
    } else {
        Project::find()?.plan(&args.study, args.label.as_deref())?
    };
    if !plan.runs.iter().any(|run| run.testbed.is_virtual()) {
        return Err(bad_input(format!(
            "{}: its testbed is device: use `make study STUDY={}`, or say `testbed: [device, simulator]`",
            plan.study, plan.study
        )));
    }
    if let Some(address) = &args.dask {
        return analysis::simulate(
            address,
            &args.study,
            &args.out,
            args.label.as_deref(),
            args.retry_invalid,
            output.is_json(),
        );
    }
    let (part, parts) = shard(args.shard.as_deref())?;
    let known: HashSet<&str> =
        plan.runs.iter().filter(|run| run.testbed.is_virtual()).map(|run| run.id.as_str()).collect();
    if let Some(id) = args.ids.iter().find(|id| !known.contains(id.as_str())) {
        return Err(bad_input(format!("--id {id}: study {} has no such run in virtual time", plan.study)));
    }
    let jobs = match args.jobs {
        Some(0) => return Err(bad_input("--jobs 0: at least one run at once".to_owned())),
        Some(jobs) => jobs,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let each_bytes = plan.runs.iter().map(|run| run.estimate().memory_bytes).max().unwrap_or(0);
    let together = u64::try_from(jobs.min(plan.runs.len())).unwrap_or(u64::MAX);
    memory::fits_here(
        &format!("{together} runs at once"),
        each_bytes.saturating_mul(together),
        "use fewer --jobs, clients or files",
    )?;
    let results = args.out.join(&plan.study);
    std::fs::create_dir_all(&results)
        .map_err(|error| bad_input(format!("--out {}: {error}", results.display())))?;
    weir_runner::sweep(&results)?.iter().for_each(|left| eprintln!("{left}"));
    // `weir compare` reads the plan beside the runs. The plan given may be in another folder, such as an archive's.
    if !is_plan || !results.join(plan.file_name()).exists() {
        write_plan(&plan, &results)?;
    }
    let wanted = match args.repetitions {
        Some(repetitions) => Wanted::of(&plan, &results)?.up_to(repetitions),
        None if !args.ids.is_empty() => Wanted::all(),
        None => Wanted::of(&plan, &results)?,
    };
    let of_ids: HashSet<&str> = args.ids.iter().map(String::as_str).collect();
    let is_wanted = |run: &&Run| {
        let is_named = of_ids.is_empty() || of_ids.contains(run.id.as_str());
        wanted.has(run) && is_of_shard(run, part, parts) && is_named
    };
    let runs: Vec<&Run> = plan.runs.iter().filter(is_wanted).collect();
    let progress = Progress::new(&plan.study, &runs, output);
    let durability = if args.no_sync { Durability::Process } else { Durability::Crash };
    let began = Instant::now();
    let done = at_once(jobs, &runs, |run| {
        let outcome = weir_runner::simulate(run, &results, args.retry_invalid, durability);
        outcome.map(|outcome| progress.tell(run, &outcome, &results)).map_err(|error| match error {
            Error::Refused(_) => bad_input(format!("run {} {}: {error}", run.id, describe(run))),
            Error::Failed(_) | Error::Unavailable(_) => anyhow::Error::new(error),
        })
    })?;
    progress.bar.finish_and_clear();
    let requests: u64 = done.iter().map(|run| run.requests).sum();
    let invalid = done.iter().filter(|run| run.is_invalid).count();
    let admits = plan.runs.iter().all(|run| run.testbed == Testbed::Admission);
    let what = if admits { "streams asked" } else { "requests simulated" };
    let elapsed_s = began.elapsed().as_secs_f64();
    let verdict = if invalid > 0 { format!("{invalid} INVALID") } else { "all valid".to_owned() };
    let text =
        format!("{}: {} runs, {verdict}, {requests} {what} in {elapsed_s:.1} s", plan.study, done.len());
    output.result(&document(&plan.study, &results, done, elapsed_s), text)?;
    Ok(if invalid > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// What became of a run.
struct Simulated<'a> {
    id: &'a str,
    /// Requests that were simulated now, or streams that asked for admission.
    requests: u64,
    /// Whether it was in the results before.
    was_present: bool,
    is_invalid: bool,
    /// Rules that it broke now, with the reasons.
    broken: Vec<String>,
}

/// The outcome for programs, with the names of `weir gather`.
fn document(study: &str, folder: &Path, mut done: Vec<Simulated>, elapsed_s: f64) -> Value {
    // The order does not depend on --jobs.
    done.sort_by_key(|run| run.id);
    let ids_of = |of: fn(&Simulated) -> bool| -> Vec<&str> {
        done.iter().filter(|run| of(run)).map(|run| run.id).collect()
    };
    let broken: BTreeMap<&str, &[String]> =
        done.iter().filter(|run| !run.broken.is_empty()).map(|run| (run.id, &*run.broken)).collect();
    json!({
        "study": study,
        "folder": output::text(folder),
        "stored": ids_of(|run| !run.was_present),
        "present": ids_of(|run| run.was_present),
        "invalid": ids_of(|run| run.is_invalid),
        "broken": broken,
        "requests": done.iter().map(|run| run.requests).sum::<u64>(),
        "elapsed_s": elapsed_s,
    })
}

/// Does the work of each item, `jobs` of them at once, each begun in its turn. After an error nothing more is begun.
fn at_once<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || -> anyhow::Result<Vec<R>> {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let result = work(item).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            done.push(result);
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..jobs.min(items.len()) {
            let started = std::thread::Builder::new().spawn_scoped(scope, worker);
            workers.push(started.context("cannot start threads")?);
        }
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Writes the plan beside the runs atomically. An equal plan is not written again.
pub fn write_plan(plan: &Plan, results: &Path) -> anyhow::Result<()> {
    let text = to_rows(plan)? + "\n";
    let file = results.join(plan.file_name());
    if std::fs::read_to_string(&file).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let partial = results.join(format!(".plan.{}.partial", std::process::id()));
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, &file))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Progress on standard error with the time left: a bar on a terminal, otherwise lines.
struct Progress {
    output: Output,
    bar: ProgressBar,
    total: usize,
    began: Instant,
    pace: Mutex<Pace>,
    told: Option<Mutex<Instant>>,
}

impl Progress {
    fn new(study: &str, runs: &[&Run], output: Output) -> Self {
        let (terminal, total) = (std::io::stderr().is_terminal(), runs.len());
        let bar = if terminal { ProgressBar::new(total as u64) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} runs{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(study.to_owned());
        if !terminal {
            eprintln!("{study}: {total} runs");
        }
        Progress {
            output,
            bar,
            total,
            began: Instant::now(),
            pace: Mutex::new(Pace::of(runs)),
            told: (!terminal).then(|| Mutex::new(Instant::now())),
        }
    }

    /// Notes a run that is done; returns the time left, such as `, 2 min 5 s left`.
    fn left(&self, run: &Run, outcome: &Outcome) -> String {
        let Ok(mut pace) = self.pace.lock() else { return String::new() };
        pace.note(work(run), matches!(outcome, Outcome::Done { .. }));
        pace.left_s(self.began.elapsed())
            .map(|seconds| format!(", {} left", duration(seconds)))
            .unwrap_or_default()
    }

    /// Says that a run is done.
    fn tell<'a>(&self, run: &'a Run, outcome: &Outcome, results: &Path) -> Simulated<'a> {
        let left = self.left(run, outcome);
        self.bar.set_message(left.clone());
        self.bar.inc(1);
        let (requests, valid) = match outcome {
            Outcome::Present => (0, !weir_runner::is_invalid(&results.join(&run.id))),
            Outcome::Done { validity, requests, .. } => (*requests, validity.status != Status::Invalid),
            // Of several hosts: there are none in virtual time.
            Outcome::Ended { .. } | Outcome::Skipped { .. } => (0, false),
        };
        let mut why: Vec<String> = Vec::new();
        if let Outcome::Done { validity, .. } = outcome
            && !valid
        {
            let broken = validity.rules.iter().filter(|rule| rule.status == Status::Invalid);
            why.extend(broken.map(|rule| format!("{}: {}", rule.rule, rule.reason)));
            let text = format!("{} {}: INVALID ({})", run.id, describe(run), why.join("; "));
            self.bar.suspend(|| self.output.say(text));
        }
        if let Some(told) = &self.told
            && let Ok(mut told) = told.lock()
            && told.elapsed() >= EVERY
        {
            *told = Instant::now();
            eprintln!("{} of {} runs{left}", self.bar.position(), self.total);
        }
        Simulated {
            id: &run.id,
            requests,
            was_present: matches!(outcome, Outcome::Present),
            is_invalid: !valid,
            broken: why,
        }
    }
}

/// Work, in estimated requests, that was carried out since the start, and that is left.
struct Pace {
    carried_out: u64,
    left: u64,
}

impl Pace {
    fn of(runs: &[&Run]) -> Self {
        Pace { carried_out: 0, left: runs.iter().map(|run| work(run)).sum() }
    }

    /// Notes a run that is done. One that was done before took no time and is no evidence.
    fn note(&mut self, work: u64, was_carried_out: bool) {
        self.left = self.left.saturating_sub(work);
        if was_carried_out {
            self.carried_out += work;
        }
    }

    /// Time that the rest takes at the rate so far. None before the first run, and after the last.
    fn left_s(&self, elapsed: Duration) -> Option<f64> {
        let known = self.carried_out > 0 && self.left > 0;
        known.then(|| elapsed.as_secs_f64() * self.left as f64 / self.carried_out as f64)
    }
}

/// Runs that ask for admission only send no requests.
fn work(run: &Run) -> u64 {
    run.estimate().requests.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELAPSED: Duration = Duration::from_secs(30);

    #[test]
    fn the_time_left_is_that_of_the_requests_left_at_the_rate_so_far() {
        let mut pace = Pace { carried_out: 0, left: 1000 };
        assert_eq!(pace.left_s(ELAPSED), None);
        pace.note(300, true);
        assert_eq!(pace.left_s(ELAPSED), Some(70.0));
        pace.note(700, true);
        assert_eq!(pace.left_s(ELAPSED), None);
    }

    #[test]
    fn runs_that_were_done_before_are_no_evidence() {
        let mut pace = Pace { carried_out: 0, left: 1000 };
        pace.note(600, false);
        assert_eq!(pace.left_s(ELAPSED), None);
        pace.note(100, true);
        assert_eq!(pace.left_s(ELAPSED), Some(90.0));
    }
}
