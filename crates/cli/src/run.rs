//! `weir run`: one run of a study on this host.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use weir_runner::{Error, Options, Outcome, Status, Testbed, Timing, Validity};
use weir_study::Run;

use crate::coordination::CoordinationArgs;
use crate::exit::bad_input;
use crate::memory;
use crate::output::{self, Output};
use crate::plan::describe;
use crate::plan_file::read_run;
use crate::state::StateArgs;

/// Run one run of a study on this host.
///
/// The run's folder appears under its id in the results folder when it is complete. A run that is there is not
/// repeated. What a killed run left is undone first.
#[derive(clap::Args)]
pub struct Args {
    /// A run, or a plan (as printed by `weir plan --json`) together with --id.
    file: PathBuf,
    /// Id of the run in the plan.
    #[arg(long)]
    id: Option<String>,
    /// Block device of each device of the study (testbed.json).
    #[arg(long, value_name = "FILE")]
    testbed: PathBuf,
    /// Folder of the study's results.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
    #[command(flatten)]
    state: StateArgs,
    /// Repeat the run if it is there but invalid, and replace it.
    #[arg(long)]
    retry_invalid: bool,
    /// Maximum attempts when CPU steal alone made the run invalid.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempts: u32,
    /// Move the kernel's I/O controller to control groups version 2 for a run that needs it, and back
    /// afterwards. This changes the whole machine; refused while others use the controller.
    #[arg(long)]
    move_io_controller: bool,
    #[command(flatten)]
    coordination: CoordinationArgs,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let run = read_run(&args.file, args.id.as_deref())?;
    if run.testbed != weir_study::Testbed::Device {
        return Err(bad_input(format!(
            "run {} is for virtual time: carry it out with `weir simulate`",
            run.id
        )));
    }
    memory::fits_here(
        &format!("run {}", run.id),
        run.estimate().memory_bytes,
        "use fewer clients or files, or a shorter duration_s",
    )?;
    let testbed = Testbed::read(&args.testbed).map_err(bad_input)?;
    if !rustix::process::geteuid().is_root() {
        return Err(bad_input("a run formats, mounts and traces devices: it needs root"));
    }
    let options = Options {
        results: args.results,
        state: args.state.own()?.to_owned(),
        retry_invalid: args.retry_invalid,
        attempts: args.attempts,
        stop: stop_on_signal(),
        move_io_controller: args.move_io_controller,
        coordination: args.coordination.read()?,
    };
    let outcome = weir_runner::carry_out(&run, &testbed, &options).map_err(classify)?;
    report(&run, &outcome, output)
}

/// The exit code that goes with an error of the runner.
pub fn classify(error: Error) -> anyhow::Error {
    match error {
        Error::Refused(_) => bad_input(error),
        Error::Failed(_) | Error::Unavailable(_) => anyhow::Error::new(error),
    }
}

/// Prints the outcome of a run; returns its exit code.
pub fn report(run: &Run, outcome: &Outcome, output: Output) -> anyhow::Result<ExitCode> {
    let name = format!("{} {}", run.id, describe(run));
    match outcome {
        Outcome::Present => {
            if output.is_json() {
                output::line(&json!({"id": run.id, "status": "present"}))?;
            } else {
                println!("{name}: done before");
            }
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Done { validity, timing, requests } => {
            report_done(run, validity, timing, *requests, &[], output)
        }
        Outcome::Skipped { reason } => {
            if output.is_json() {
                output::line(&json!({"id": run.id, "status": "skipped", "reason": reason}))?;
            } else {
                println!("{name}: skipped: {reason}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Ended { ended, spent_s } => {
            if output.is_json() {
                let broken = [ended.to_string()];
                output::line(
                    &json!({"id": run.id, "status": "ended", "broken": broken, "spent_s": spent_s}),
                )?;
            } else {
                println!("{name}: ended after {spent_s:.1} s: {ended}");
            }
            Ok(ExitCode::from(3))
        }
    }
}

/// Prints validity and lost hosts of a finished run; returns its exit code.
pub fn report_done(
    run: &Run,
    validity: &Validity,
    timing: &Timing,
    requests: u64,
    lost: &[String],
    output: Output,
) -> anyhow::Result<ExitCode> {
    let broken: Vec<String> = validity
        .rules
        .iter()
        .filter(|rule| rule.status == Status::Invalid)
        .map(|rule| format!("{}: {}", rule.rule, rule.reason))
        .collect();
    if output.is_json() {
        let mut value = json!({
            "id": run.id,
            "status": validity.status,
            "requests": requests,
            "timing": timing,
            "broken": broken,
        });
        if !lost.is_empty() {
            value["lost"] = json!(lost);
        }
        output::line(&value)?;
    } else {
        let status =
            if broken.is_empty() { "valid".to_owned() } else { format!("INVALID ({})", broken.join("; ")) };
        let whole = timing.setup_s + timing.measured_s + timing.teardown_s;
        let (name, measured_s) = (format!("{} {}", run.id, describe(run)), timing.measured_s);
        println!("{name}: {status}, {requests} requests, {measured_s:.1} s of {whole:.1} s measured");
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// A flag that SIGINT and SIGTERM set. A run checks it, undoes its changes and ends.
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
