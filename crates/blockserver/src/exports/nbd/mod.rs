//! NBD server (Network Block Device protocol), for clients on this machine.
//!
//! Fixed newstyle negotiation with simple replies, as in
//! <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>: reads, writes with FUA, flushes, trims and zeroes.
//! It listens on a Unix socket, for root and the server's user only, or on a loopback port, for every user of the host: it has
//! no TLS.

mod connection;
mod handshake;
mod listener;
mod protocol;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use listener::{Address, Listener};

use std::sync::Arc;

use crate::engine::scheduled::Export;

/// Parses a client's data of either phase.
pub(crate) fn fuzzing(data: &[u8]) {
    let mut rest = data;
    while let Some((header, behind)) = rest.split_first_chunk() {
        let Some(header) = protocol::Header::parse(header) else { break };
        // The data of a write follow it.
        let data_bytes =
            if header.command == protocol::Command::Write { header.size_bytes as usize } else { 0 };
        rest = behind.get(data_bytes..).unwrap_or_default();
    }
    let _ = protocol::InfoRequest::parse(data);
    let _ = protocol::export_name(data);
}

/// All exports of a server; the first is also the one without a name.
pub(crate) type Exports = Arc<Vec<Export>>;
