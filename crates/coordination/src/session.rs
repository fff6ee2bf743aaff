//! Session: state shared by the coordinator's own thread and its poll loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::poll::Waker;
use crate::{Ended, JoinConfig, Message, Role};

/// Interval at which a waiting thread checks the stop flag.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Late peers are told why the run ended for this long after listening began.
const LATE: Duration = Duration::from_secs(20);

/// State shared by the coordinator's threads.
pub(crate) struct Session {
    pub(crate) config: JoinConfig,
    pub(crate) shared: Mutex<Shared>,
    pub(crate) changed: Condvar,
    pub(crate) waker: Waker,
}

#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) peers: BTreeMap<String, Peer>,
    pub(crate) begun: Option<i64>,
    /// The coordinator's own part is done.
    pub(crate) done: bool,
    pub(crate) ended: Option<Ended>,
    /// Late peers that were told why the run ended.
    pub(crate) told: BTreeSet<String>,
    /// The poll loop sends buffered messages, and ends.
    pub(crate) closed: bool,
}

/// A host that has joined.
pub(crate) struct Peer {
    pub(crate) progress: Progress,
    /// Messages for the poll loop to send.
    pub(crate) outbox: Vec<Message>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Joined,
    Ready,
    /// Whether the server was told that all clients are done.
    Notified,
    Done,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked leaves the state consistent: each change is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Waits for a change, for a limited time: the stop flag is set without one.
    pub(crate) fn wait<'a>(&self, shared: MutexGuard<'a, Shared>) -> MutexGuard<'a, Shared> {
        self.changed.wait_timeout(shared, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for late peers for a limited time, to tell them why the run ended.
    pub(crate) fn drain_late_peers(&self, mut shared: MutexGuard<'_, Shared>, opened: Instant) {
        let is_there =
            |shared: &Shared, name: &str| shared.peers.contains_key(name) || shared.told.contains(name);
        while opened.elapsed() < LATE.min(self.config.timeouts.patience)
            && !self.config.roster.others().all(|name| is_there(&shared, name))
        {
            shared = self.wait(shared);
        }
    }

    pub(crate) fn tell_all(&self, shared: &mut Shared, message: &Message) {
        for peer in shared.peers.values_mut() {
            peer.outbox.push(message.clone());
        }
        self.waker.wake();
    }

    /// Ends the run for all hosts. Only the first end counts.
    pub(crate) fn end_for_all(&self, shared: &mut Shared, ended: Ended) {
        if shared.ended.is_none() && !shared.closed {
            let failed = ended.failed.as_deref().map(crate::message::short);
            let ended = Ended { failed, ..ended };
            self.tell_all(shared, &Message::Over { ended: ended.clone() });
            shared.ended = Some(ended);
            self.config.stop.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    /// Tells the servers once all clients are done.
    pub(crate) fn notify_if_done(&self, shared: &mut Shared) {
        let role = |name: &str| self.config.roster.role(name);
        let is_busy = |(name, peer): (&String, &Peer)| {
            role(name) == Some(Role::Client) && peer.progress != Progress::Done
        };
        if !shared.done || shared.peers.iter().any(is_busy) {
            return;
        }
        for (name, peer) in &mut shared.peers {
            if role(name) == Some(Role::Server) && peer.progress == Progress::Ready {
                peer.outbox.push(Message::Asked {});
                peer.progress = Progress::Notified;
            }
        }
        self.waker.wake();
    }
}
