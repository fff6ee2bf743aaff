//! Errors of daemons and clusters.

use std::path::Path;

/// A daemon or cluster could not be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refused before anything was started.
    #[error("{0}")]
    Refused(String),
    /// Failed on the way.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// A failure of an operating-system call on a path.
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let text = format!("{what} {}", path.display());
        move |error| Error::Failed(format!("{text}: {error}"))
    }

    /// Whether nothing was started.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused(_))
    }
}

impl From<weir_network::Error> for Error {
    fn from(error: weir_network::Error) -> Self {
        if error.is_refusal() { Error::Refused(error.to_string()) } else { Error::Failed(error.to_string()) }
    }
}

impl From<weir_host::Error> for Error {
    fn from(error: weir_host::Error) -> Self {
        if error.is_refusal() { Error::Refused(error.to_string()) } else { Error::Failed(error.to_string()) }
    }
}
