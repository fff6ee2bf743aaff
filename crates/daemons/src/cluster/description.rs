//! Description of a cluster: its daemons, and which servers run them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::Document;
use weir_testbeds::CLUSTERS;

use crate::Error;
use crate::description::Daemon;

/// Description of a cluster: `testbeds/clusters/NAME.yml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Debian packages that contain servers and client.
    pub packages: Vec<String>,
    /// Its daemons, in the order in which they are started.
    #[serde(rename = "services", alias = "daemons")]
    pub daemons: Vec<Member>,
    /// Commands run on the client's host after the first mount, at `{point}`.
    #[serde(default)]
    pub set_up: Vec<Vec<String>>,
}

/// A daemon of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its description's name.
    #[serde(rename = "service", alias = "daemon")]
    pub daemon: String,
    /// Servers that run it.
    pub on: On,
    /// Its port.
    pub port: u16,
    /// Placeholders of the daemon (`defaults`). In a value `{first}` is the address of the first server, and `{clients}` are
    /// the addresses of the clients, separated by commas. The placeholder `index` is the server's number, from 0.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

impl Member {
    pub(super) fn load(&self, cluster: &str) -> Result<Daemon, Error> {
        Daemon::load(&self.daemon)
            .ok_or_else(|| Error::Refused(format!("testbeds/clusters/{cluster}.yml: services: unknown daemon `{}`. Describe it in testbeds/daemons", self.daemon)))
    }
}

/// Servers that run a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// The first server; its data are metadata and lie in the state folder.
    First,
    /// Every server; its data lie in the server's folder or on its device.
    Each,
}

impl Description {
    /// Names of all clusters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CLUSTERS.names()
    }

    /// A cluster by name; `None` if there is none of that name.
    pub fn load(name: &str) -> Option<Self> {
        Document::from_text(name.as_ref(), CLUSTERS.text(name)?).ok()?.parse().ok()
    }
}
