//! A part's record of the coordinated run: `part.json`.

use serde::{Deserialize, Serialize};

use crate::{Clocks, Ended, Role, Roster};

/// When a part began, on which clock, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The host.
    pub host: String,
    /// What it did.
    pub role: Role,
    /// Its place among the clients, from 0; absent of a server.
    pub client: Option<usize>,
    /// The run.
    pub run: String,
    /// The run's beginning on the coordinator's clock, in ns; absent if it did not begin.
    pub epoch_ns: Option<i64>,
    /// The same on this host's clock, in ns: what the times of its tables count from.
    pub local_epoch_ns: Option<i64>,
    /// How the two clocks are apart; absent if the run did not begin.
    pub clocks: Option<Clocks>,
    /// Who ended the run; absent if all came to its end.
    pub ended: Option<Ended>,
}

impl Record {
    /// Of a host that did not come to a beginning.
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
