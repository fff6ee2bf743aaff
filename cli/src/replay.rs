//! `weir replay`.

use std::process::ExitCode;

/// (being built)
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
