//! `weir cluster`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use weir_network::Network;
use weir_services::cluster::{Cluster, Description, down};
use weir_services::{Brick, Group, Scope, bring_up, client};
use weir_studies::FileSystem;

use crate::exit::bad_input;
use crate::service::failed;

/// The servers of a network file system, on the hosts of the test network, and mounting it.
///
/// First bring the hosts up: weir network up client,server-0,server-1,server-2. What is made is written down in the state
/// folder; `weir clean` takes it down, too.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// The state folder
    #[arg(long, value_name = "DIR", default_value = "/run/weir", global = true)]
    state: PathBuf,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Start the servers, and check that files that are written go over the network
    Up {
        /// Which: glusterfs or moosefs
        name: String,
        /// Servers, each with a folder of its own in the state folder
        #[arg(long, value_name = "N", default_value_t = 3)]
        servers: usize,
        /// Block devices, one for each server, in place of folders; ALL DATA ON THEM ARE LOST
        #[arg(long, value_name = "NODE", value_delimiter = ',', conflicts_with = "data")]
        device: Vec<PathBuf>,
        /// Empty folders, one for each server
        #[arg(long, value_name = "DIR", value_delimiter = ',')]
        data: Vec<PathBuf>,
    },
    /// End the servers
    Down {
        /// Which
        name: String,
    },
    /// Mount a file system as the network's client does, and check that it is on the network
    Mount {
        /// Its name in studies, such as moosefs or moosefs-direct
        filesystem: String,
        /// Where
        point: PathBuf,
    },
    /// Unmount it
    Unmount {
        /// Where it is mounted
        point: PathBuf,
    },
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let state = std::path::absolute(&args.state)?;
    match args.action {
        Action::Up { name, servers, device, data } => {
            let bricks: Vec<Brick> = match (device.is_empty(), data.is_empty()) {
                (true, true) => vec![Brick::Own; servers],
                (false, _) => device
                    .iter()
                    .map(|node| {
                        node.canonicalize()
                            .map(Brick::Device)
                            .map_err(|error| bad_input(format!("{}: {error}", node.display())))
                    })
                    .collect::<Result<_, _>>()?,
                (true, false) => data
                    .iter()
                    .map(std::path::absolute)
                    .map(|path| path.map(Brick::Folder))
                    .collect::<Result<_, _>>()?,
            };
            let cluster = brought_up(&name, &state, &bricks)?;
            if args.json {
                println!("{}", serde_json::to_string(&cluster)?);
            } else {
                println!(
                    "{name}: {} servers are up, and what is written goes over the network",
                    cluster.servers.len()
                );
            }
        }
        Action::Down { name } => {
            down(&state, &name).map_err(failed)?.iter().for_each(|line| println!("taken down: {line}"))
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
            println!(
                "{}: {filesystem} is mounted; 1 MiB written were {} bytes on the network",
                point.display(),
                moved.sent_bytes
            );
        }
        Action::Unmount { point } => {
            let point = std::path::absolute(point)?;
            client::unmount(&state, &point, &client_name(&point)).map_err(failed)?;
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

/// A name for a mount's client that the same point always has.
fn client_name(point: &Path) -> String {
    let text = point.to_string_lossy();
    let plain: String =
        text.trim_matches('/').chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("mount-{plain}")
}

fn brought_up(name: &str, state: &Path, bricks: &[Brick]) -> anyhow::Result<Cluster> {
    let Some(description) = Description::load(name) else {
        let known: Vec<&str> = Description::names().collect();
        return Err(bad_input(format!("cluster `{name}` is unknown; there are {}", known.join(", "))));
    };
    let network = Network::load(state).map_err(|error| anyhow!(error))?.ok_or_else(|| {
        bad_input(format!("{}: no test network is up: weir network up client,server-0,...", state.display()))
    })?;
    bring_up(&description, &network, state, bricks).map_err(failed)
}
