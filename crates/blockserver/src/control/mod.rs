//! The control socket: one JSON line is a command, one JSON line its answer.

mod client;
pub(crate) mod server;

use serde::{Deserialize, Serialize};

pub use self::client::Control;
use crate::engine::scheduled::{Arrangement, ClassSpec, SchedulingStats};
use crate::stats::Stats;

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Command {
    /// Switch the model off (requests take no time) or on.
    Timing { on: bool },
    /// What has been done; start counting anew if `reset`.
    Stats {
        #[serde(default)]
        reset: bool,
    },
    /// Forget all data: every byte is zero again. (The braces let serde refuse fields that it does not have.)
    Discard {},
    /// What becomes of each class.
    Live {},
    /// The classes.
    Classes {},
    /// Add a class, or change the one of that name.
    SetClass { class: Box<ClassSpec> },
    /// Remove a class.
    RemoveClass { name: String },
    /// Put another policy in place.
    SetPolicy { policy: String },
    /// Put policy, classes and queue depth in place at once.
    Arrange { arrangement: Box<Arrangement> },
    /// What of these is in force.
    Arrangement {},
    /// Make an instant of CLOCK_MONOTONIC time 0 of models and policies.
    Begin { at_ns: u64 },
}

/// What the server answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Done,
    Stats(Box<Stats>),
    Live(Box<SchedulingStats>),
    Classes(Vec<ClassSpec>),
    Arrangement(Box<Arrangement>),
    Error(String),
}
