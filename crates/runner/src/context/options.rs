//! Options of a run: folders on this host, attempts, and the other hosts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weir_coordination::{Roster, Token};
use weir_study::Run;

/// Options of a run on this host.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the study's results; the run's own folder is made in it.
    pub results: PathBuf,
    /// Folder for the journal and for mount points.
    pub state: PathBuf,
    /// Whether a run that exists and is invalid is carried out again and replaced.
    pub retry_invalid: bool,
    /// Maximum attempts when CPU steal alone made the run invalid (1 or more).
    pub attempts: u32,
    /// Set to `true` to end the run early and undo it.
    pub stop: Arc<AtomicBool>,
    /// Whether the kernel's I/O controller may be moved to version 2 of control groups for a run that uses it.
    pub move_io_controller: bool,
    /// How this host reaches the other hosts; absent in a run of one host.
    pub coordination: Option<CoordinationOptions>,
}

/// How this host reaches the other hosts of a run.
#[derive(Debug, Clone)]
pub struct CoordinationOptions {
    /// The hosts of the run, and which of them this is.
    pub roster: Roster,
    /// Address at which the coordinator listens.
    pub address: SocketAddr,
    /// Secret by which hosts authenticate each other.
    pub token: Token,
}

impl Options {
    /// This host's name for its part of a run: the run's id, followed by the host where there are several.
    pub(crate) fn own_name(&self, run: &Run) -> String {
        match &self.coordination {
            None => run.id.clone(),
            Some(coordination) => format!("{}.{}", run.id, coordination.roster.me()),
        }
    }
}
