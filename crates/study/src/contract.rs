//! What streams are promised of a disk, in the units of people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_scheduler::guarantee::Task;

/// A request of at most `cost_ms` of one disk's time in every `period_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// What a request takes of one disk at most, in ms; of a class that is not real-time, what all its requests together
    /// get in a period.
    pub cost_ms: f64,
    /// Time from one request to the next, and to its deadline, in ms: on each disk, so that of a stream that is striped
    /// over three disks it is three times as long as from block to block.
    pub period_ms: f64,
}

impl Contract {
    /// As admission tests have it, in whole ns.
    ///
    /// # Errors
    /// The field that is wrong, and what is wrong with it.
    pub fn task(self) -> Result<Task, (&'static str, String)> {
        Task::from_ms(self.cost_ms, self.period_ms)
    }

    /// As schedulers have it, for so many streams; `None` if it is no contract, which studies are checked for.
    pub fn for_streams(self, streams: u32) -> Option<weir_scheduler::Contract> {
        self.task().ok().map(|task| weir_scheduler::Contract { task, streams })
    }
}
