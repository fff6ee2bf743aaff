//! `weir run`: one run of a study on this host.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use weir_runner::{Error, Options, Outcome, Status, Testbed};
use weir_studies::{Plan, Run};

use crate::exit::bad_input;
use crate::plan::describe;

/// Carry out one run of a study on this host.
///
/// The run's folder appears under its id in the results folder once it is whole; if it is there already nothing
/// is done. Whatever an earlier run that was killed left behind is undone first.
#[derive(clap::Args)]
pub struct Args {
    /// A run, or a plan (as printed by `weir plan --json`) together with --id.
    file: PathBuf,
    /// Which run of the plan.
    #[arg(long)]
    id: Option<String>,
    /// Which block device stands for each device of the study.
    #[arg(long, value_name = "FILE")]
    testbed: PathBuf,
    /// Folder of the study's results.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
    /// Folder for mount points and for the journal of changes to undo.
    #[arg(long, value_name = "DIR", default_value = "/run/weir")]
    state: PathBuf,
    /// If the run is there, but was judged invalid: carry it out again, and replace it.
    #[arg(long)]
    retry_invalid: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let run = read_run(&args)?;
    if run.testbed != weir_studies::Testbed::Device {
        return Err(bad_input(format!(
            "run {} is for virtual time: carry it out with `weir simulate`",
            run.id
        )));
    }
    let testbed = Testbed::read(&args.testbed).map_err(bad_input)?;
    // SAFETY: geteuid takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err(bad_input("a run formats, mounts and traces devices: it needs root"));
    }
    let options = Options {
        results: args.results,
        state: args.state,
        retry_invalid: args.retry_invalid,
        stop: stop_on_signal(),
    };
    let outcome = weir_runner::carry_out(&run, &testbed, &options).map_err(|error| match error {
        Error::Refused(_) => bad_input(error),
        Error::Failed(_) => anyhow::Error::new(error),
    })?;
    Ok(report(&run, &outcome, args.json))
}

fn read_run(args: &Args) -> anyhow::Result<Run> {
    let named = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", args.file.display()));
    let text = std::fs::read_to_string(&args.file).map_err(|error| named(&error))?;
    match &args.id {
        None => serde_json::from_str(&text).map_err(|error| named(&error)),
        Some(id) => {
            let plan: Plan = serde_json::from_str(&text).map_err(|error| named(&error))?;
            let found = plan.runs.into_iter().find(|run| run.id == *id);
            found.ok_or_else(|| named(&format!("has no run {id}")))
        }
    }
}

fn report(run: &Run, outcome: &Outcome, as_json: bool) -> ExitCode {
    let name = format!("{} {}", run.id, describe(run));
    match outcome {
        Outcome::Present => {
            if as_json {
                println!("{}", json!({"id": run.id, "status": "present"}));
            } else {
                println!("{name}: done before");
            }
            ExitCode::SUCCESS
        }
        Outcome::Done { verdict, timing, requests } => {
            let broken: Vec<String> = verdict
                .rules
                .iter()
                .filter(|ruling| ruling.status == Status::Invalid)
                .map(|ruling| format!("{}: {}", ruling.rule, ruling.reason))
                .collect();
            if as_json {
                let value = json!({
                    "id": run.id,
                    "status": verdict.status,
                    "requests": requests,
                    "timing": timing,
                    "broken": broken,
                });
                println!("{value}");
            } else {
                let status = if broken.is_empty() {
                    "valid".to_owned()
                } else {
                    format!("INVALID ({})", broken.join("; "))
                };
                let whole = timing.setup_s + timing.measured_s + timing.teardown_s;
                println!(
                    "{name}: {status}, {requests} requests, {:.1} s of {whole:.1} s measured",
                    timing.measured_s
                );
            }
            if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) }
        }
    }
}

/// A flag that SIGINT and SIGTERM raise, so that a run that is asked to end undoes what it did.
pub fn stop_on_signal() -> Arc<AtomicBool> {
    static STOP: std::sync::OnceLock<Arc<AtomicBool>> = std::sync::OnceLock::new();
    extern "C" fn raise(_: libc::c_int) {
        if let Some(stop) = STOP.get() {
            stop.store(true, Ordering::Relaxed);
        }
    }
    let stop = Arc::clone(STOP.get_or_init(Arc::default));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { libc::signal(signal, raise as *const () as libc::sighandler_t) };
    }
    stop
}
