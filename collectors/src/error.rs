//! Errors of a collection.

use std::path::{Path, PathBuf};

/// Error of a collection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is not that of a disk that can be collected.
    #[error("{device}: {reason}")]
    Device {
        /// The name.
        device: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// BPF programs cannot run here.
    #[error("BPF cannot be used: {0}")]
    Bpf(String),
    /// ftrace events cannot be recorded, or a trace instance cannot be removed.
    #[error("ftrace cannot be used: {0}")]
    Ftrace(String),
    /// blktrace(8) recorded nothing.
    #[error("blktrace(8) cannot be used: {0}")]
    Blktrace(String),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A table could not be written.
    #[error(transparent)]
    Record(#[from] weir_records::Error),
    /// A record for undo could not be written.
    #[error(transparent)]
    Host(#[from] weir_host::Error),
    /// A recorded stream is damaged.
    #[error(transparent)]
    Stream(#[from] weir_trace::blktrace::Error),
}

impl Error {
    /// Whether the input is wrong, and nothing was touched.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Error::Device { .. })
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}
