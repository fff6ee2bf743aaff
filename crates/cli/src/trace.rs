//! `weir trace`: what was recorded elsewhere, found, fetched, described, filtered and converted.

mod convert;
mod filter;
mod output;
mod source;
mod stat;
mod words;

use std::process::ExitCode;

use clap::Subcommand;

/// List, fetch, describe, filter and convert recorded traces.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Stat(stat::Args),
    Convert(convert::Args),
    Filter(Box<filter::Args>),
    Formats(source::FormatsArgs),
    List(crate::fetch::ListArgs),
    Fetch(crate::fetch::Args),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Stat(args) => stat::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Filter(args) => filter::run(*args),
        Command::Formats(args) => source::formats(args),
        Command::List(args) => crate::fetch::list(args),
        Command::Fetch(args) => crate::fetch::run(args),
    }
}
