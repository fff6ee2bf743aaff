//! The error of everything that acts on the host: a refusal, a failed system call on a path, a failed tool.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused something about a path.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried, such as `cannot write`.
        what: String,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A check did not pass; nothing was touched. The text says what was found and what to do.
    #[error("{0}")]
    Refused(String),
    /// A tool or the kernel failed on the way.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Makes an I/O error about `path`; for `map_err`.
    pub fn io(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let (what, path) = (what.to_owned(), path.to_owned());
        move |source| Error::Io { what, path, source }
    }

    /// Whether a check refused, so that nothing was touched.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused(_))
    }
}
