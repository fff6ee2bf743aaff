//! `weir site`: web sites with a database behind them.

mod browse;
mod check;
mod load;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;
use weir_web_site::Error;

use crate::exit::bad_input;
use crate::output::Output;

/// Load, serve, browse and check TPC-W, RUBiS and RUBBoS on a database.
///
/// A site is loaded into a database, served, visited by emulated browsers, and checked:
///
///   weir site load   --benchmark tpcw --database 'postgresql:///tpcw?user=weir&socket=/run/weir/pg'
///   weir site serve  --benchmark tpcw --database ... --listen 127.0.0.1:8080
///   weir site browse --site http://127.0.0.1:8080 --mix shopping --clients 50 --orders orders.log
///   weir site check  --benchmark tpcw --database ... --orders orders.log
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(load::Args),
    Serve(serve::Args),
    Browse(browse::Args),
    Check(check::Args),
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Load(args) => load::run(&args, output),
        Command::Serve(args) => serve::run(&args, output),
        Command::Browse(args) => browse::run(&args, output),
        Command::Check(args) => check::run(&args, output),
    }
}

/// Exit code 2 for a refusal, 1 for a failure.
fn classify(error: Error) -> anyhow::Error {
    match error {
        Error::Input(text) => bad_input(text),
        Error::Database(ref database) => match database {
            weir_web_site::database::DatabaseError::Address(_)
            | weir_web_site::database::DatabaseError::Password { .. } => bad_input(error),
            _ => error.into(),
        },
        other => other.into(),
    }
}
