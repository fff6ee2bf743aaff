//! Hosts that carry out one run together.
//!
//! The first client conducts: it listens, waits until all have come and are ready, and names the instant at which the run
//! begins, on its own clock. Every other host measures how far its `CLOCK_MONOTONIC` is from the conductor's ([`Offset`]) before
//! and after the run, so that its times can be told in the conductor's. A host that falls silent, or whose connection ends,
//! ends the run for all ([`Ended`]).
//!
//! What is said are lines of JSON over TCP ([`Message`]). Who comes must know a token that only the hosts of a study have; it
//! never crosses the network ([`Token`]).

mod arrive;
mod attendant;
mod clock;
mod company;
mod conductor;
mod door;
mod error;
mod hall;
mod invitation;
mod line;
mod meeting;
mod message;
mod record;
mod token;

pub use clock::{Clocks, Exchange, Offset, monotonic_ns};
pub use company::{Company, Role};
pub use error::{Ended, Error};
pub use invitation::Invitation;
pub use line::{Lines, MOST_BYTES};
pub use meeting::{Manners, Meeting};
pub use message::Message;
pub use record::Record;
pub use token::Token;
