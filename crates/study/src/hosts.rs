//! The field `hosts` of a study: runs of several client hosts at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Client hosts of one shared storage: each sends the requests of all classes, with random streams of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Number of client hosts of each run, from the start of the inventory's group `weir_clients`. Hosts of the group
    /// `weir_servers` record the requests of their disks.
    pub clients: u32,
    /// Whether the study ends when a host is lost. The run is invalid in either case.
    #[serde(default)]
    pub lost: Lost,
}

/// Whether a study of several hosts ends when a host is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// The study ends. The same command continues it with the missing runs.
    #[default]
    Stop,
    /// The study continues with other clients of the inventory. It ends where they are too few, and where a server is
    /// lost.
    Continue,
}
