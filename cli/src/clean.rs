//! `weir clean`: takes away what a study left on this host.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use weir_runner::Recovered;

use crate::exit::bad_input;

/// Undo what a run that died left behind, take down all modelled devices, services, clusters and the test network, and
/// move the kernel's controller of disks back if it was moved.
///
/// Only what the state folder lists is touched, by recorded process, device and path. Results stay, and so do the data of
/// sites as they are before each run, unless --snapshots is given.
#[derive(clap::Args)]
pub struct Args {
    /// The state folder of `weir run` and `weir serve`.
    #[arg(long, value_name = "DIR", default_value = "/run/weir")]
    state: PathBuf,
    /// Also remove the data of sites, which are kept so that the next run need not load them again.
    #[arg(long)]
    snapshots: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.state.exists() {
        println!("{}: nothing to clean", args.state.display());
        return Ok(ExitCode::SUCCESS);
    }
    weir_runner::wait_for_children(&args.state)?;
    let Recovered { undone, left: foreign } = weir_runner::recover(&args.state.join("journal"))
        .map_err(|error| if error.is_refusal() { bad_input(error) } else { anyhow::Error::new(error) })?;
    undone.iter().for_each(|line| println!("undone: {line}"));
    foreign.iter().for_each(|line| eprintln!("left alone: {line}"));
    // A run that died while it wrote its journal had not yet made the change.
    weir_host::durable::remove_unfinished(&args.state.join("journal"))?;
    weir_collectors::recover(&args.state)?.iter().for_each(|line| println!("undone: {line}"));
    let queues = weir_runner::put_queues_back(&args.state)?;
    queues.undone.iter().for_each(|line| println!("undone: {line}"));
    queues.left.iter().for_each(|line| eprintln!("left alone: {line}"));
    for line in taken_down(&args.state)? {
        println!("taken down: {line}");
    }
    let mut left = foreign.len() + queues.left.len();
    for (state, report) in weir_blockserver::down_all(&args.state.join("devices"))? {
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
    if weir_services::io_controller::move_back(&args.state)? {
        println!("undone: the kernel's controller of disks is with version 1 of control groups again");
    }
    // Processes and mounts that lived on its hosts are gone now.
    weir_network::down(&args.state)?.iter().for_each(|line| println!("taken down: {line}"));
    let kept = args.state.join("snapshots");
    if args.snapshots && kept.exists() {
        std::fs::remove_dir_all(&kept).with_context(|| format!("cannot remove {}", kept.display()))?;
        println!("removed: {}", kept.display());
    }
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Clusters with their clients, other processes, and the groups that all were in.
fn taken_down(state: &std::path::Path) -> anyhow::Result<Vec<String>> {
    let mut gone = weir_services::cluster::down_all(state)?;
    gone.extend(weir_services::stop_all(state, |_| true)?);
    if weir_services::Group::of_state(state).remove()? {
        gone.push("control groups".to_owned());
    }
    Ok(gone)
}
