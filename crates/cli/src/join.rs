//! `weir join`: the parts that hosts left of a run, as one run.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use weir_runner::Joined;

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::plan_file::read_run;
use crate::run::{classify, report_done};

/// Join the parts that several hosts recorded of one run.
///
/// The parts lie in RESULTS/.ID.parts/HOST. All times are told on the clock of the first client; tables have a column
/// `host`. A run in which a host was lost becomes one that is invalid, and says who. The parts are removed.
#[derive(clap::Args)]
pub struct Args {
    /// A run, or a plan (as printed by `weir plan --json`) together with --id.
    file: PathBuf,
    /// Id of the run in the plan.
    #[arg(long)]
    id: Option<String>,
    /// Names of all hosts that took part.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    hosts: Vec<String>,
    /// Folder of the study's results.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let run = read_run(&args.file, args.id.as_deref())?;
    if run.hosts.is_none() {
        return Err(bad_input(format!("run {} is one of a host alone: there is nothing to join", run.id)));
    }
    match weir_runner::join(&run, &args.hosts, &args.results).map_err(classify)? {
        Joined::Whole { validity, timing, requests, lost } => {
            report_done(&run, &validity, &timing, requests, &lost, output)
        }
        Joined::Nothing { why, lost } => {
            if output.is_json() {
                output::line(&json!({"id": run.id, "status": "failed", "why": why, "lost": lost}))?;
            }
            Err(anyhow::anyhow!("run {}: {why}", run.id))
        }
    }
}
