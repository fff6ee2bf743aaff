//! Record of one host's part in a coordinated run: `part.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clocks, Ended, Role, Roster};

/// Epoch of a part on both clocks, clock offsets, and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The host.
    pub host: String,
    /// Its role.
    pub role: Role,
    /// Its index among the clients, from 0; absent for a server.
    pub client: Option<usize>,
    /// The run.
    pub run: String,
    /// The run's epoch on the coordinator's clock, in ns; absent if the run did not begin.
    pub epoch_ns: Option<i64>,
    /// The same on this host's clock, in ns: origin of times in this host's tables.
    pub local_epoch_ns: Option<i64>,
    /// Clock offsets; absent if the run did not begin.
    pub clocks: Option<Clocks>,
    /// Host that ended the run early; absent if the run was complete.
    pub ended: Option<Ended>,
}

impl Record {
    /// Record of a run that did not begin.
    pub fn of_none(roster: &Roster, run: &str, ended: Option<Ended>) -> Self {
        Record {
            host: roster.me().to_owned(),
            role: if roster.client().is_some() { Role::Client } else { Role::Server },
            client: roster.client(),
            run: run.to_owned(),
            epoch_ns: None,
            local_epoch_ns: None,
            clocks: None,
            ended,
        }
    }
}
