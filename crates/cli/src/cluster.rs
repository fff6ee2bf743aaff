//! `weir cluster`.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::json;
use weir_daemons::cluster::{Cluster, Description, down};
use weir_daemons::multi_host_cluster::{self, Members};
use weir_daemons::{Group, Scope, ServerStorage, bring_up, client};
use weir_network::Network;
use weir_specs::one_of;
use weir_study::FileSystem;

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::service::failed;
use crate::state::StateArgs;

/// Start, mount and stop a network file system on the test network.
///
/// First create the hosts: weir network up client,server-0,server-1,server-2. On separate machines, call `serve` on
/// each server and then `join` on each client. The state folder records everything; `weir clean` stops it, too.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start the servers, and check that writes go over the network
    Up {
        /// Name of the cluster: weir list clusters
        name: String,
        /// Number of servers, each with its own folder in the state folder
        #[arg(long, value_name = "N", default_value_t = 3)]
        servers: usize,
        /// Block devices, one for each server, in place of folders; ALL DATA ON THEM ARE LOST
        #[arg(long, value_name = "NODE", value_delimiter = ',', conflicts_with = "data")]
        device: Vec<PathBuf>,
        /// Empty folders, one for each server; they are marked, and data go into a folder `data` in each
        #[arg(long, value_name = "DIR", value_delimiter = ',')]
        data: Vec<PathBuf>,
    },
    /// Start this host's servers of a cluster of several hosts
    Serve {
        /// Name of the cluster: weir list clusters
        name: String,
        #[command(flatten)]
        hosts: Hosts,
        /// Empty folder for its data, which is marked; one in the state folder if not given
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Block device for its data, in place of a folder; ALL DATA ON IT ARE LOST
        #[arg(long, value_name = "NODE", conflicts_with = "data")]
        device: Option<PathBuf>,
    },
    /// Mount a file system of other hosts, and check that it is on the network
    Join {
        /// Name of the file system in studies, such as moosefs or moosefs-direct
        filesystem: String,
        /// Mount point
        point: PathBuf,
        #[command(flatten)]
        hosts: Hosts,
        /// Space of all servers together, as `serve` prints it: waits until all have joined
        #[arg(long, value_name = "N", default_value_t = 0)]
        room_bytes: u64,
    },
    /// Stop the servers, and unmount the clients of this state folder
    Down {
        /// Name of the cluster
        name: String,
    },
    /// Mount a file system as the network's client does, and check that it is on the network
    Mount {
        /// Name of the file system in studies, such as moosefs or moosefs-direct
        filesystem: String,
        /// Mount point
        point: PathBuf,
    },
    /// Unmount a file system
    Unmount {
        /// Mount point
        point: PathBuf,
    },
}

/// The hosts of a cluster, by their addresses in the test network.
#[derive(clap::Args)]
struct Hosts {
    /// Addresses of the servers, the first one first
    #[arg(long = "on", value_name = "ADDRESS", value_delimiter = ',', required = true)]
    servers: Vec<Ipv4Addr>,
    /// Addresses of the clients
    #[arg(long = "for", value_name = "ADDRESS", value_delimiter = ',', required = true)]
    clients: Vec<Ipv4Addr>,
    /// This host's own address
    #[arg(long)]
    address: Ipv4Addr,
}

impl From<Hosts> for Members {
    fn from(hosts: Hosts) -> Members {
        Members { servers: hosts.servers, clients: hosts.clients, own: hosts.address }
    }
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let state = args.state.own()?.to_owned();
    match args.action {
        Action::Up { name, servers, device, data } => {
            let storages: Vec<ServerStorage> = match (device.is_empty(), data.is_empty()) {
                (true, true) => vec![ServerStorage::Own; servers],
                (false, _) => device.iter().map(|node| device_of(node)).collect::<Result<_, _>>()?,
                (true, false) => data.iter().map(|folder| folder_of(folder)).collect::<Result<_, _>>()?,
            };
            let cluster = brought_up(&name, &state, &storages)?;
            if output.is_json() {
                output::line(&cluster)?;
            } else {
                println!(
                    "{name}: {} servers are up, and what is written goes over the network",
                    cluster.servers.len()
                );
            }
        }
        Action::Serve { name, hosts, data, device } => {
            let storage = match (data, device) {
                (Some(folder), _) => folder_of(&folder)?,
                (None, Some(node)) => device_of(&node)?,
                (None, None) => ServerStorage::Own,
            };
            let served = multi_host_cluster::serve(&described(&name)?, &state, &hosts.into(), &storage)
                .map_err(failed)?;
            if output.is_json() {
                output::line(&json!({"changed": served.started, "room_bytes": served.room_bytes}))?;
            } else {
                println!("{name}: {}", if served.started { "is up" } else { "was up" });
            }
        }
        Action::Join { filesystem, point, hosts, room_bytes } => {
            let point = std::path::absolute(point)?;
            let (found, name) = (load(&filesystem)?, client_name(&point));
            let changed = multi_host_cluster::join(&found, &state, &hosts.into(), &point, &name, room_bytes)
                .map_err(failed)?;
            if output.is_json() {
                output::line(&json!({"changed": changed}))?;
            } else {
                let how = if changed { "is mounted, and on the network" } else { "was mounted" };
                println!("{}: {filesystem} {how}", point.display());
            }
        }
        Action::Down { name } => {
            // The name becomes a folder's name that is removed: it must be a known cluster's.
            let name = described(&name)?.name;
            output.removed(&down(&state, &name).map_err(failed)?)?;
        }
        Action::Mount { filesystem, point } => {
            let point = std::path::absolute(point)?;
            let (found, name) = (load(&filesystem)?, client_name(&point));
            let group = Group::of_state(&state).within(&name);
            let cluster =
                client::mount(&found, &state, &point, &name, Scope::Study, group).map_err(failed)?;
            let checked = client::check_on_network(&cluster, &point).inspect_err(|_| {
                let _ = client::unmount(&state, &point, &name);
            });
            let moved = checked.map_err(failed)?;
            let text = format!(
                "{}: {filesystem} is mounted; 1 MiB written were {} bytes on the network",
                point.display(),
                moved.sent_bytes
            );
            let sent_bytes = moved.sent_bytes;
            let mount = json!({"changed": true, "filesystem": filesystem, "path": output::text(&point), "sent_bytes": sent_bytes});
            output.result(&mount, text)?;
        }
        Action::Unmount { point } => {
            let point = std::path::absolute(point)?;
            client::unmount(&state, &point, &client_name(&point)).map_err(failed)?;
            if output.is_json() {
                output::line(&json!({"path": output::text(&point), "mounted": false}))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn load(name: &str) -> anyhow::Result<FileSystem> {
    FileSystem::load(name).filter(|found| found.network.is_some()).ok_or_else(|| {
        let all = FileSystem::names()
            .filter(|name| FileSystem::load(name).is_some_and(|found| found.network.is_some()));
        bad_input(format!(
            "`{name}` is no network file system; there are {}",
            all.collect::<Vec<_>>().join(", ")
        ))
    })
}

/// Name of a mount's client; the same mount point always has the same name.
fn client_name(point: &Path) -> String {
    let text = point.to_string_lossy();
    let plain: String =
        text.trim_matches('/').chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("mount-{plain}")
}

fn folder_of(folder: &Path) -> anyhow::Result<ServerStorage> {
    folder.canonicalize().map(ServerStorage::Folder).map_err(|error| {
        bad_input(format!("--data {}: {error}. Make it, or name another empty folder", folder.display()))
    })
}

fn device_of(node: &Path) -> anyhow::Result<ServerStorage> {
    node.canonicalize()
        .map(ServerStorage::Device)
        .map_err(|error| bad_input(format!("{}: {error}", node.display())))
}

fn described(name: &str) -> anyhow::Result<Description> {
    Description::load(name).ok_or_else(|| bad_input(one_of("cluster", name, Description::names())))
}

fn brought_up(name: &str, state: &Path, storages: &[ServerStorage]) -> anyhow::Result<Cluster> {
    let description = described(name)?;
    let network = Network::load(state).map_err(|error| anyhow!(error))?.ok_or_else(|| {
        bad_input(format!("{}: no test network is up: weir network up client,server-0,...", state.display()))
    })?;
    bring_up(&description, &network, state, storages).map_err(failed)
}
