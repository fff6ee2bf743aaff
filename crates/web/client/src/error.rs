//! Errors of the web client and of document trees.

use std::io;
use std::path::PathBuf;

/// Why no request was sent, or a document tree is not valid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL cannot be used.
    #[error("URL {url}: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// An option outside its range.
    #[error("{option} is {found}; {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// The workload does not read whole documents.
    #[error("workload `{workload}`: {reason}")]
    Workload {
        /// Its name.
        workload: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A folder cannot take, or does not hold, the documents.
    #[error("{}: {reason}", path.display())]
    Tree {
        /// The folder or the file in it.
        path: PathBuf,
        /// What was found, and what to do.
        reason: String,
    },
    /// The system refused.
    #[error("{doing}: {source}")]
    System {
        /// What was attempted.
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
