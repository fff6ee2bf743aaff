//! Unauthenticated connections to the coordinator.
//!
//! Their number is limited, in total and from one address. Each is closed after the handshake timeout, however slowly it sends,
//! and the oldest is closed in favour of a new one. A host of the run needs one round trip: idle connections delay no host.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Received};
use crate::message::other_version;
use crate::refusal_log::RefusalLog;
use crate::sealed::{Opener, Sealer};
use crate::token::{Handshake, Side, nonce};
use crate::{Message, Token, VERSION};

/// Maximum unauthenticated connections.
pub(crate) const MOST_PENDING: usize = 128;
/// Maximum unauthenticated connections from one address.
pub(crate) const MOST_FROM_ONE_ADDRESS: usize = 32;
/// Maximum connections accepted before others are served.
const MOST_ACCEPTED_AT_ONCE: usize = 32;

/// An unauthenticated connection.
pub(crate) struct PendingConnection {
    connection: Connection,
    nonce: String,
    until: Instant,
}

/// All unauthenticated connections, the oldest first.
pub(crate) struct PendingConnections {
    all: Vec<PendingConnection>,
    handshake: Duration,
    log: RefusalLog,
}

/// An authenticated connection.
pub(crate) struct Authenticated {
    pub(crate) connection: Connection,
    pub(crate) host: String,
    pub(crate) run: String,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

/// Content of a valid hello message.
struct Proved {
    host: String,
    run: String,
    proof: String,
    sealer: Sealer,
    opener: Opener,
}

impl PendingConnections {
    pub(crate) fn new(handshake: Duration) -> Self {
        PendingConnections { all: Vec::new(), handshake, log: RefusalLog::new(Instant::now()) }
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.all.iter().map(|candidate| &candidate.connection)
    }

    /// Handshake deadline of the oldest connection.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.all.first().map(|candidate| candidate.until)
    }

    /// Accepts waiting connections. Returns false if the kernel has no file descriptor for one.
    pub(crate) fn accept(&mut self, listener: &TcpListener, now: Instant) -> bool {
        for _ in 0..MOST_ACCEPTED_AT_ONCE {
            match listener.accept() {
                Ok((stream, from)) => {
                    if let Ok(connection) = Connection::new(stream, from) {
                        self.take(connection, now);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                // The connection was closed before it was accepted.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                // Descriptors or memory ran out: closing the oldest unauthenticated connection frees some.
                Err(_) if self.all.is_empty() => return false,
                Err(_) => self.close(now, 0, "closed: the coordinator had no file descriptor left"),
            }
        }
        true
    }

    /// Makes room for a new unauthenticated connection, and sends the challenge.
    fn take(&mut self, mut connection: Connection, now: Instant) {
        let from = connection.from.ip();
        let of_address = self.all.iter().filter(|candidate| candidate.connection.from.ip() == from).count();
        if of_address >= MOST_FROM_ONE_ADDRESS {
            let oldest = self.all.iter().position(|candidate| candidate.connection.from.ip() == from);
            self.close(now, oldest.unwrap_or(0), "closed in favour of newer connections from its address");
        } else if self.all.len() >= MOST_PENDING {
            let oldest = self.oldest_of_most();
            self.close(now, oldest, "closed in favour of newer connections");
        }
        let Ok(nonce) = nonce() else { return };
        let challenge = Message::Challenge { version: VERSION, nonce: nonce.clone() };
        if connection.send(&challenge.line()).is_ok() {
            self.all.push(PendingConnection { connection, nonce, until: now + self.handshake });
        }
    }

    /// Index of the oldest unauthenticated connection from the address with the most.
    fn oldest_of_most(&self) -> usize {
        let mut of_address: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for candidate in &self.all {
            *of_address.entry(candidate.connection.from.ip()).or_default() += 1;
        }
        let most = of_address.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address);
        let is_of_most = |candidate: &PendingConnection| Some(candidate.connection.from.ip()) == most;
        self.all.iter().position(is_of_most).unwrap_or(0)
    }

    /// Closes a connection without a message: a host of the run tries again.
    fn close(&mut self, now: Instant, place: usize, reason: &str) {
        if place < self.all.len() {
            let candidate = self.all.remove(place);
            self.log.note(now, candidate.connection.from.ip(), reason);
        }
    }

    /// Closes connections whose handshake timed out.
    pub(crate) fn expire(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|until| until <= now) {
            let reason = format!("it did not prove the token within {:.1} s", self.handshake.as_secs_f64());
            self.refuse(now, 0, &reason);
        }
    }

    fn refuse(&mut self, now: Instant, place: usize, reason: &str) {
        let candidate = self.all.remove(place);
        self.log.note(now, candidate.connection.from.ip(), reason);
        candidate.connection.refuse(reason);
    }

    /// Refuses an authenticated connection that cannot join.
    pub(crate) fn refuse_host(&mut self, now: Instant, mut host: Authenticated, reason: &str) {
        self.log.note(now, host.connection.from.ip(), reason);
        let refused = Message::Refused { reason: crate::message::short(reason) };
        let _ = host.connection.send(&host.sealer.seal(&refused));
        host.connection.end_output();
    }

    /// Logs a refused host.
    pub(crate) fn note(&mut self, now: Instant, from: IpAddr, reason: &str) {
        self.log.note(now, from, reason);
    }

    /// Reads from ready connections, in the order of [`Self::connections`]; returns the authenticated ones.
    pub(crate) fn receive(&mut self, is_ready: &[bool], token: &Token, now: Instant) -> Vec<Authenticated> {
        let mut authenticated = Vec::new();
        // From the last on: removal keeps lower indexes valid.
        for place in (0..self.all.len().min(is_ready.len())).rev().filter(|place| is_ready[*place]) {
            let candidate = &mut self.all[place];
            let _ = candidate.connection.flush();
            let received = candidate.connection.receive();
            match candidate.connection.next_line() {
                Ok(Some(line)) => match authenticate(&line, &candidate.nonce, token) {
                    Ok(proved) => authenticated.extend(self.welcome(place, proved)),
                    Err(reason) => self.refuse(now, place, &reason),
                },
                Err(error) => self.refuse(now, place, &error.to_string()),
                Ok(None) if received == Received::Closed => {
                    self.close(now, place, "it closed the connection before it proved the token");
                }
                Ok(None) => {}
            }
        }
        authenticated
    }

    fn welcome(&mut self, place: usize, proved: Proved) -> Option<Authenticated> {
        let PendingConnection { mut connection, .. } = self.all.remove(place);
        let Proved { host, run, proof, sealer, opener } = proved;
        connection.send(&Message::Welcome { proof }.line()).ok()?;
        Some(Authenticated { connection, host, run, sealer, opener })
    }
}

/// Checks a hello message; the error says what is wrong.
fn authenticate(line: &[u8], coordinator_nonce: &str, token: &Token) -> Result<Proved, String> {
    match Message::version_of_hello(line) {
        Some(VERSION) => {}
        Some(other) => return Err(other_version("it", other)),
        None => return Err("it sent no valid hello message".to_owned()),
    }
    let Ok(Message::Hello { host, run, nonce, proof, .. }) = Message::parse(line) else {
        return Err("it sent no valid hello message".to_owned());
    };
    let handshake = Handshake { coordinator_nonce, host_nonce: &nonce, host: &host, run: &run };
    if !token.is_proof(&proof, Side::Host, &handshake) {
        // The name is not authenticated, but it helps to find the host.
        return Err(format!("host `{}` has another token", printable(&host)));
    }
    let proof = token.proof(Side::Coordinator, &handshake);
    let sealer = Sealer::new(&token.key(Side::Coordinator, &handshake));
    let opener = Opener::new(&token.key(Side::Host, &handshake));
    Ok(Proved { host, run, proof, sealer, opener })
}

/// Received text, escaped and cut for a message.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}
