//! `weir clean`: removal of devices, mounts, processes and folders that a study left on this host.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use weir_runner::Recovered;

use crate::exit::bad_input;
use crate::output::{self, Output};
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
    /// Leave the kernel's I/O controller where weir moved it, for the next runs.
    #[arg(long)]
    keep_io_controller: bool,
    /// Do only this: remove what runs that died left in a study's folder of results, and runs that were replaced.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["folder", "snapshots", "keep_io_controller"])]
    results: Option<PathBuf>,
    /// There, also remove parts of runs of several hosts that were not put together.
    #[arg(long, requires = "results")]
    parts: bool,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    if let Some(results) = &args.results {
        return clean_results(results, args.parts, output);
    }
    let mut report = Report::new(output);
    let folder = args.state.own()?;
    if !folder.exists() {
        output.say(format_args!("{}: nothing to clean", folder.display()));
        return report.end(folder);
    }
    weir_runner::wait_for_children(folder)?;
    let Recovered { undone, left: foreign } = weir_runner::recover(&folder.join("journal"))
        .map_err(|error| if error.is_refusal() { bad_input(error) } else { anyhow::Error::new(error) })?;
    report.undone(undone);
    report.left("left alone", foreign);
    // A run that died while it wrote its journal had not yet made the change.
    weir_host::durable::remove_unfinished(&folder.join("journal"))?;
    report.undone(weir_collectors::recover(folder)?);
    let queues = weir_runner::put_queues_back(folder)?;
    report.undone(queues.undone);
    report.left("left alone", queues.left);
    report.removed("taken down", taken_down(folder)?);
    for (state, outcome) in weir_blockserver::down_all(&folder.join("devices"))? {
        match outcome {
            Ok(down) => {
                report.removed(&state.display().to_string(), down.done);
                report.left(&format!("{}: left", state.display()), down.left);
            }
            Err(error) => report.left(&state.display().to_string(), vec![error.to_string()]),
        }
    }
    if !args.keep_io_controller && weir_daemons::io_controller::move_back(folder)? {
        report.undone(vec![
            "the kernel's controller of disks is with version 1 of control groups again".to_owned(),
        ]);
    }
    // Processes and mounts that lived on its hosts are gone now.
    report.removed("taken down", weir_network::down(folder)?);
    if args.snapshots {
        let (removed, foreign) = weir_runner::remove_kept(folder)?;
        report.removed("removed", removed.iter().map(|path| path.display().to_string()).collect());
        report.left("left", foreign);
    }
    report.end(folder)
}

/// Lines of what is cleaned, printed as it happens, and together as JSON.
struct Report {
    output: Output,
    undone: Vec<String>,
    removed: Vec<String>,
    left: Vec<String>,
}

impl Report {
    fn new(output: Output) -> Self {
        Self { output, undone: Vec::new(), removed: Vec::new(), left: Vec::new() }
    }

    fn undone(&mut self, lines: Vec<String>) {
        lines.iter().for_each(|line| self.output.say(format_args!("undone: {line}")));
        self.undone.extend(lines);
    }

    fn removed(&mut self, how: &str, lines: Vec<String>) {
        lines.iter().for_each(|line| self.output.say(format_args!("{how}: {line}")));
        self.removed.extend(lines);
    }

    fn left(&mut self, how: &str, lines: Vec<String>) {
        lines.iter().for_each(|line| eprintln!("{how}: {line}"));
        self.left.extend(lines);
    }

    /// Prints the JSON, and chooses the exit code.
    fn end(self, folder: &Path) -> anyhow::Result<ExitCode> {
        let Self { output, undone, removed, left } = self;
        if output.is_json() {
            let found =
                json!({"folder": output::text(folder), "undone": undone, "removed": removed, "left": left});
            output::document(&found)?;
        }
        Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Removes folders with weir's marker or manifest; lists other folders of such a name.
fn clean_results(results: &Path, parts: bool, output: Output) -> anyhow::Result<ExitCode> {
    let mut left = weir_runner::sweep(results)?;
    if parts {
        left.extend(weir_runner::sweep_parts(results)?);
    }
    left.iter().for_each(|line| eprintln!("{line}"));
    if output.is_json() {
        output::document(&json!({"folder": output::text(results), "left": left}))?;
    }
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
