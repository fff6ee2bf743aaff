//! `weir trace`: what was recorded elsewhere.

use std::process::ExitCode;

/// Find and fetch traces.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(crate::fetch::ListArgs),
    Fetch(crate::fetch::Args),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::List(args) => crate::fetch::list(args),
        Command::Fetch(args) => crate::fetch::run(args),
    }
}
