//! `weir schema`: JSON Schemas from the same types that parse the files.

use std::process::ExitCode;

use clap::ValueEnum;
use schemars::schema_for;

use crate::exit;

/// Print the JSON Schema of a kind of file, for editors that complete and check YAML.
#[derive(clap::Args)]
pub struct Args {
    /// The kind of file.
    kind: Kind,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Study,
    Workload,
    Profile,
    Tasks,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let schema = match args.kind {
        Kind::Study => schema_for!(weir_studies::Study),
        Kind::Workload => schema_for!(weir_workloads::sessions::AnyWorkload),
        Kind::Profile => schema_for!(weir_simulator::profile::Profile),
        Kind::Tasks => schema_for!(weir_studies::TaskFile),
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(ExitCode::SUCCESS)
}
