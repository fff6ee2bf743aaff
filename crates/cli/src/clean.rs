//! `weir clean`: removal of devices, mounts, processes and folders that a study left on this host.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_runner::Recovered;

use crate::exit::bad_input;
use crate::state::StateArgs;

/// Undo what killed runs left, and stop everything that the state folder records.
///
/// Removes modelled disks, daemons, clusters and the test network, and moves the kernel's I/O controller back
/// if weir moved it.
///
/// Touches only what the state folder records, identified by process, device and path, and only folders with its
/// marker. Results stay. Snapshots of site data stay without --snapshots. A folder that is no state folder of weir is
/// refused.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    state: StateArgs,
    /// Also remove snapshots of site data. Without them the next run loads the data again.
    #[arg(long)]
    snapshots: bool,
    /// Do only this: remove what runs that died left in a study's folder of results, and runs that were replaced.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["folder", "snapshots"])]
    results: Option<PathBuf>,
    /// There, also remove parts of runs of several hosts that were not put together.
    #[arg(long, requires = "results")]
    parts: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(results) = &args.results {
        return clean_results(results, args.parts);
    }
    let folder = args.state.own()?;
    if !folder.exists() {
        println!("{}: nothing to clean", folder.display());
        return Ok(ExitCode::SUCCESS);
    }
    weir_runner::wait_for_children(folder)?;
    let Recovered { undone, left: foreign } = weir_runner::recover(&folder.join("journal"))
        .map_err(|error| if error.is_refusal() { bad_input(error) } else { anyhow::Error::new(error) })?;
    undone.iter().for_each(|line| println!("undone: {line}"));
    foreign.iter().for_each(|line| eprintln!("left alone: {line}"));
    // A run that died while it wrote its journal had not yet made the change.
    weir_host::durable::remove_unfinished(&folder.join("journal"))?;
    weir_collectors::recover(folder)?.iter().for_each(|line| println!("undone: {line}"));
    let queues = weir_runner::put_queues_back(folder)?;
    queues.undone.iter().for_each(|line| println!("undone: {line}"));
    queues.left.iter().for_each(|line| eprintln!("left alone: {line}"));
    for line in taken_down(folder)? {
        println!("taken down: {line}");
    }
    let mut left = foreign.len() + queues.left.len();
    for (state, report) in weir_blockserver::down_all(&folder.join("devices"))? {
        match report {
            Ok(report) => {
                report.done.iter().for_each(|line| println!("{}: {line}", state.display()));
                report.left.iter().for_each(|line| eprintln!("{}: left: {line}", state.display()));
                left += report.left.len();
            }
            Err(error) => {
                eprintln!("{}: {error}", state.display());
                left += 1;
            }
        }
    }
    if weir_daemons::io_controller::move_back(folder)? {
        println!("undone: the kernel's controller of disks is with version 1 of control groups again");
    }
    // Processes and mounts that lived on its hosts are gone now.
    weir_network::down(folder)?.iter().for_each(|line| println!("taken down: {line}"));
    if args.snapshots {
        let (removed, foreign) = weir_runner::remove_kept(folder)?;
        removed.iter().for_each(|path| println!("removed: {}", path.display()));
        foreign.iter().for_each(|line| eprintln!("left: {line}"));
        left += foreign.len();
    }
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Removes folders with weir's marker or manifest; lists other folders of such a name.
fn clean_results(results: &Path, parts: bool) -> anyhow::Result<ExitCode> {
    let mut left = weir_runner::sweep(results)?;
    if parts {
        left.extend(weir_runner::sweep_parts(results)?);
    }
    left.iter().for_each(|line| eprintln!("{line}"));
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Clusters with their clients, other processes, and the groups that all were in.
fn taken_down(state: &std::path::Path) -> anyhow::Result<Vec<String>> {
    let mut gone = weir_daemons::cluster::down_all(state)?;
    gone.extend(weir_daemons::stop_all(state, |_| true)?);
    if weir_daemons::Group::of_state(state).remove()? {
        gone.push("control groups".to_owned());
    }
    Ok(gone)
}
