//! `weir trace`: what was recorded elsewhere, found, fetched, described, filtered and converted.

mod convert;
mod filter;
mod source;
mod stat;
mod words;
mod written;

use std::process::ExitCode;

use clap::Subcommand;

use crate::output::Output;

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

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Stat(args) => stat::run(args, output),
        Command::Convert(args) => convert::run(args, output),
        Command::Filter(args) => filter::run(*args, output),
        Command::Formats(args) => source::formats(args, output),
        Command::List(args) => crate::fetch::list(args, output),
        Command::Fetch(args) => crate::fetch::run(args, output),
    }
}
