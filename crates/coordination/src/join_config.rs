//! Configuration of a host that joins a run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::{Roster, Timeouts, Token};

/// Configuration of a host that joins a run.
#[derive(Debug, Clone)]
pub struct JoinConfig {
    /// The hosts of the run, and which of them this host is.
    pub roster: Roster,
    /// Address at which the coordinator listens.
    pub address: SocketAddr,
    /// The secret of the hosts of a study.
    pub token: Token,
    /// Id of the run.
    pub run: String,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Set to end the run early.
    pub stop: Arc<AtomicBool>,
}
