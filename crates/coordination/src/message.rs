//! Messages between the hosts of a run: one JSON object per line.

use serde::{Deserialize, Serialize};

use crate::Ended;

/// Version of the messages; both sides must have the same.
pub const VERSION: u32 = 2;

/// Maximum length of a reason, in characters. In JSON a character has at most six bytes: the line stays within its limit.
const MOST_REASON_CHARS: usize = 500;

/// One message. `Challenge`, `Hello`, `Welcome` and `Refused` are not sealed, since they precede authentication; all others are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Coordinator: challenge of the handshake.
    Challenge {
        /// Version of the messages.
        version: u32,
        /// Random number of this connection, chosen by the coordinator.
        nonce: String,
    },
    /// Host: its name, its run and its proof.
    Hello {
        /// Version of the messages.
        version: u32,
        /// Name of the host.
        host: String,
        /// Id of the run.
        run: String,
        /// Random number of this connection, chosen by the host.
        nonce: String,
        /// HMAC of both numbers, host and run under the token, for a host.
        proof: String,
    },
    /// Coordinator: its proof. Later messages are sealed.
    Welcome {
        /// HMAC of both numbers, host and run under the token, for the coordinator.
        proof: String,
    },
    /// Coordinator: this host cannot join.
    Refused {
        /// Why.
        reason: String,
    },
    /// Coordinator: the host has joined the run.
    Joined {},
    /// Host: request for the coordinator's clock. Its time of sending is taken once the line is sealed.
    Ask {
        /// Number of the request.
        number: u32,
    },
    /// Coordinator: reply to a clock request.
    Told {
        /// Number of the request.
        number: u32,
        /// When the request was received, on the coordinator's clock, in ns.
        received_ns: i64,
    },
    /// Coordinator: time of sending the reply, known once its line is sealed.
    Replied {
        /// Number of the request.
        number: u32,
        /// When the reply was sent, on the coordinator's clock, in ns.
        replied_ns: i64,
    },
    /// Host: ready.
    Ready {},
    /// Coordinator: the run begins.
    Begin {
        /// Epoch of the run, on the coordinator's clock, in ns.
        epoch_ns: i64,
    },
    /// Coordinator: all clients are done.
    Asked {},
    /// Host: done.
    Done {},
    /// Coordinator: all hosts are done.
    End {},
    /// Coordinator: a host ended the run.
    Over {
        /// Which host, and how.
        ended: Ended,
    },
    /// Host: it cannot continue.
    Failed {
        /// Why.
        reason: String,
    },
    /// Either side: heartbeat.
    Beat {},
}

/// Part of the first line that all versions share.
#[derive(Deserialize)]
struct Versioned {
    say: String,
    version: Option<u32>,
}

impl Message {
    /// The line, with its end.
    pub fn line(&self) -> Vec<u8> {
        let mut line = self.json();
        line.push(b'\n');
        line
    }

    pub(crate) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses a line without its end.
    ///
    /// # Errors
    /// The line is not a message; the text says what is wrong.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("not a message of weir's coordination: {error}"))
    }

    /// Version of a hello message; the first version had no number.
    pub(crate) fn version_of_hello(line: &[u8]) -> Option<u32> {
        let Versioned { say, version } = serde_json::from_slice(line).ok()?;
        (say == "hello").then(|| version.unwrap_or(1))
    }
}

/// Cuts a reason to its maximum length.
pub(crate) fn short(reason: &str) -> String {
    reason.chars().take(MOST_REASON_CHARS).collect()
}

/// Error text for different versions.
pub(crate) fn other_version(who: &str, found: u32) -> String {
    format!(
        "{who} has another protocol version (found {found}, expected {VERSION}). Install the same weir on both"
    )
}
