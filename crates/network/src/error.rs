//! Errors of the test network.

use std::path::Path;

/// A network that was not made, or not taken down.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refused before anything was made.
    #[error("{0}")]
    Refused(String),
    /// Failed on the way; what had been made is in the state file.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// A failure of an operating-system call on a path.
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let text = format!("{what} {}", path.display());
        move |error| Error::Failed(format!("{text}: {error}"))
    }

    /// Whether nothing was made.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused(_))
    }
}
