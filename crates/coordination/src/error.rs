//! Errors of a coordinated run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// End of a run by one host, for all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The host.
    pub host: String,
    /// Time of the host's last message, in ns since the epoch; absent if it was before.
    pub after_ns: Option<i64>,
    /// Why the host could not continue, as it reports; absent if it was lost.
    pub failed: Option<String>,
}

impl Ended {
    /// Whether the host was lost.
    pub fn is_lost(&self) -> bool {
        self.failed.is_none()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failed, self.after_ns) {
            (Some(reason), _) => write!(f, "host {} failed: {reason}", self.host),
            (None, Some(after_ns)) => {
                write!(f, "host {} was lost after {:.1} s", self.host, after_ns as f64 / 1e9)
            }
            (None, None) => write!(f, "host {} was lost before the run began", self.host),
        }
    }
}

/// Error of a coordinated run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong, or this host is refused: nothing was begun.
    #[error("{0}")]
    Refused(String),
    /// A host ended the run.
    #[error("{0}")]
    Ended(Ended),
    /// The network or the other side failed.
    #[error("{0}")]
    Failed(String),
}
