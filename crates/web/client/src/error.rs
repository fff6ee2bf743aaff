//! Errors of the web client and of document trees.

use std::io;
use std::path::PathBuf;

/// Why no request was sent, or a document tree is not valid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL cannot be used.
    #[error("URL {url}: {reason}")]
    Url {
        /// The URL as written by the user.
        url: String,
        /// The problem and its remedy.
        reason: String,
    },
    /// An option outside its range.
    #[error("{option} is {found}; {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: String,
        /// Allowed values.
        allowed: &'static str,
    },
    /// The workload does not read whole documents.
    #[error("workload `{workload}`: {reason}")]
    Workload {
        /// Its name.
        workload: String,
        /// The problem and its remedy.
        reason: String,
    },
    /// A folder cannot take, or does not hold, the documents.
    #[error("{}: {reason}", path.display())]
    Tree {
        /// The folder or the file in it.
        path: PathBuf,
        /// The content that was found, and the remedy.
        reason: String,
    },
    /// The system refused.
    #[error("{doing}: {source}")]
    System {
        /// The attempted operation.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A histogram could not be made.
    #[error("the histogram of response times cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// The rows could not be written.
    #[error(transparent)]
    Records(#[from] weir_records::Error),
    /// A thread ended abnormally.
    #[error("the {0} thread panicked")]
    Thread(&'static str),
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::System { doing, source }
    }

    pub(crate) fn tree(path: impl Into<PathBuf>, reason: impl Into<String>) -> Error {
        Error::Tree { path: path.into(), reason: reason.into() }
    }
}
