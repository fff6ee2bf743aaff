//! Errors of the file benchmark.

use std::path::Path;

/// A benchmark that was not begun, or not carried to its end; what it had written is removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refused before anything was written.
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
}
