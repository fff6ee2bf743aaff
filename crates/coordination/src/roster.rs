//! Roster: the hosts of one run and their roles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Role of a host in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sends requests.
    Client,
    /// Serves requests, and captures the requests of its disks.
    Server,
}

/// All hosts of a run, and which of them this host is. The first client is the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    me: String,
    clients: Vec<String>,
    servers: Vec<String>,
}

impl Roster {
    /// # Errors
    /// A name is invalid, given twice, or this host is missing.
    pub fn new(me: &str, clients: &[String], servers: &[String]) -> Result<Self, Error> {
        let all: Vec<&String> = clients.iter().chain(servers).collect();
        for (at, name) in all.iter().enumerate() {
            // Host names are also file names.
            if let Some(problem) = weir_specs::host_problem(name) {
                return Err(Error::Refused(format!("a host {problem}")));
            }
            if all[..at].contains(name) {
                return Err(Error::Refused(format!(
                    "host `{name}` is named twice. A host has one part in a run"
                )));
            }
        }
        if clients.len() < 2 {
            return Err(Error::Refused(format!(
                "too few clients (found {}, expected 2 or more)",
                clients.len()
            )));
        }
        if !all.iter().any(|name| *name == me) {
            return Err(Error::Refused(format!(
                "this host, `{me}`, is neither a client nor a server of the run. Name it"
            )));
        }
        Ok(Roster { me: me.to_owned(), clients: clients.to_vec(), servers: servers.to_vec() })
    }

    /// This host.
    pub fn me(&self) -> &str {
        &self.me
    }

    /// The coordinator's name.
    pub fn coordinator(&self) -> &str {
        &self.clients[0]
    }

    /// Whether this host is the coordinator.
    pub fn coordinates(&self) -> bool {
        self.me == self.clients[0]
    }

    /// This host's index among the clients, from 0; `None` if it is a server.
    pub fn client(&self) -> Option<usize> {
        self.clients.iter().position(|name| *name == self.me)
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Role of a host; `None` if it does not take part.
    pub fn role(&self, host: &str) -> Option<Role> {
        let is_among = |names: &[String]| names.iter().any(|name| name == host);
        if is_among(&self.clients) {
            Some(Role::Client)
        } else {
            is_among(&self.servers).then_some(Role::Server)
        }
    }

    /// All hosts, the clients first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.clients.iter().chain(&self.servers).map(String::as_str)
    }

    /// All hosts but this one.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.all().filter(|name| *name != self.me)
    }
}
