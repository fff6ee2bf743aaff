//! Contracts of streams, in ms.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_scheduler::guarantee::Task;

/// Contract of a stream: a request with a service time of at most `cost_ms` on one disk in every `period_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Longest service time of a request on one disk, in ms. Of a class that is not real-time: service time of all its
    /// requests together in a period.
    pub cost_ms: f64,
    /// Time from one request to the next and to its deadline on each disk, in ms. A stream that is striped over three
    /// disks has a period of three times the time between its blocks.
    pub period_ms: f64,
}

impl Contract {
    /// The task of an admission test, in whole ns.
    ///
    /// # Errors
    /// The field and its problem.
    pub fn task(self) -> Result<Task, (&'static str, String)> {
        Task::from_ms(self.cost_ms, self.period_ms)
    }

    /// The contract of a number of streams, for schedulers. `None` if it is invalid, which the validation of a study
    /// excludes.
    pub fn for_streams(self, streams: u32) -> Option<weir_scheduler::Contract> {
        self.task().ok().map(|task| weir_scheduler::Contract { task, streams })
    }
}
