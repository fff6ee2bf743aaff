//! Coordinator of a run, the first client: accepts the other hosts, sets the epoch, and detects lost hosts.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use weir_host::clock::monotonic_ns;

use crate::poll::Waker;
use crate::poll_loop::PollLoop;
use crate::session::{Progress, Session, lock};
use crate::{Clocks, Ended, Error, JoinConfig, Message, Offset, Record};

/// The coordinator.
pub struct Coordinator {
    session: Arc<Session>,
    opened: Instant,
    poll_loop: Option<JoinHandle<()>>,
}

impl Coordinator {
    pub(crate) fn open(config: JoinConfig) -> Result<Self, Error> {
        let address = config.address;
        let refuse = |error: std::io::Error| Error::Refused(format!("cannot listen at {address}: {error}"));
        let failed = |error: std::io::Error| Error::Failed(format!("cannot serve {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let waker = Waker::new().map_err(failed)?;
        let session = Arc::new(Session { config, shared: Mutex::default(), changed: Condvar::new(), waker });
        let poll_loop = PollLoop::new(Arc::clone(&session), listener);
        // The only thread, made before the first connection: a lack of threads shows at once.
        let thread = thread::Builder::new().name("coordinator".to_owned());
        let poll_loop = thread.spawn(move || poll_loop.run()).map_err(failed)?;
        Ok(Coordinator { session, opened: Instant::now(), poll_loop: Some(poll_loop) })
    }

    pub(crate) fn begin(&mut self) -> Result<i64, Error> {
        let session = &self.session;
        let config = &session.config;
        let mut shared = lock(&session.shared);
        loop {
            if let Some(ended) = shared.ended.clone() {
                session.drain_late_peers(shared, self.opened);
                return Err(Error::Ended(ended));
            }
            self.check()?;
            let absent = config.roster.others().find(|name| !shared.peers.contains_key(*name));
            match absent {
                Some(host) if self.opened.elapsed() > config.timeouts.patience => {
                    let ended = Ended { host: host.to_owned(), after_ns: None, failed: None };
                    session.end_for_all(&mut shared, ended.clone());
                    return Err(Error::Ended(ended));
                }
                None if shared.peers.values().all(|peer| peer.progress >= Progress::Ready) => break,
                _ => {}
            }
            shared = session.wait(shared);
        }
        let lead_ns = i64::try_from(config.timeouts.lead.as_nanos()).unwrap_or(0);
        let epoch_ns = monotonic_ns() + lead_ns;
        shared.begun = Some(epoch_ns);
        session.tell_all(&mut shared, &Message::Begin { epoch_ns });
        Ok(epoch_ns)
    }

    pub(crate) fn end(&mut self) -> Result<Record, Error> {
        {
            let session = &self.session;
            let mut shared = lock(&session.shared);
            shared.done = true;
            session.notify_if_done(&mut shared);
            loop {
                if let Some(ended) = &shared.ended {
                    return Err(Error::Ended(ended.clone()));
                }
                self.check()?;
                if shared.peers.values().all(|peer| peer.progress == Progress::Done) {
                    break;
                }
                shared = session.wait(shared);
            }
            shared.closed = true;
            session.tell_all(&mut shared, &Message::End {});
        }
        Ok(self.record())
    }

    /// Whether the run has ended.
    fn check(&self) -> Result<(), Error> {
        if self.session.config.stop.load(Ordering::Relaxed) {
            return Err(Error::Failed("interrupted".to_owned()));
        }
        if self.poll_loop.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(Error::Failed("the thread that serves the other hosts has panicked".to_owned()));
        }
        Ok(())
    }

    pub(crate) fn fail(&mut self, reason: &str) {
        let session = &self.session;
        let is_interrupted = session.config.stop.load(Ordering::Relaxed);
        let mut shared = lock(&session.shared);
        if shared.ended.is_none() && !shared.closed {
            let after_ns = shared.begun.map(|begun| monotonic_ns() - begun);
            let failed = Some(reason.to_owned());
            let ended = Ended { host: session.config.roster.me().to_owned(), after_ns, failed };
            session.end_for_all(&mut shared, ended);
            if !is_interrupted {
                session.drain_late_peers(shared, self.opened);
            }
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.session.shared).ended.clone()
    }

    pub(crate) fn record(&self) -> Record {
        let shared = lock(&self.session.shared);
        let config = &self.session.config;
        Record {
            epoch_ns: shared.begun,
            local_epoch_ns: shared.begun,
            clocks: shared.begun.map(|begun| Clocks { start: Offset::none(begun), end: None }),
            ..Record::of_none(&config.roster, &config.run, shared.ended.clone())
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        lock(&self.session.shared).closed = true;
        self.session.waker.wake();
        if let Some(poll_loop) = self.poll_loop.take() {
            let _ = poll_loop.join();
        }
    }
}
