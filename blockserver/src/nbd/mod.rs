//! A server of the Network Block Device protocol, for clients on this machine.
//!
//! Fixed newstyle negotiation with simple replies, as
//! <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md> has it: reads, writes with FUA, flushes, trims and zeroes.
//! It listens on a Unix socket that only root and the server's user can use, or on a port of loopback, which every user of the host
//! can use: there is no TLS.

mod connection;
mod handshake;
mod listener;
mod protocol;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use listener::{Address, Listener};

use std::sync::Arc;

use crate::live::Export;

/// All exports of a server; the first is also the one without a name.
pub(crate) type Exports = Arc<Vec<Export>>;
