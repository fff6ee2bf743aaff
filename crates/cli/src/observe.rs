//! `weir observe`: records the disks of a server during a run of several hosts.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_runner::Options;

use crate::coordination::CoordinationArgs;
use crate::exit::bad_input;
use crate::output::Output;
use crate::plan_file::read_run;
use crate::run::{classify, report, stop_on_signal};
use crate::state::StateArgs;

/// Record the disks of this host while other hosts run (`weir run --meet`).
///
/// Waits for the clients, records from the start of the run until the last client is done, and writes its part to
/// RESULTS/.ID.parts/HOST. Nothing on the disks is changed.
#[derive(clap::Args)]
pub struct Args {
    /// A run, or a plan (as printed by `weir plan --json`) together with --id.
    file: PathBuf,
    /// Id of the run in the plan.
    #[arg(long)]
    id: Option<String>,
    /// Disk whose requests are recorded, as a path or by the kernel's name; none if absent.
    #[arg(long, value_name = "DEV")]
    device: Vec<String>,
    /// Folder of the study's results.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    coordination: CoordinationArgs,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let run = read_run(&args.file, args.id.as_deref())?;
    if run.hosts.is_none() {
        return Err(bad_input(format!(
            "run {} is carried out by one host: there is nothing to observe",
            run.id
        )));
    }
    let options = Options {
        results: args.results,
        state: args.state.own()?.to_owned(),
        retry_invalid: false,
        attempts: 1,
        stop: stop_on_signal(),
        move_io_controller: false,
        coordination: args.coordination.read()?,
    };
    let outcome = weir_runner::observe(&run, &args.device, &options).map_err(classify)?;
    report(&run, &outcome, output)
}
