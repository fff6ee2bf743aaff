//! `weir clean`: takes away what a study left on this host.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::exit::bad_input;

/// Undo what a run that died left behind, and take all modelled devices down.
///
/// Only what the state folder lists is touched, by recorded process, device and path. Results stay.
#[derive(clap::Args)]
pub struct Args {
    /// The state folder of `weir run` and `weir serve`.
    #[arg(long, value_name = "DIR", default_value = "/run/weir")]
    state: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.state.exists() {
        println!("{}: nothing to clean", args.state.display());
        return Ok(ExitCode::SUCCESS);
    }
    let undone = weir_runner::recover(&args.state.join("journal"))
        .map_err(|error| if error.is_refusal() { bad_input(error) } else { anyhow::Error::new(error) })?;
    undone.iter().for_each(|line| println!("undone: {line}"));
    let mut left = 0;
    for (state, report) in weir_blockserver::down_all(&args.state.join("devices"))? {
        match report {
            Ok(report) => {
                report.done.iter().for_each(|line| println!("{}: {line}", state.display()));
                report.left.iter().for_each(|line| eprintln!("{}: left: {line}", state.display()));
                left += report.left.len();
            }
            Err(error) => {
                eprintln!("{}: {error}", state.display());
                left += 1;
            }
        }
    }
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
