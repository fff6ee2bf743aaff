//! Options of a run of several hosts.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use weir_coordination::{Roster, Token};
use weir_runner::CoordinationOptions;

use crate::exit::bad_input;

/// Coordination of the hosts of a run; all or none of these are given.
#[derive(clap::Args)]
pub struct CoordinationArgs {
    /// For a run of several hosts: address of the coordinator. The first client listens there.
    #[arg(long, value_name = "ADDRESS:PORT", requires_all = ["host", "clients", "token"])]
    meet: Option<String>,
    /// Name of this host.
    #[arg(long, value_name = "NAME", requires = "meet")]
    host: Option<String>,
    /// Names of all client hosts, in the same order everywhere.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "meet")]
    clients: Vec<String>,
    /// Names of all server hosts.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "meet")]
    servers: Vec<String>,
    /// File with the shared secret of all hosts of the study: 32 random characters or more, mode 0600.
    #[arg(long, value_name = "FILE", requires = "meet")]
    token: Option<PathBuf>,
}

impl CoordinationArgs {
    /// The options; `None` if they are absent.
    ///
    /// # Errors
    /// An address, a name or the token cannot be used.
    pub fn read(&self) -> anyhow::Result<Option<CoordinationOptions>> {
        let (Some(meet), Some(host), Some(token)) = (&self.meet, &self.host, &self.token) else {
            return Ok(None);
        };
        let roster = Roster::new(host, &self.clients, &self.servers).map_err(bad_input)?;
        let token = Token::read(token).map_err(bad_input)?;
        Ok(Some(CoordinationOptions { roster, address: resolve(meet)?, token }))
    }
}

fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let mut found = text.to_socket_addrs().map_err(|error| {
        bad_input(format!("--meet {text}: {error}. Write ADDRESS:PORT, such as 10.0.0.1:7420"))
    })?;
    let address = found.next().ok_or_else(|| bad_input(format!("--meet {text}: has no address")))?;
    if address.ip().is_unspecified() || address.ip().is_multicast() {
        return Err(bad_input(format!(
            "--meet {text}: {} is no address of one host: the first client would listen in every network. Give its address in the network \
             of the other hosts, such as 10.0.0.1:7420",
            address.ip()
        )));
    }
    Ok(address)
}
