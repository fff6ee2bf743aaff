//! `weir controllers`: version of the kernel's I/O controller.

use std::process::ExitCode;

use serde_json::json;
use weir_daemons::io_controller::{Move, is_moved, move_back, move_to_two};
use weir_daemons::{Error, IoVersion, io_version};

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::state::StateArgs;

/// Show or move the kernel's I/O controller (control groups version 1 or 2).
///
/// A move changes the whole machine. It takes up to 150 s while the kernel still knows control groups of earlier
/// runs. The state folder records it; `weir clean` moves the controller back, too.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    state: StateArgs,
    /// Move the I/O controller from version 1 to version 2.
    #[arg(long, conflicts_with = "restore")]
    r#move: bool,
    /// Move it back if this state folder records a move.
    #[arg(long)]
    restore: bool,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let classify =
        |error: Error| if error.is_refusal() { bad_input(error) } else { anyhow::Error::new(error) };
    let mut changed = false;
    if args.r#move {
        changed = move_to_two(args.state.own()?).map_err(classify)? == Move::Done;
    } else if args.restore {
        changed = move_back(args.state.own()?).map_err(classify)?;
    }
    let version = io_version().map(|version| if version == IoVersion::Two { 2 } else { 1 });
    let moved = is_moved(args.state.folder());
    if output.is_json() {
        output::line(&json!({"version": version, "moved": moved, "changed": changed}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let how = if moved { ", moved there from version 1" } else { "" };
    match version {
        Some(version) => println!("disks are with version {version} of control groups{how}"),
        None => println!("disks are with neither version of control groups"),
    }
    Ok(ExitCode::SUCCESS)
}
