//! Poll loop of the coordinator: one thread for all connections.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_host::clock::monotonic_ns;

use crate::accept::{Authenticated, PendingConnections, printable};
use crate::connection::{Connection, Received};
use crate::poll;
use crate::sealed::{Opener, Sealer};
use crate::session::{Peer, Progress, Session, Shared, lock};
use crate::{Ended, Message};

/// Maximum wait: the stop flag is seen by then.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Time for sending last messages, and for hosts to close their side.
const LINGER: Duration = Duration::from_millis(500);
/// Pause of accepting when descriptors ran out.
const REST: Duration = Duration::from_millis(100);

/// Serves all connections until the session is closed.
pub(crate) struct PollLoop {
    session: Arc<Session>,
    listener: TcpListener,
    pending: PendingConnections,
    peers: Vec<Joined>,
    last_beat: Instant,
    accepts_from: Instant,
}

/// The connection of a host that has joined.
struct Joined {
    host: String,
    connection: Connection,
    sealer: Sealer,
    opener: Opener,
    heard_ns: i64,
}

/// Departure of a host.
struct Left {
    at_ns: i64,
    failed: Option<String>,
}

/// Sockets that are ready.
struct Ready {
    listener: bool,
    peers: Vec<bool>,
    pending: Vec<bool>,
}

impl PollLoop {
    pub(crate) fn new(session: Arc<Session>, listener: TcpListener) -> Self {
        let (pending, now) = (PendingConnections::new(session.config.timeouts.handshake), Instant::now());
        PollLoop { session, listener, pending, peers: Vec::new(), last_beat: now, accepts_from: now }
    }

    pub(crate) fn run(mut self) {
        while !lock(&self.session.shared).closed {
            let Ok(ready) = self.wait() else {
                // The kernel is short of memory.
                std::thread::sleep(REST);
                continue;
            };
            self.receive(&ready.peers);
            let now = Instant::now();
            for host in self.pending.receive(&ready.pending, &self.session.config.token, now) {
                self.join(host, now);
            }
            if ready.listener && !self.pending.accept(&self.listener, now) {
                self.accepts_from = now + REST;
            }
            self.pending.expire(now);
            self.send_waiting();
            self.beat(now);
            self.drop_silent();
        }
        self.close();
    }

    fn wait(&self) -> std::io::Result<Ready> {
        let now = Instant::now();
        let accepts = self.accepts_from <= now;
        let waker = self.session.waker.descriptor();
        let mut entries = vec![poll::entry(&waker, false)];
        let peers = self.peers.iter().map(|peer| &peer.connection);
        for connection in peers.chain(self.pending.connections()) {
            entries.push(poll::entry(connection, connection.has_output()));
        }
        if accepts {
            entries.push(poll::entry(&self.listener, false));
        }
        poll::wait(&mut entries, self.longest_wait(now))?;
        let mut is_ready: Vec<bool> = entries.iter().map(poll::is_ready).collect();
        let listener = accepts && is_ready.pop() == Some(true);
        if is_ready[0] {
            self.session.waker.clear();
        }
        let (peers, pending) = is_ready[1..].split_at(self.peers.len());
        Ok(Ready { listener, peers: peers.to_vec(), pending: pending.to_vec() })
    }

    fn longest_wait(&self, now: Instant) -> Duration {
        let beat = (!self.peers.is_empty()).then(|| self.last_beat + self.session.config.timeouts.beat);
        let rest = (self.accepts_from > now).then_some(self.accepts_from);
        let soonest = [self.pending.next_deadline(), beat, rest].into_iter().flatten().min();
        soonest.map_or(LONGEST_WAIT, |at| at.saturating_duration_since(now).min(LONGEST_WAIT))
    }

    /// Reads from the hosts that are ready; a host that leaves ends the run.
    fn receive(&mut self, is_ready: &[bool]) {
        for place in (0..self.peers.len()).rev().filter(|place| is_ready[*place]) {
            if let Err(left) = self.peers[place].receive(&self.session) {
                self.leave(place, left);
            }
        }
    }

    fn leave(&mut self, place: usize, left: Left) {
        let mut peer = self.peers.remove(place);
        let mut shared = lock(&self.session.shared);
        let after_ns = shared.begun.map(|begun| left.at_ns - begun);
        let ended = Ended { host: peer.host.clone(), after_ns, failed: left.failed };
        if ended.failed.is_some() {
            // If its line was modified in transit, it does not know yet.
            peer.say(&Message::Over { ended: ended.clone() });
            peer.connection.end_output();
        }
        self.session.end_for_all(&mut shared, ended);
    }

    /// Adds an authenticated host to the run, or refuses it with a reason.
    fn join(&mut self, mut host: Authenticated, now: Instant) {
        let session = Arc::clone(&self.session);
        let mut shared = lock(&session.shared);
        if let Some(reason) = self.obstacle(&host, &shared) {
            drop(shared);
            return self.pending.refuse_host(now, host, &reason);
        }
        if let Some(ended) = shared.ended.clone() {
            let reason = format!("host `{}` joined after the end of the run: {ended}", host.host);
            self.pending.note(now, host.connection.from.ip(), &reason);
            let _ = host.connection.send(&host.sealer.seal(&Message::Over { ended }));
            host.connection.end_output();
            shared.told.insert(host.host);
            return session.changed.notify_all();
        }
        if host.connection.send(&host.sealer.seal(&Message::Joined {})).is_err() {
            return;
        }
        shared.peers.insert(host.host.clone(), Peer { progress: Progress::Joined, outbox: Vec::new() });
        session.changed.notify_all();
        drop(shared);
        let Authenticated { connection, host, sealer, opener, .. } = host;
        let mut peer = Joined { host, connection, sealer, opener, heard_ns: monotonic_ns() };
        // It may have sent messages after its proof.
        let went_on = peer.take_lines(&session, peer.heard_ns);
        self.peers.push(peer);
        if let Err(left) = went_on {
            self.leave(self.peers.len() - 1, left);
        }
    }

    /// Why an authenticated host cannot join; `None` if it can.
    fn obstacle(&self, host: &Authenticated, shared: &Shared) -> Option<String> {
        let Authenticated { host, run, .. } = host;
        let config = &self.session.config;
        let name = printable(host);
        if *run != config.run {
            return Some(format!("host `{name}` asks for run {}, this is {}", printable(run), config.run));
        }
        if !config.roster.others().any(|name| name == host) {
            return Some(format!("host `{name}` does not take part in this run"));
        }
        shared.peers.contains_key(host).then(|| format!("host `{name}` has already joined"))
    }

    /// Sends the messages of the coordinator's own thread.
    fn send_waiting(&mut self) {
        let session = Arc::clone(&self.session);
        let mut shared = lock(&session.shared);
        for peer in &mut self.peers {
            for message in shared
                .peers
                .get_mut(&peer.host)
                .map(|peer| std::mem::take(&mut peer.outbox))
                .unwrap_or_default()
            {
                peer.say(&message);
            }
        }
    }

    fn beat(&mut self, now: Instant) {
        if now.duration_since(self.last_beat) >= self.session.config.timeouts.beat {
            self.last_beat = now;
            self.peers.iter_mut().for_each(|peer| peer.say(&Message::Beat {}));
        }
    }

    /// Marks a host as lost that has sent nothing for too long, at the time of its last message.
    fn drop_silent(&mut self) {
        let silence_ns = i64::try_from(self.session.config.timeouts.silence.as_nanos()).unwrap_or(i64::MAX);
        let since_ns = monotonic_ns().saturating_sub(silence_ns);
        for place in (0..self.peers.len()).rev() {
            let at_ns = self.peers[place].heard_ns;
            if at_ns < since_ns {
                self.leave(place, Left { at_ns, failed: None });
            }
        }
    }

    /// Sends buffered messages and waits until the hosts have closed their sides, both for a limited time.
    fn close(mut self) {
        self.send_waiting();
        let until = Instant::now() + LINGER;
        while !self.peers.is_empty() && Instant::now() < until {
            for peer in self.peers.iter().filter(|peer| !peer.connection.has_output()) {
                peer.connection.end_output();
            }
            let mut entries: Vec<_> = (self.peers.iter().map(|peer| &peer.connection))
                .map(|connection| poll::entry(connection, connection.has_output()))
                .collect();
            if poll::wait(&mut entries, until.saturating_duration_since(Instant::now())).is_err() {
                return;
            }
            let is_ready: Vec<bool> = entries.iter().map(poll::is_ready).collect();
            for place in (0..is_ready.len()).rev().filter(|place| is_ready[*place]) {
                let connection = &mut self.peers[place].connection;
                let is_broken = connection.flush().is_err();
                if is_broken || connection.discard() == Received::Closed {
                    self.peers.remove(place);
                }
            }
        }
    }
}

impl Joined {
    /// Reads once, and handles the host's messages.
    fn receive(&mut self, session: &Session) -> Result<(), Left> {
        match self.connection.receive() {
            Received::Some(received_ns) => {
                self.heard_ns = received_ns;
                self.take_lines(session, received_ns)?;
            }
            Received::Nothing => {}
            Received::Closed => return Err(Left { at_ns: monotonic_ns(), failed: None }),
        }
        self.connection.flush().map_err(|_| Left { at_ns: monotonic_ns(), failed: None })
    }

    fn take_lines(&mut self, session: &Session, received_ns: i64) -> Result<(), Left> {
        let broken = |reason: String| Left { at_ns: received_ns, failed: Some(reason) };
        while let Some(line) = self.connection.next_line().map_err(|error| broken(error.to_string()))? {
            let message = self.opener.open(&line).map_err(broken)?;
            self.act(session, message, received_ns)?;
        }
        Ok(())
    }

    fn act(&mut self, session: &Session, message: Message, received_ns: i64) -> Result<(), Left> {
        let progress = match message {
            Message::Ask { number } => {
                let told = self.sealer.seal(&Message::Told { number, received_ns });
                let replied_ns = monotonic_ns();
                let _ = self.connection.send(&told);
                self.say(&Message::Replied { number, replied_ns });
                return Ok(());
            }
            Message::Beat {} => return Ok(()),
            Message::Ready {} => Progress::Ready,
            Message::Done {} => Progress::Done,
            Message::Failed { reason } => return Err(Left { at_ns: received_ns, failed: Some(reason) }),
            _ => {
                let failed = Some("it sent a message that only the coordinator sends".to_owned());
                return Err(Left { at_ns: received_ns, failed });
            }
        };
        let mut shared = lock(&session.shared);
        if let Some(peer) = shared.peers.get_mut(&self.host) {
            peer.progress = progress;
        }
        session.notify_if_done(&mut shared);
        session.changed.notify_all();
        Ok(())
    }

    fn say(&mut self, message: &Message) {
        // Reading detects a lost host.
        let _ = self.connection.send(&self.sealer.seal(message));
    }
}
