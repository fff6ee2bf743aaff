//! `weir serve`.

mod exactly;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use weir_blockserver::{
    ClassesFile, DownReport, Error, ExportKind, Layout, SchedulingSpec, ServeSpec, State, Stats, Status,
};

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::state::{StateArgs, whole};

/// Serve a block device with the service times of a disk model, or with a scheduler.
///
/// The spec is a YAML file: name, profile (see `weir list profiles`), heads, stripe_unit_kib, size_mib,
/// backing, and live: a
/// policy (see `weir list schedulers`) in front of the heads, which --policy and the options after it give as
/// well. docs/how-to/live.md
/// has an example of each.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("action").required(true).args(["spec", "exactly", "down", "down_all", "status"])))]
pub struct Args {
    /// Spec of the device to serve, until SIGTERM or Ctrl-C
    spec: Option<PathBuf>,

    #[command(flatten)]
    state: StateArgs,

    /// Serve in a background process; return when the device is ready
    #[arg(long, requires = "spec")]
    background: bool,

    /// Serve the devices of these specs in the background and no others: keep those that are served with the same
    /// settings (a policy may be another one), stop the others of the state folder, start the missing ones
    #[arg(long, value_name = "SPEC.yml", num_args = 0..)]
    exactly: Option<Vec<PathBuf>>,

    /// Remove the device of this state file, whatever state it is in
    #[arg(long, value_name = "STATE.json", value_parser = PathBufValueParser::new().try_map(whole))]
    down: Option<PathBuf>,

    /// Remove the devices of all state files in this folder
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(whole))]
    down_all: Option<PathBuf>,

    /// Show the devices of all state files in this folder
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(whole))]
    status: Option<PathBuf>,

    #[command(flatten)]
    live: LiveArgs,

    /// Log file of a background server (set by --background)
    #[arg(long, hide = true)]
    log: Option<PathBuf>,
}

/// A policy that replaces the policy of the spec.
#[derive(clap::Args, Default)]
#[command(next_help_heading = "With a policy")]
struct LiveArgs {
    /// Scheduler in front of the heads: name and settings, as in "hds root_kb_s=20000"
    #[arg(long, value_name = "NAME [KEY=VALUE...]", requires = "spec")]
    policy: Option<String>,

    /// YAML file of the request classes
    #[arg(long, value_name = "FILE.yml", requires = "spec")]
    classes: Option<PathBuf>,

    /// Queue depth of each head
    #[arg(long, value_name = "N", requires = "spec")]
    queue_depth: Option<u32>,

    /// Real device or file, served by direct I/O in place of a model; once for each head. Clients write to it.
    #[arg(long, value_name = "PATH", requires = "spec")]
    target: Vec<PathBuf>,

    /// One device for each class, with its own heads (ublk and NBD only)
    #[arg(long, requires = "spec")]
    partitioned: bool,

    /// Exports: loop, file, ublk, nbd
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = export_kind, requires = "spec")]
    export: Vec<ExportKind>,

    /// Listening address of NBD: `unix`, a socket beside the state file for root and you alone (default), or
    /// `tcp:127.0.0.1:PORT`, which
    /// every user of this host can read and write
    #[arg(long, value_name = "ADDRESS", requires = "spec", conflicts_with = "nbd_port")]
    nbd: Option<String>,

    /// The same as --nbd tcp:127.0.0.1:PORT
    #[arg(long, value_name = "PORT", requires = "spec")]
    nbd_port: Option<u16>,

    /// Maximum number of NBD clients [default: 16]
    #[arg(long, value_name = "N", requires = "spec")]
    nbd_connections: Option<u32>,
}

fn export_kind(text: &str) -> Result<ExportKind, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned()))
        .map_err(|_| format!("there is no export `{text}`; there are: loop, file, ublk, nbd"))
}

impl LiveArgs {
    fn is_given(&self) -> bool {
        self.policy.is_some()
            || self.classes.is_some()
            || self.queue_depth.is_some()
            || !self.target.is_empty()
            || self.partitioned
            || !self.export.is_empty()
            || self.nbd.is_some()
            || self.nbd_port.is_some()
            || self.nbd_connections.is_some()
    }

    /// Applies the given options to the spec.
    fn apply(&self, spec: &mut ServeSpec, file: &Path) -> anyhow::Result<()> {
        if !self.is_given() {
            return Ok(());
        }
        let live = match (&mut spec.live, &self.policy) {
            (Some(live), _) => live,
            (none, Some(policy)) => none.insert(SchedulingSpec::new(policy)),
            (None, None) => {
                return Err(bad_input("these options need a policy: give --policy, or `live:` in the spec"));
            }
        };
        if let Some(policy) = &self.policy {
            live.policy.clone_from(policy);
        }
        if let Some(file) = &self.classes {
            let size_mib = (!self.partitioned && live.layout == Layout::Integrated).then_some(spec.size_mib);
            live.classes = ClassesFile::load(file, size_mib).map_err(bad_input)?.classes;
        }
        live.queue_depth = self.queue_depth.unwrap_or(live.queue_depth);
        if !self.target.is_empty() {
            let absolute = self.target.iter().map(std::path::absolute);
            live.targets = absolute.collect::<Result<_, _>>().context("cannot find the working folder")?;
        }
        if self.partitioned {
            live.layout = Layout::Partitioned;
        }
        if !self.export.is_empty() {
            live.exports.clone_from(&self.export);
        }
        // A given option replaces both forms of the spec's field.
        if self.nbd.is_some() || self.nbd_port.is_some() {
            (live.nbd, live.nbd_port) = (self.nbd.clone(), self.nbd_port);
        }
        live.nbd_connections = self.nbd_connections.unwrap_or(live.nbd_connections);
        spec.check(&file.display().to_string()).map_err(classify)
    }

    /// The same options for a server in the background.
    fn pass_on(&self, command: &mut Command) -> anyhow::Result<()> {
        let mut pass = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            command.arg(name).arg(value);
        };
        if let Some(policy) = &self.policy {
            pass("--policy", policy);
        }
        if let Some(file) = &self.classes {
            pass("--classes", &std::path::absolute(file).context("cannot find the working folder")?);
        }
        if let Some(depth) = self.queue_depth {
            pass("--queue-depth", &depth.to_string());
        }
        for target in &self.target {
            pass("--target", &std::path::absolute(target).context("cannot find the working folder")?);
        }
        for kind in &self.export {
            let name = serde_json::to_value(kind)?;
            pass("--export", &name.as_str().unwrap_or_default());
        }
        if let Some(address) = &self.nbd {
            pass("--nbd", address);
        }
        if let Some(port) = self.nbd_port {
            pass("--nbd-port", &port.to_string());
        }
        if let Some(clients) = self.nbd_connections {
            pass("--nbd-connections", &clients.to_string());
        }
        if self.partitioned {
            command.arg("--partitioned");
        }
        Ok(())
    }
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    if let Some(spec) = &args.spec {
        serve(&args, spec, output)
    } else if let Some(specs) = &args.exactly {
        exactly::serve(specs, &args.state, output)
    } else if let Some(file) = &args.down {
        let report = weir_blockserver::down(file).map_err(classify)?;
        show_down(&[(file.clone(), Ok(report))], output)
    } else if let Some(dir) = &args.down_all {
        show_down(&weir_blockserver::down_all(dir).map_err(classify)?, output)
    } else if let Some(dir) = &args.status {
        show_status(&weir_blockserver::status(dir).map_err(classify)?, output)
    } else {
        Err(bad_input("give a spec file, --exactly, --down, --down-all or --status"))
    }
}

fn serve(args: &Args, path: &Path, output: Output) -> anyhow::Result<ExitCode> {
    let mut spec = ServeSpec::load(path).map_err(classify)?;
    let state_dir = args.state.own()?;
    args.live.apply(&mut spec, path)?;
    if let Some(reason) = weir_blockserver::unable(&spec) {
        return Err(bad_input(reason));
    }
    if !args.background {
        weir_blockserver::serve(&spec, state_dir, args.log.clone(), |state| show_ready(state, output))
            .map_err(classify)?;
        return Ok(ExitCode::SUCCESS);
    }
    args.state.adopt()?;
    let state = in_background(&spec, path, state_dir, &args.live)?;
    show_ready(&state, output);
    Ok(ExitCode::SUCCESS)
}

/// Starts a server in a background process and waits until it is ready.
fn in_background(spec: &ServeSpec, path: &Path, state_dir: &Path, live: &LiveArgs) -> anyhow::Result<State> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program's own file")?);
    command
        .arg("serve")
        .arg(std::path::absolute(path).context("cannot find the working folder")?)
        .arg("--state")
        .arg(state_dir)
        .arg("--log")
        .arg(state_dir.join(format!("{}.log", spec.name)));
    live.pass_on(&mut command)?;
    if let Some(warning) = spec.live.as_ref().and_then(|live| live.nbd_warning(&spec.name)) {
        eprintln!("warning: {warning}");
    }
    weir_blockserver::serve_in_background(spec, state_dir, command).map_err(classify)
}

/// Bad input gets exit code 2.
pub(crate) fn classify(error: Error) -> anyhow::Error {
    if error.is_bad_input() { bad_input(error) } else { error.into() }
}

fn show_ready(state: &State, output: Output) {
    if output.is_json() {
        if let Err(error) = output::line(state) {
            eprintln!("the state cannot be shown: {error}");
        }
        return;
    }
    let ServeSpec { name, profile, heads, size_mib, live, .. } = &state.spec;
    let heads = if *heads == 1 { String::new() } else { format!(", {heads} heads") };
    let policy = live.as_ref().map_or(String::new(), |live| format!(", {}", live.policy));
    let is_file = state.spec.has_export(ExportKind::File);
    let devices = devices(state);
    let file = is_file.then(|| state.file.display().to_string());
    let places: Vec<String> = devices.into_iter().chain(file).chain(state.nbd.clone()).collect();
    println!(
        "{} is ready: {name}, {profile}{heads}{policy}, {size_mib} MiB (process {})",
        places.join(", "),
        state.pid
    );
}

/// Block devices, those of a class with its name.
fn devices(state: &State) -> Vec<String> {
    let whole = state.device.iter().map(|device| device.path.display().to_string());
    let of_class = state.class_devices.iter();
    whole.chain(of_class.map(|of| format!("{} ({})", of.device.path.display(), of.class))).collect()
}

fn show_down(reports: &[(PathBuf, Result<DownReport, Error>)], output: Output) -> anyhow::Result<ExitCode> {
    let mut complete = true;
    let mut values = Vec::new();
    for (file, report) in reports {
        let file = file.display();
        match report {
            Ok(DownReport { done, left }) => {
                complete &= left.is_empty();
                if output.is_json() {
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
                if output.is_json() {
                    values.push(
                        serde_json::json!({ "state_file": file.to_string(), "error": error.to_string() }),
                    );
                } else {
                    eprintln!("{file}: {error}");
                }
            }
        }
    }
    if output.is_json() {
        output::line(&values)?;
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show_status(list: &[Status], output: Output) -> anyhow::Result<ExitCode> {
    if output.is_json() {
        output::line(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    for Status { state_file, state, running, stats } in list {
        let devices = devices(state);
        let device = if devices.is_empty() { "no device".to_owned() } else { devices.join(", ") };
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
