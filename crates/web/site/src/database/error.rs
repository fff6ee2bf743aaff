//! Errors of the database connection.

use thiserror::Error;

/// Why a statement or a connection failed.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// An address cannot be understood.
    #[error("database address: {0}")]
    Address(String),
    /// The file of the password cannot be used.
    #[error("password file {path}: {reason}")]
    Password {
        /// The file.
        path: String,
        /// The problem and its remedy.
        reason: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("{place}: {source}")]
    Io {
        /// The server.
        place: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The server refused a statement.
    #[error("the database answered {code}: {message}")]
    Server {
        /// SQLSTATE, five characters.
        code: String,
        /// MariaDB's error number; 0 of PostgreSQL.
        number: u16,
        /// Its message.
        message: String,
    },
    /// The server sent a message that violates its protocol or is not supported.
    #[error("database protocol: {0}")]
    Protocol(String),
    /// A row has another value than expected.
    #[error("a row of the database has {found} in column {column}, expected {expected}")]
    Column {
        /// The column's place, from 0.
        column: usize,
        /// The value that was found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
}

impl DatabaseError {
    /// Whether the same transaction may succeed if it is tried again: a deadlock, a serialisation failure, or a lock that
    /// was waited for too long.
    pub fn is_retryable(&self) -> bool {
        // 1213 deadlock, 1205 lock wait timeout, 1020 record has changed since last read.
        matches!(self, DatabaseError::Server { code, number, .. }
            if code == "40001" || code == "40P01" || matches!(number, 1213 | 1205 | 1020))
    }

    /// Whether a unique key was violated.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, DatabaseError::Server { code, number, .. } if code == "23505" || *number == 1062)
    }

    /// Whether the server is not available: shutting down, starting up, or without a free connection.
    pub fn is_gone(&self) -> bool {
        match self {
            DatabaseError::Io { .. } => true,
            // Class 57P: operator intervention; 53300: too many connections; class 08: connection.
            DatabaseError::Server { code, number, .. } => {
                code.starts_with("57P") || code.starts_with("08") || code == "53300"
                    // Shutting down; too many connections.
                    || matches!(number, 1053 | 1040 | 1927)
            }
            _ => false,
        }
    }
}
