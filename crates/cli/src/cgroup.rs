//! `weir cgroup`: a control group with limits outside of runs.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;
use weir_daemons::named_group;

use crate::settings::{Options, failed, input};

/// Create or remove a control group with limits of memory and disks.
///
/// Prints JSON: `changed`, `folders`, `before` and `after` (limits by file). Exit code 2: a value is refused.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create weir/NAME as standard input says: {"name": "own", "memory_mib": 64, "weight": 0, "disks": [{"path": "8:0", "reads_per_s": 50}]}
    Set {
        #[command(flatten)]
        options: Options,
    },
    /// Remove the recorded group, and the record
    Remove {
        #[command(flatten)]
        options: Options,
    },
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (done, options) = match args.command {
        Command::Set { options } => (named_group::set(&input()?, &options.record, options.check), options),
        Command::Remove { options } => (named_group::remove(&options.record, options.check), options),
    };
    let done = done.map_err(failed)?;
    Ok(options.print(json!(done), json!(done.before), json!(done.after)))
}
