//! Time limits of a coordinated run.

use std::time::Duration;

/// Time limits of a coordinated run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Interval between two heartbeats of each side.
    pub beat: Duration,
    /// A host that sends nothing for this long is lost.
    pub silence: Duration,
    /// A host that has not joined after this long is lost.
    pub patience: Duration,
    /// A connection that has not proved the token after this long is closed.
    pub handshake: Duration,
    /// Time from the moment at which all hosts are ready to the epoch of the run.
    pub lead: Duration,
    /// Clock exchanges with the coordinator, before and after the run.
    pub exchanges: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            beat: Duration::from_millis(500),
            silence: Duration::from_secs(5),
            patience: Duration::from_secs(60),
            handshake: Duration::from_secs(3),
            lead: Duration::from_millis(300),
            exchanges: 40,
        }
    }
}
