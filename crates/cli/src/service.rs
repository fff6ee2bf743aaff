//! `weir service`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use weir_daemons::{
    Daemon, DataFolder, Error, Group, Scope, Start, Tier, check_settings, check_start, process, restore,
    snapshot, start, stop, version,
};
use weir_specs::template::Values;
use weir_specs::{host_problem, name_problem, one_of};

use crate::exit::{self, bad_input};
use crate::output::{self, Output};
use crate::state::StateArgs;

/// Start and stop daemons of a study: web servers, databases.
///
/// Each daemon runs in the foreground with its own configuration, on loopback or a host of the test network, as the
/// user of its package. The state folder records it before it starts; `weir clean` stops it, too.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List daemons, installed versions and settings
    List,
    /// Start a daemon and wait until it answers
    Start(Box<Wanted>),
    /// Stop a daemon
    Stop {
        /// Name in the state folder
        name: String,
    },
    /// Show running daemons; exit code 1 if one has exited
    Status,
    /// Copy the data of a stopped daemon
    Snapshot {
        /// The folder that --data named
        data: PathBuf,
        /// Folder of the copy; must not exist
        copy: PathBuf,
    },
    /// Replace a daemon's data by a copy, in a folder that weir made or an empty one
    Restore {
        /// The copy
        copy: PathBuf,
        /// The folder that --data named
        data: PathBuf,
    },
}

#[derive(clap::Args)]
struct Wanted {
    /// The daemon: weir service list
    service: String,
    /// Name in the state folder; default is the name of the daemon
    #[arg(long)]
    name: Option<String>,
    /// Port
    #[arg(long)]
    port: u16,
    /// Listening address: loopback, or the address of the host of --namespace
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Network namespace of a host of the test network
    #[arg(long, value_name = "FILE")]
    namespace: Option<PathBuf>,
    /// Folder of served files
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Folder of its data. An empty or absent folder is marked, and data are created in its folder `data`. The daemon
    /// starts on an existing database of yours, which weir changes in no other way
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address and port of the upstream server of a proxy
    #[arg(long, value_name = "ADDRESS:PORT")]
    upstream: Option<SocketAddr>,
    /// Maximum memory in MiB, page cache included
    #[arg(long, value_name = "N")]
    memory_mib: Option<u64>,
    /// A setting of the daemon, such as workers=1: weir service list shows them
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}`: write NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

pub fn failed(error: Error) -> anyhow::Error {
    if error.is_refusal() { bad_input(error) } else { anyhow::Error::new(error) }
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List => list(output),
        Action::Start(wanted) => started(*wanted, &args.state, output),
        Action::Stop { name } => {
            if let Some(problem) = host_problem(&name) {
                return Err(bad_input(format!("NAME: {problem}")));
            }
            let state = args.state.own()?;
            let known = process::find(state, &name).map_err(failed)?.is_some();
            if !known {
                return Err(bad_input(format!(
                    "{}: no daemon `{name}` was started; `weir daemon status` shows those that were",
                    state.display()
                )));
            }
            let ended = stop(state, &name).map_err(failed)?;
            let (changed, killed) = (ended.is_some(), ended.is_some_and(|ended| ended.killed));
            let how = match (changed, killed) {
                (true, true) => "ended, killed since it did not end",
                (true, false) => "ended",
                (false, _) => "had ended before",
            };
            let document = json!({"name": name, "changed": changed, "killed": killed});
            output.result(&document, format_args!("{name}: {how}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Status => status(args.state.folder(), output),
        Action::Snapshot { data, copy } => {
            let copy = std::path::absolute(copy)?;
            let kept = snapshot(args.state.folder(), &data, &copy).map_err(failed)?;
            let document = json!({"path": output::text(&kept.path), "size_bytes": kept.size_bytes});
            output
                .result(&document, format_args!("{}: {} bytes kept", kept.path.display(), kept.size_bytes))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Restore { copy, data } => {
            let data = std::path::absolute(data)?;
            restore(args.state.own()?, &copy, &data).map_err(failed)?;
            if output.is_json() {
                output::line(&json!({"path": output::text(&data), "copy": output::text(&copy)}))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let mut all: Vec<Value> = Vec::new();
    for service in Daemon::names().filter_map(Daemon::load) {
        let version = version(&service).ok();
        if output.is_json() {
            all.push(json!({
                "name": service.name,
                "description": service.description,
                "packages": service.packages,
                "version": version,
                "settings": service.settings,
            }));
        } else {
            let version =
                version.unwrap_or_else(|| format!("not installed ({})", service.packages.join(", ")));
            println!("{:<22}{:<50.50}  {}", service.name, version, service.description);
            for (name, setting) in &service.settings {
                let default = setting
                    .default
                    .as_deref()
                    .map_or("no default".to_owned(), |text| format!("default {text}"));
                println!("    --set {name}: {}; {default}; {}", setting.about, setting.kind.describe());
            }
        }
    }
    if output.is_json() {
        output::document(&all)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn started(wanted: Wanted, place: &StateArgs, output: Output) -> anyhow::Result<ExitCode> {
    let state = place.own()?;
    let Some(service) = Daemon::load(&wanted.service) else {
        return Err(bad_input(one_of("daemon", &wanted.service, Daemon::names())));
    };
    let mut set = BTreeMap::new();
    for (name, value) in wanted.set {
        if set.insert(name.clone(), value).is_some() {
            return Err(bad_input(format!("--set {name}: is given twice")));
        }
    }
    check_settings(&service, &set).map_err(failed)?;
    if !rustix::process::geteuid().is_root() {
        return Err(bad_input("a daemon gets a user and a control group of its own: run this as root"));
    }
    let name = wanted.name.unwrap_or_else(|| wanted.service.clone());
    if let Some(problem) = name_problem(&name) {
        return Err(bad_input(format!("--name: {problem}")));
    }
    let group = Group::of_state(state).within(&name);
    let run = state.join("services").join(&name);
    let absolute = |path: Option<PathBuf>| path.map(std::path::absolute).transpose();
    let data =
        absolute(wanted.data)?.map(|folder| DataFolder::look(state, &folder)).transpose().map_err(failed)?;
    let start_it = Start {
        scope: Scope::Study,
        log: state.join(format!("{name}.log")),
        run,
        root: absolute(wanted.root)?,
        data: data.as_ref().map(DataFolder::data),
        address: wanted.address,
        port: wanted.port,
        namespace: wanted.namespace,
        memory_mib: wanted.memory_mib.unwrap_or(0),
        set,
        own: Values::new(),
        group: group.clone(),
        tier: Tier { upstream: wanted.upstream, hot: None },
        name,
    };
    // Nothing is touched before all is checked.
    check_start(&service, state, &start_it).map_err(failed)?;
    if let Some(data) = &data {
        data.check_start(&service).map_err(failed)?;
    }
    place.adopt()?;
    if let Some(data) = &data {
        data.prepare(state).map_err(failed)?;
    }
    if let Some(mib) = wanted.memory_mib {
        group.make().and_then(|()| group.limit_memory(mib << 20)).map_err(failed)?;
    }
    let instance = start(&service, state, &start_it).map_err(failed)?;
    if output.is_json() {
        output::line(&instance)?;
    } else {
        println!(
            "{}: {} at {}, pid {}",
            instance.name, instance.version, instance.address, instance.process.pid
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn status(state: &std::path::Path, output: Output) -> anyhow::Result<ExitCode> {
    let (mut ended, mut all) = (0, Vec::new());
    for found in process::all(state).map_err(failed)? {
        let alive = found.identity.is_some_and(process::Identity::is_alive);
        ended += usize::from(!alive);
        let pid = found.identity.map(|identity| identity.pid);
        let (memory, cpu) = (found.launch.group.memory(), found.launch.group.cpu());
        if output.is_json() {
            all.push(json!({
                "name": found.launch.name,
                "pid": pid,
                "running": alive,
                "log": found.launch.log,
                "memory": memory,
                "cpu": cpu,
            }));
        } else {
            let used = memory.map_or("memory not counted".to_owned(), |memory| {
                format!(
                    "{} MiB, {} of them pages of files",
                    memory.used_bytes >> 20,
                    memory.cache_bytes >> 20
                )
            });
            let pid = pid.map_or("-".to_owned(), |pid| pid.to_string());
            println!(
                "{:<40} {} pid {pid}, {used}",
                found.launch.name,
                if alive { "runs" } else { "has ended" }
            );
        }
    }
    if output.is_json() {
        output::document(&all)?;
    }
    Ok(if ended == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
