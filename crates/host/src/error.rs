//! Error of operations on the host: a refusal, a failed system call on a path, a failed tool.

use std::io;
use std::path::{Path, PathBuf};

/// Error of an operation on the host.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call on a path failed.
    #[error("{what} {path}: {source}")]
    Io {
        /// The failed operation, such as `cannot write`.
        what: String,
        /// The path.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A check failed before anything was changed. The text has the found value and the remedy.
    #[error("{0}")]
    Refused(String),
    /// A tool or the kernel failed.
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
