//! Errors of a site.

use thiserror::Error;

use crate::database::DatabaseError;

/// Why something failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A request for something that is absent or impossible: its HTTP status and the reason.
    #[error("{1}")]
    Refused(u16, String),
    /// Input that cannot be used; nothing was touched.
    #[error("{0}")]
    Input(String),
    /// A file.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A thread panicked.
    #[error("the {0} thread panicked")]
    Thread(&'static str),
}

impl Error {
    /// The database's error, if it is one.
    pub fn database(&self) -> Option<&DatabaseError> {
        match self {
            Error::Database(error) => Some(error),
            _ => None,
        }
    }

    /// A request that is not as it has to be.
    pub(crate) fn bad(what: impl Into<String>) -> Self {
        Error::Refused(400, what.into())
    }

    /// A request for what does not exist.
    pub(crate) fn absent(what: impl Into<String>) -> Self {
        Error::Refused(404, what.into())
    }
}
