//! `weir network`.

use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::{Value, json};
use weir_network::{Error, Network, Spec, Subnet, counters, down, status, up};

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::state::StateArgs;

/// Manage a test network: hosts are network namespaces behind a bridge without a route out.
///
/// The state folder records the network; `weir clean` removes it, too. To run a command on a host:
/// nsenter --net=/run/netns/weir-lab-HOST COMMAND. (ip netns exec would unshare the mounts, too: a mount
/// made there is visible nowhere else.)
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Create the network, or its missing parts
    Up {
        /// Names of its hosts
        #[arg(value_delimiter = ',', required = true)]
        hosts: Vec<String>,
        /// Name of the network: namespaces are named weir-NAME-HOST
        #[arg(long, default_value = "lab")]
        name: String,
        /// Subnet; hosts get its first addresses, in order
        #[arg(long, default_value = "10.77.0.0/24")]
        subnet: String,
        /// Maximum sending and receiving rate of each host, in 10^6 bit/s
        #[arg(long, value_name = "N")]
        rate_mbit: Option<u32>,
    },
    /// Remove the network
    Down,
    /// Show hosts and interface counters; exit code 1 if a part is missing
    Status,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        return Err(bad_input("network namespaces take root"));
    }
    match args.action {
        Action::Up { hosts, name, subnet, rate_mbit } => {
            let subnet = Subnet::try_from(subnet).map_err(bad_input)?;
            let network = up(&Spec { name, subnet, hosts, rate_mbit }, args.state.own()?).map_err(failed)?;
            show(&network, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Down => {
            output.removed(&down(args.state.own()?).map_err(failed)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Status => match status(args.state.folder()).map_err(failed)? {
            None => Err(anyhow!("{}: no network is up", args.state.folder().display())),
            Some((_, missing)) if !missing.is_empty() => Err(anyhow!("{}", missing.join("; "))),
            Some((network, _)) => {
                show(&network, output)?;
                Ok(ExitCode::SUCCESS)
            }
        },
    }
}

fn failed(error: Error) -> anyhow::Error {
    if error.is_refusal() { bad_input(error) } else { error.into() }
}

fn show(network: &Network, output: Output) -> anyhow::Result<()> {
    let mut hosts = Vec::new();
    for host in &network.hosts {
        let path = host.namespace.path();
        let moved = counters(&path).map_err(failed)?;
        if output.is_json() {
            hosts.push(
                json!({"name": host.name, "address": host.address, "namespace": path, "counters": moved}),
            );
        } else {
            println!(
                "{:<16} {:<15} {}  received {} bytes, sent {} bytes",
                host.name,
                host.address,
                path.display(),
                moved.received_bytes,
                moved.sent_bytes
            );
        }
    }
    if output.is_json() {
        let value: Value = json!({"name": network.name, "subnet": network.subnet, "rate_mbit": network.rate_mbit, "hosts": hosts});
        output::line(&value)?;
    }
    Ok(())
}
