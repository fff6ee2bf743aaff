//! Classes of clients and options of a run.

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
    /// The server.
    pub server: Server,
    /// What [`crate::Expect::Document`] numbers; absent where no document is expected.
    pub documents: Option<Arc<Documents>>,
    /// Closed or open loop.
    pub load: Load,
}

/// How requests are generated.
pub enum Load {
    /// A closed loop: a connection for each client, numbered as they come here.
    Closed(Vec<Box<dyn Client>>),
    /// An open loop: connections are made on demand, up to a limit. Several sources are distributed over the threads.
    Open {
        /// The requests, each source in order of time.
        sources: Vec<Box<dyn Source>>,
        /// Most connections of the class. A request that finds all of them in use waits for one, and its response time
        /// holds the wait.
        connections: usize,
    },
}

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The instant of `CLOCK_MONOTONIC`, in ns, that times are relative to; `None` begins as soon as the threads run.
    pub epoch_monotonic_ns: Option<i64>,
    /// Requests due at or after this are not sent.
    pub duration: Duration,
    /// Requests due before this are warm-up, and are not in the report's figures.
    pub warmup: Duration,
    /// Maximum time from the intended instant of a request to the end of its answer.
    pub timeout: Duration,
    /// Sending threads; one sends tens of thousands of requests a second.
    pub threads: usize,
    /// `SCHED_FIFO` priority of the sending threads, where permitted: keeps an open loop that needs little CPU time punctual.
    /// `None` keeps the default class, for threads that use a whole CPU.
    pub fifo_priority: Option<i32>,
    /// Most bytes of a body that is not a document.
    pub body_limit_bytes: usize,
    /// Set to `true` to stop sending; outstanding requests are awaited for at most 1 s.
    pub stop: Arc<AtomicBool>,
    /// Answers and failures so far; can be read during the run.
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

/// More threads only contend.
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
