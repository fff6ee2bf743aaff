//! Control socket: a command and its answer are one line of JSON each.

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
    /// Turn service times on or off.
    Timing { on: bool },
    /// Statistics; reset them if `reset`.
    Stats {
        #[serde(default)]
        reset: bool,
    },
    /// Discard all data: every byte becomes zero. (With the braces serde refuses unknown fields.)
    Discard {},
    /// Statistics of each class.
    Live {},
    /// The classes.
    Classes {},
    /// Add a class, or change the one of that name.
    SetClass { class: Box<ClassSpec> },
    /// Remove a class.
    RemoveClass { name: String },
    /// Replace the scheduler.
    SetPolicy { policy: String },
    /// Replace scheduler, classes and queue depth in one step.
    Arrange { arrangement: Box<Arrangement> },
    /// Active scheduler, classes and queue depth.
    Arrangement {},
    /// Set time 0 of models and schedulers to an instant of CLOCK_MONOTONIC.
    Begin { at_ns: u64 },
}

/// Answer of the server.
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
