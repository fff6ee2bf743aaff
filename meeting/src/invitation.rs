//! What a host knows before it goes to a meeting.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::{Company, Manners, Token};

/// What a host knows before it goes to a meeting.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// Who takes part, and which of them this host is.
    pub company: Company,
    /// Where the conductor listens.
    pub address: SocketAddr,
    /// What lets a host in.
    pub token: Token,
    /// The run that they meet for.
    pub run: String,
    /// How long things take.
    pub manners: Manners,
    /// Set when the run is over before its end.
    pub stop: Arc<AtomicBool>,
}
