//! Errors of record files.

use std::path::PathBuf;

/// Error of writing or reading a record file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not a Parquet file, or is truncated.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
    /// The Parquet file is not the expected table.
    #[error("{}: {reason}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
}
