//! Why hosts did not come to the end of a run together.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A host ended the run for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The host.
    pub host: String,
    /// When the last was heard of it, in ns since the run began; absent if that was before.
    pub after_ns: Option<i64>,
    /// Why it could not go on, in its own words; absent if it was lost.
    pub failed: Option<String>,
}

impl Ended {
    /// Whether nothing was heard of the host any more.
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

/// Why hosts could not carry out a run together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was given cannot be used, or this host is refused: nothing was begun.
    #[error("{0}")]
    Refused(String),
    /// A host ended the run.
    #[error("{0}")]
    Ended(Ended),
    /// The network or the other side failed.
    #[error("{0}")]
    Failed(String),
}
