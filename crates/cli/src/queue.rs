//! `weir queue`: I/O scheduler and queue settings of a disk outside of runs.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};
use weir_host::device::queue::{self, Change, Settings};

use crate::settings::{Options, failed, input};

/// Set or restore the I/O scheduler and the queue settings of a disk.
///
/// Prints JSON: `changed`, `before` (the settings before the first change, as recorded) and `after`. The record keeps the
/// settings before the first change. Exit code 2: a value is refused and nothing has changed.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set what standard input names: {"disk": "sda", "scheduler": "bfq", "tunables": {}, "queue": {}}
    Set {
        #[command(flatten)]
        options: Options,
    },
    /// Restore the recorded settings and remove the record
    Restore {
        #[command(flatten)]
        options: Options,
    },
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (done, options) = match args.command {
        Command::Set { options } => (queue::set(&input()?, &options.record, options.check), options),
        Command::Restore { options } => (queue::restore(&options.record, options.check), options),
    };
    let Change { changed, recorded, before, after } = done.map_err(failed)?;
    let shown = |settings: &Option<Settings>| settings.as_ref().map_or(json!({}), |settings| json!(settings));
    let answer: Value = json!({"changed": changed, "before": shown(&recorded), "after": shown(&after)});
    Ok(options.print(answer, shown(&before), shown(&after)))
}
