//! The field `hosts` of a study: runs of several client hosts at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Several client hosts ask one storage at the same time: each asks all classes, with requests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Number of client hosts of each run: the first so many of the inventory's group `weir_clients`. Hosts of its group
    /// `weir_servers` record what their disks do meanwhile.
    pub clients: u32,
    /// What becomes of the study when a host is lost. The run is invalid in either case.
    #[serde(default)]
    pub lost: Lost,
}

/// What becomes of a study of several hosts when one of them is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// It ends; the same command goes on with what is missing.
    #[default]
    Stop,
    /// It goes on without the host, as long as the inventory's other clients are enough; without a server it ends.
    Continue,
}
