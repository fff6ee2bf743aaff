//! Errors of a run: refused, failed, or not available on this host.

use std::fmt::Display;
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
    /// This host's kernel lacks what the run varies; what had been done was undone.
    #[error("{0}")]
    Unavailable(String),
}

impl Error {
    /// A failure, in another error's words.
    pub(crate) fn failed(error: impl Display) -> Error {
        Error::Failed(error.to_string())
    }

    /// A failure of an operating-system call on a path.
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
        let text = format!("{what} {}", path.display());
        move |error| Error::Failed(format!("{text}: {error}"))
    }

    /// Whether nothing was touched.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused(_))
    }

    fn of(is_refusal: bool, text: String) -> Error {
        if is_refusal { Error::Refused(text) } else { Error::Failed(text) }
    }
}

impl From<weir_coordination::Error> for Error {
    fn from(error: weir_coordination::Error) -> Self {
        match error {
            weir_coordination::Error::Refused(why) => Error::Refused(why),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<weir_host::Error> for Error {
    fn from(error: weir_host::Error) -> Self {
        Error::of(error.is_refusal(), error.to_string())
    }
}
