//! A server of the Network Block Device protocol, for clients on this machine.
//!
//! Fixed newstyle negotiation with simple replies, as
//! <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md> has it: reads, writes with FUA, flushes, trims and zeroes.
//! It listens on a Unix socket that only the server's user can open, or on the loopback address; there is no encryption.

mod connection;
mod handshake;
mod listener;
mod protocol;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use listener::{Address, Listener};

use std::sync::Arc;

use crate::live::Engine;

/// What a client can ask for by name: a part of a device.
#[derive(Clone)]
pub(crate) struct Export {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// Whose device it is of.
    pub engine: Arc<Engine>,
    /// First byte of the device that belongs to it.
    pub first_byte: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether the device has moving parts.
    pub is_rotational: bool,
}

/// All exports of a server; the first is also the one without a name.
pub(crate) type Exports = Arc<Vec<Export>>;
