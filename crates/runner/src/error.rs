//! Why a run could not be carried out.

use std::path::Path;

/// A run that was not carried out, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refused before anything was touched.
    #[error("{0}")]
    Refused(String),
    /// Failed on the way; what had been done was undone.
    #[error("{0}")]
    Failed(String),
    /// This host's kernel does not have what the run varies; what had been done was undone.
    #[error("{0}")]
    Unavailable(String),
}

impl Error {
    /// A failure of an operating-system call on a path.
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let text = format!("{what} {}", path.display());
        move |error| Error::Failed(format!("{text}: {error}"))
    }

    /// What a check or a change of a device or folder came to.
    pub(crate) fn of_host(error: weir_host::Error) -> Self {
        if error.is_refusal() { Error::Refused(error.to_string()) } else { Error::Failed(error.to_string()) }
    }

    /// Whether nothing was touched.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused(_))
    }
}

impl From<weir_host::Error> for Error {
    fn from(error: weir_host::Error) -> Self {
        let text = error.to_string();
        if error.is_refusal() { Error::Refused(text) } else { Error::Failed(text) }
    }
}
