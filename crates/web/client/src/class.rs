//! What is asked of which server: the entry's arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use crate::Error;
use crate::client::{Client, Source};
use crate::documents::Documents;
use crate::server::Server;

/// One class of clients.
pub struct Class {
    /// Names the rows.
    pub name: Arc<str>,
    /// Who is asked.
    pub server: Server,
    /// What [`crate::Expect::Document`] numbers; absent where no document is expected.
    pub documents: Option<Arc<Documents>>,
    /// Who asks.
    pub load: Load,
}

/// Who asks.
pub enum Load {
    /// A closed loop: a connection for each client, numbered as they come here.
    Closed(Vec<Box<dyn Client>>),
    /// An open loop: connections are made as they are needed, up to a limit. Several sources are shared out among the
    /// threads.
    Open {
        /// The requests, each source in order of time.
        sources: Vec<Box<dyn Source>>,
        /// Most connections of the class. A request that finds all of them in use waits for one, and its response time
        /// holds the wait.
        connections: usize,
    },
}

/// How a run goes.
#[derive(Debug, Clone)]
pub struct Options {
    /// The instant of `CLOCK_MONOTONIC`, in ns, that times are relative to; `None` begins as soon as the threads run.
    pub epoch_monotonic_ns: Option<i64>,
    /// What is intended at or after this is not sent.
    pub duration: Duration,
    /// What is intended before this is marked as warm-up, and is not in the report's figures.
    pub warmup: Duration,
    /// An answer that is not whole so long after its request was intended is given up.
    pub timeout: Duration,
    /// Threads that send; 1 does for tens of thousands of requests a second.
    pub threads: usize,
    /// `SCHED_FIFO` priority of the threads that send, where permitted: an open loop that asks for little of a processor is
    /// not made late by others. `None` keeps the default class, as threads should that take all they get.
    pub fifo_priority: Option<i32>,
    /// Most bytes of a body that is not a document.
    pub body_limit_bytes: usize,
    /// Set to `true` by anyone to send no more; what is outstanding is awaited for at most a second.
    pub stop: Arc<AtomicBool>,
    /// Answers and failures so far; readable while the run goes on.
    pub progress: Arc<AtomicU64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            epoch_monotonic_ns: None,
            duration: Duration::from_secs(10),
            warmup: Duration::ZERO,
            timeout: Duration::from_secs(10),
            threads: 1,
            fifo_priority: None,
            body_limit_bytes: 16 << 20,
            stop: Arc::default(),
            progress: Arc::default(),
        }
    }
}

/// Threads beyond this only get in each other's way.
const MOST_THREADS: usize = 256;

impl Options {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |option, found: String, allowed| Err(Error::Option { option, found, allowed });
        let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
        let year = Duration::from_secs(366 * 86_400);
        if self.duration.is_zero() || self.duration > year {
            return bad("duration", seconds(self.duration), "it must be above 0 and at most a year");
        }
        if self.warmup >= self.duration {
            return bad(
                "warmup",
                seconds(self.warmup),
                "it must be below the duration, or nothing is measured",
            );
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > year {
            return bad("timeout", seconds(self.timeout), "it must be from 1 ms to a year");
        }
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return bad("threads", self.threads.to_string(), "it must be from 1 to 256");
        }
        if self.fifo_priority.is_some_and(|priority| !(1..=99).contains(&priority)) {
            let found = self.fifo_priority.unwrap_or(0).to_string();
            return bad("fifo priority", found, "it must be from 1 to 99");
        }
        Ok(())
    }
}
