//! `weir serve`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use weir_blockserver::{DownReport, Error, ServeSpec, State, Stats, Status};

use crate::exit;

/// Serve a block device whose service times are known: a disk model behind a loop device.
///
/// The spec is a YAML file: name, profile (see `weir list profiles`), heads, stripe_unit_kib, size_mib, backing.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("action").required(true).args(["spec", "down", "down_all", "status"])))]
pub struct Args {
    /// What to serve, until SIGTERM or Ctrl-C
    spec: Option<PathBuf>,

    /// Folder of the state files
    #[arg(long, value_name = "DIR", default_value = "/run/weir")]
    state: PathBuf,

    /// Serve in a process of its own; return when the device is ready
    #[arg(long, requires = "spec")]
    background: bool,

    /// Take the device of this state file away, whatever state it is in
    #[arg(long, value_name = "STATE.json")]
    down: Option<PathBuf>,

    /// Take the devices of all state files in this folder away
    #[arg(long, value_name = "DIR")]
    down_all: Option<PathBuf>,

    /// Show the devices of all state files in this folder
    #[arg(long, value_name = "DIR")]
    status: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Where a server in the background logs to (set by --background)
    #[arg(long, hide = true)]
    log: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(spec) = &args.spec {
        serve(&args, spec)
    } else if let Some(file) = &args.down {
        let report = weir_blockserver::down(file).map_err(classify)?;
        show_down(&[(file.clone(), Ok(report))], args.json)
    } else if let Some(dir) = &args.down_all {
        show_down(&weir_blockserver::down_all(dir).map_err(classify)?, args.json)
    } else if let Some(dir) = &args.status {
        show_status(&weir_blockserver::status(dir).map_err(classify)?, args.json)
    } else {
        Err(exit::bad_input("give a spec file, --down, --down-all or --status"))
    }
}

fn serve(args: &Args, path: &Path) -> anyhow::Result<ExitCode> {
    let spec = ServeSpec::load(path).map_err(classify)?;
    if let Some(reason) = weir_blockserver::missing_capability() {
        return Err(exit::bad_input(reason));
    }
    if !args.background {
        let json = args.json;
        weir_blockserver::serve(&spec, &args.state, args.log.clone(), |state| show_ready(state, json))
            .map_err(classify)?;
        return Ok(ExitCode::SUCCESS);
    }
    let state_dir = std::path::absolute(&args.state).context("cannot find the working folder")?;
    let mut command = Command::new(std::env::current_exe().context("cannot find this program's own file")?);
    command
        .arg("serve")
        .arg(std::path::absolute(path).context("cannot find the working folder")?)
        .arg("--state")
        .arg(&state_dir)
        .arg("--log")
        .arg(state_dir.join(format!("{}.log", spec.name)));
    let state = weir_blockserver::serve_in_background(&spec, &state_dir, command).map_err(classify)?;
    show_ready(&state, args.json);
    Ok(ExitCode::SUCCESS)
}

/// Bad input gets exit code 2.
fn classify(error: Error) -> anyhow::Error {
    if error.is_bad_input() { exit::bad_input(error) } else { error.into() }
}

fn show_ready(state: &State, json: bool) {
    let Some(device) = &state.device else { return };
    if json {
        match serde_json::to_string(state) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("the state cannot be shown: {error}"),
        }
        return;
    }
    let ServeSpec { name, profile, heads, size_mib, .. } = &state.spec;
    let heads = if *heads == 1 { String::new() } else { format!(", {heads} heads") };
    println!(
        "{} is ready: {name}, {profile}{heads}, {size_mib} MiB (process {})",
        device.path.display(),
        state.pid
    );
}

fn show_down(reports: &[(PathBuf, Result<DownReport, Error>)], json: bool) -> anyhow::Result<ExitCode> {
    let mut complete = true;
    let mut values = Vec::new();
    for (file, report) in reports {
        let file = file.display();
        match report {
            Ok(DownReport { done, left }) => {
                complete &= left.is_empty();
                if json {
                    values.push(
                        serde_json::json!({ "state_file": file.to_string(), "done": done, "left": left }),
                    );
                    continue;
                }
                if done.is_empty() && left.is_empty() {
                    println!("{file}: nothing to do");
                }
                done.iter().for_each(|line| println!("{file}: {line}"));
                left.iter().for_each(|line| eprintln!("{file}: left: {line}"));
            }
            Err(error) => {
                complete = false;
                if json {
                    values.push(
                        serde_json::json!({ "state_file": file.to_string(), "error": error.to_string() }),
                    );
                } else {
                    eprintln!("{file}: {error}");
                }
            }
        }
    }
    if json {
        println!("{}", serde_json::to_string(&values)?);
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show_status(list: &[Status], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        println!("{}", serde_json::to_string(list)?);
        return Ok(ExitCode::SUCCESS);
    }
    for Status { state_file, state, running, stats } in list {
        let device =
            state.device.as_ref().map_or("no device".into(), |device| device.path.display().to_string());
        let process = if *running { format!("process {}", state.pid) } else { "process gone".to_owned() };
        println!(
            "{}: {device}, {}, {process} ({})",
            state.spec.name,
            state.spec.profile,
            state_file.display()
        );
        if let Some(Stats { read, write, service_error, max_queue_length, timing, .. }) = stats {
            println!(
                "  {} reads, {} writes, at most {max_queue_length} at once, timing {}; \
                 service-time error median {:.1} us, p99 {:.1} us",
                read.requests,
                write.requests,
                if *timing { "on" } else { "off" },
                service_error.median_ns as f64 / 1e3,
                service_error.p99_ns as f64 / 1e3
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
