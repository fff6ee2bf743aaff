//! Coordination of the hosts of one run: barrier, clock offsets and loss detection.
//!
//! The first client is the coordinator: it listens, waits until every host is ready, and names the epoch of the run on its own
//! clock. Every other host measures the offset of its `CLOCK_MONOTONIC` from the coordinator's ([`Offset`]) before and after the
//! run, by which its times are converted. A host that sends nothing for some time, or disconnects, ends the run for all
//! ([`Ended`]).
//!
//! Messages are lines of JSON over TCP ([`Message`]). Both sides prove that they know the study's token, which is never sent
//! ([`Token`]); every later line has a sequence number and an HMAC under a key of its connection and direction. Lines are
//! authenticated, not encrypted.
//!
//! The coordinator serves all connections in one thread. The number and duration of unauthenticated connections are limited:
//! they neither delay hosts of the run nor exhaust threads or memory.

mod accept;
mod clock;
mod connect;
mod connection;
mod coordination;
mod coordinator;
mod error;
mod join_config;
mod line;
mod message;
mod participant;
mod poll;
mod poll_loop;
mod record;
mod refusal_log;
mod roster;
mod sealed;
mod session;
mod timeouts;
mod token;

pub use clock::{Clocks, Exchange, Offset};
pub use coordination::Coordination;
pub use error::{Ended, Error};
pub use join_config::JoinConfig;
pub use line::{LineBuffer, MOST_BYTES};
pub use message::{Message, VERSION};
pub use record::Record;
pub use roster::{Role, Roster};
pub use timeouts::Timeouts;
pub use token::Token;
