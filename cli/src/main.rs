//! The `weir` binary: argument parsing and wiring, nothing else.

mod collect;
mod exit;
mod replay;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A storage quality-of-service research harness.
///
/// Exit codes: 0 done, 1 the work failed, 2 bad input (nothing was touched), 3 some runs are invalid.
#[derive(Parser)]
#[command(name = "weir", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Args),
    Replay(replay::Args),
    Collect(collect::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Collect(args) => collect::run(args),
    };
    exit::code(done)
}
