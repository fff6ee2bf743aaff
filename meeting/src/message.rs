//! What hosts say to each other: one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::Ended;

/// Version of what is said; both sides must have the same.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Conductor: who are you? The number is used once.
    Challenge {
        /// Version of what is said.
        version: u32,
        /// The number.
        nonce: String,
    },
    /// Host: this is who I am, and I know the token.
    Hello {
        /// Its name.
        host: String,
        /// The run that it came for.
        run: String,
        /// What follows from token and number.
        answer: String,
    },
    /// Conductor: come in.
    Welcome {},
    /// Conductor: stay out.
    Refused {
        /// Why.
        reason: String,
    },
    /// Host: what time is it?
    Ask {
        /// When that was asked, on the host's clock, in ns.
        sent_ns: i64,
    },
    /// Conductor: this.
    Told {
        /// What was asked.
        sent_ns: i64,
        /// When the question came, on the conductor's clock, in ns.
        received_ns: i64,
        /// When the answer went, on the conductor's clock, in ns.
        replied_ns: i64,
    },
    /// Host: all is prepared.
    Ready {},
    /// Conductor: the run begins.
    Begin {
        /// When, on the conductor's clock, in ns.
        epoch_ns: i64,
    },
    /// Conductor: all clients have asked what they had to ask.
    Asked {},
    /// Host: my part is done.
    Done {},
    /// Conductor: all parts are.
    End {},
    /// Conductor: a host ended the run.
    Over {
        /// Which, and how.
        ended: Ended,
    },
    /// Host: I cannot go on.
    Failed {
        /// Why.
        reason: String,
    },
    /// Either: I am still here.
    Beat {},
}

impl Message {
    /// The line, with its end.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// From a line without its end.
    ///
    /// # Errors
    /// It is none; the text says what is wrong.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("not a message of a meeting: {error}"))
    }
}
