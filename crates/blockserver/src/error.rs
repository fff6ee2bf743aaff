//! Errors of the block server.

use std::io;
use std::path::{Path, PathBuf};

use weir_simulator::profile::ProfileError;

/// An error of the block server. Each text states the problem and, if there is one, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The specification is invalid: nothing was touched.
    #[error("{file}: {message}")]
    Spec {
        /// The spec file, or its name.
        file: String,
        /// The problem and its remedy.
        message: String,
    },
    /// The file is not a specification: nothing was touched.
    #[error(transparent)]
    Unreadable(#[from] weir_specs::Problems),
    /// The profile of the specification is invalid: nothing was touched.
    #[error("{file}: field `profile`: {error}")]
    Profile {
        /// The spec file, or its name.
        file: String,
        /// The problem.
        error: ProfileError,
    },
    /// This host or user cannot make the device.
    #[error("{0}")]
    Unable(String),
    /// A server of that name is running.
    #[error("`{name}` is being served by process {pid}. End it with: weir serve --down {}", state.display())]
    Running {
        /// Name in the spec.
        name: String,
        /// The server's process.
        pid: u32,
        /// Its state file.
        state: PathBuf,
    },
    /// The server ended before its device was ready.
    #[error("the block server of `{name}` did not start: {message}")]
    NotStarted {
        /// Name in the spec.
        name: String,
        /// The end of its log.
        message: String,
    },
    /// The server refused a command.
    #[error("the block server refused: {0}")]
    Refused(String),
    /// A system call failed.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation, with the object's name.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
    /// A file is not a state file.
    #[error("{path} is not a state file of a block server: {message}")]
    State {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
}

impl Error {
    /// Whether the input is wrong or not possible on this host, and nothing was touched.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Spec { .. } | Self::Unreadable(_) | Self::Profile { .. } | Self::State { .. } => true,
            Self::Unable(_) | Self::Running { .. } => true,
            Self::NotStarted { .. } | Self::Refused(_) | Self::System { .. } => false,
        }
    }

    pub(crate) fn host(error: weir_host::Error) -> Self {
        match error {
            weir_host::Error::Io { what, path, source } => {
                let what = format!("{} {}", what.trim_start_matches("cannot "), path.display());
                Self::System { what, error: source }
            }
            weir_host::Error::Refused(text) => Self::Unable(text),
            weir_host::Error::Failed(text) => {
                Self::System { what: "use this host".to_owned(), error: io::Error::other(text) }
            }
        }
    }

    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::System { what, error }
    }

    pub(crate) fn path(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::system(format!("{verb} {}", path.display()))
    }
}
