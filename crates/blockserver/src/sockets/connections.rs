//! Connection limits of a server's socket: maximum numbers, and which connection is closed when one is reached.
//!
//! A newcomer is a connection before the end of its handshake. The number and time of newcomers are limited, and the oldest is
//! closed for a new one: silent connections exclude no client. A client after its handshake is never disconnected for being
//! idle; only one that has never sent a request is closed, and only when the limit of clients is reached.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::sockets::{Listening, Stream};

/// A client without a request for this long after its handshake may be closed when the limit is reached.
const QUIET: Duration = Duration::from_secs(10);
/// Time limit for a closed connection to end.
const GIVES_WAY_WITHIN: Duration = Duration::from_secs(1);
/// Interval between two attempts when the kernel gives no connection.
const REST: Duration = Duration::from_millis(50);
/// Minimum interval between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Connection limits of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Kind of the socket, for messages.
    pub what: &'static str,
    /// Maximum connections before the end of their handshake.
    pub newcomers: usize,
    /// Time for the handshake, if it is limited.
    pub handshake: Option<Duration>,
    /// Maximum clients after their handshake.
    pub clients: usize,
    /// Remedy at the limit, for messages.
    pub remedy: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Newcomer,
    /// Its handshake is done; it has sent no request.
    Quiet,
    Active,
    /// It was closed; its thread has not ended yet.
    Leaving,
}

struct Entry {
    number: u32,
    stream: Stream,
    phase: Phase,
    since: Instant,
}

/// The connections of a socket.
pub(crate) struct Gate {
    limits: Limits,
    entries: Mutex<Vec<Entry>>,
    left: Condvar,
    is_closed: AtomicBool,
    next: AtomicU32,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    last: Option<Instant>,
    left_out: u64,
}

/// Place of one connection, freed when dropped.
pub(crate) struct Place {
    gate: Arc<Gate>,
    number: u32,
    is_active: AtomicBool,
}

impl Gate {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Gate {
            limits,
            entries: Mutex::default(),
            left: Condvar::new(),
            is_closed: AtomicBool::new(false),
            next: AtomicU32::new(0),
            log: Mutex::default(),
        })
    }

    /// Serves each connection in its own thread until the gate is closed and one more connection has come.
    pub fn serve(
        self: &Arc<Self>,
        listener: &Listening,
        client: impl Fn(&Stream, &Place) + Clone + Send + 'static,
    ) {
        while !self.is_closed.load(Ordering::Acquire) {
            let accepted = listener.accept(self.next_deadline());
            self.end_late(Instant::now());
            match accepted {
                Ok(Some(stream)) if !self.is_closed.load(Ordering::Acquire) => {
                    self.take_in(stream, client.clone());
                }
                Ok(_) => {}
                // Descriptors may have run out: closing a newcomer frees one.
                Err(error) => {
                    if !self.end_one() {
                        self.note(&format!("cannot accept a connection: {error}"));
                        thread::sleep(REST);
                    }
                }
            }
        }
    }

    /// Ends all connections, and accepts no more.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.lock().iter().for_each(|entry| entry.stream.end());
    }

    fn take_in(self: &Arc<Self>, stream: Stream, client: impl Fn(&Stream, &Place) + Send + 'static) {
        let own = rustix::process::geteuid().as_raw();
        if let Some(peer) = stream.peer().filter(|peer| peer.uid != 0 && peer.uid != own) {
            return self.note(&format!(
                "process {} of user {} was refused: it is not this server's user",
                peer.pid, peer.uid
            ));
        }
        let Ok(held) = stream.try_clone() else {
            return self.note("no file descriptor is left for a connection");
        };
        if !self.make_room(self.limits.newcomers - 1) {
            return self.note("a connection was closed: too many closed connections have not ended yet");
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { number, stream: held, phase: Phase::Newcomer, since: Instant::now() };
        self.lock().push(entry);
        let place = Place { gate: Arc::clone(self), number, is_active: AtomicBool::new(false) };
        let thread = thread::Builder::new().name(format!("{}-client", self.limits.what.to_lowercase()));
        if let Err(error) = thread.spawn(move || client(&stream, &place)) {
            self.note(&format!("a connection was closed: {error}"));
        }
    }

    /// Closes the oldest newcomer if there are too many, and waits until it has ended; false if it does not end.
    fn make_room(&self, most: usize) -> bool {
        let until = Instant::now() + GIVES_WAY_WITHIN;
        let mut entries = self.lock();
        loop {
            let count = |phase| entries.iter().filter(|entry| entry.phase == phase).count();
            let (newcomers, leaving) = (count(Phase::Newcomer), count(Phase::Leaving));
            if newcomers + leaving <= most {
                return true;
            }
            if newcomers > most
                && let Some(oldest) = entries.iter_mut().find(|entry| entry.phase == Phase::Newcomer)
            {
                oldest.leave();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            entries = self.left.wait_timeout(entries, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes one newcomer, if there is any.
    fn end_one(&self) -> bool {
        let newcomers = self.lock().iter().filter(|entry| entry.phase == Phase::Newcomer).count();
        newcomers > 0 && self.make_room(newcomers - 1)
    }

    /// Time until the first newcomer's timeout.
    fn next_deadline(&self) -> Option<Duration> {
        let handshake = self.limits.handshake?;
        let entries = self.lock();
        let oldest = entries.iter().find(|entry| entry.phase == Phase::Newcomer)?;
        Some((oldest.since + handshake).saturating_duration_since(Instant::now()))
    }

    fn end_late(&self, now: Instant) {
        let Some(handshake) = self.limits.handshake else { return };
        let is_late = |entry: &&mut Entry| {
            entry.phase == Phase::Newcomer && now.duration_since(entry.since) >= handshake
        };
        let late = self.lock().iter_mut().filter(is_late).map(Entry::leave).count();
        if late > 0 {
            let limit_s = handshake.as_secs_f64();
            self.note(&format!("{late} connections were closed: no handshake within {limit_s:.0} s"));
        }
    }

    /// Writes to the log, limited in rate.
    pub fn note(&self, text: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if log.last.is_some_and(|last| now.duration_since(last) < LOG_INTERVAL) {
            log.left_out += 1;
            return;
        }
        let more =
            if log.left_out > 0 { format!(" ({} lines were left out)", log.left_out) } else { String::new() };
        *log = Log { last: Some(now), left_out: 0 };
        eprintln!("{}: {text}{more}", self.limits.what);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn leave(&mut self) {
        self.stream.end();
        self.phase = Phase::Leaving;
    }
}

impl Place {
    /// Number of the connection.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Ends the handshake: the connection becomes a client.
    ///
    /// # Errors
    /// The limit of clients is reached; the text has the remedy.
    pub fn settle(&self) -> Result<(), String> {
        let Limits { clients, remedy, .. } = self.gate.limits;
        let mut entries = self.gate.lock();
        let now = Instant::now();
        let settled = |entry: &&mut Entry| matches!(entry.phase, Phase::Quiet | Phase::Active);
        if entries.iter_mut().filter(settled).count() >= clients {
            let is_quiet =
                |entry: &&mut Entry| entry.phase == Phase::Quiet && now.duration_since(entry.since) >= QUIET;
            let Some(quiet) = entries.iter_mut().find(is_quiet) else {
                drop(entries);
                let full = format!("the limit of {clients} clients is reached: {remedy}");
                self.gate.note(&format!("a connection was closed: {full}"));
                return Err(full);
            };
            quiet.leave();
        }
        // A closed one stays closed.
        if let Some(own) =
            entries.iter_mut().find(|entry| entry.number == self.number && entry.phase == Phase::Newcomer)
        {
            (own.phase, own.since) = (Phase::Quiet, now);
        }
        Ok(())
    }

    /// Records a request of the client.
    pub fn activate(&self) {
        if self.is_active.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut entries = self.gate.lock();
        if let Some(own) =
            entries.iter_mut().find(|entry| entry.number == self.number && entry.phase == Phase::Quiet)
        {
            own.phase = Phase::Active;
        }
    }

    /// Writes to the log of the gate.
    pub fn note(&self, text: &str) {
        self.gate.note(text);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.lock().retain(|entry| entry.number != self.number);
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    const LIMITS: Limits = Limits {
        what: "TEST",
        newcomers: 4,
        handshake: Some(Duration::from_millis(300)),
        clients: 2,
        remedy: "raise it",
    };

    /// A server whose handshake is one byte; answers `+` to accepted clients and `-` to others, and echoes every byte.
    fn server(limits: Limits) -> (tempfile::TempDir, std::path::PathBuf, Arc<Gate>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = Listening::at_path(&path).unwrap();
        let gate = Gate::new(limits);
        let of_thread = Arc::clone(&gate);
        thread::spawn(move || {
            of_thread.serve(&listener, |stream, place| {
                use std::io::Write as _;
                let (mut reader, mut writer) = (stream, stream.try_clone().unwrap());
                let mut byte = [0];
                if reader.read_exact(&mut byte).is_err() {
                    return;
                }
                let is_in = place.settle().is_ok();
                let _ = writer.write_all(if is_in { b"+" } else { b"-" });
                while is_in && reader.read_exact(&mut byte).is_ok() {
                    place.activate();
                    let _ = writer.write_all(&byte);
                }
            });
        });
        (folder, path, gate)
    }

    fn connect(path: &std::path::Path) -> UnixStream {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn exchange(mut stream: &UnixStream) -> Option<u8> {
        use std::io::Write as _;
        let mut byte = [0];
        stream.write_all(b"x").ok()?;
        stream.read_exact(&mut byte).ok().map(|()| byte[0])
    }

    #[test]
    fn newcomers_give_way_and_have_their_time_only() {
        let (_folder, path, gate) = server(LIMITS);
        let first = connect(&path);
        assert_eq!(exchange(&first), Some(b'+'));
        let idle: Vec<UnixStream> = (0..300).map(|_| connect(&path)).collect();
        assert_eq!(exchange(&connect(&path)), Some(b'+'));
        assert!(gate.lock().len() <= LIMITS.newcomers + LIMITS.clients);
        assert_eq!(exchange(&first), Some(b'x'));
        // The last ones are disconnected at their time limit; clients after the handshake are not.
        let began = Instant::now();
        assert!(matches!((&idle[299]).read(&mut [0]), Ok(0) | Err(_)));
        assert!(began.elapsed() < Duration::from_secs(5));
        thread::sleep(Duration::from_millis(400));
        assert_eq!(exchange(&first), Some(b'x'));
        gate.close();
        assert_eq!(exchange(&first), None);
    }

    #[test]
    fn one_more_client_than_the_limit_is_told_so() {
        let (_folder, path, gate) = server(LIMITS);
        let clients = [connect(&path), connect(&path)];
        for client in &clients {
            assert_eq!(exchange(client), Some(b'+'));
            assert_eq!(exchange(client), Some(b'x'));
        }
        assert_eq!(exchange(&connect(&path)), Some(b'-'));
        let [one, other] = clients;
        drop(one);
        let until = Instant::now() + Duration::from_secs(5);
        while exchange(&connect(&path)) != Some(b'+') {
            assert!(Instant::now() < until);
        }
        assert_eq!(exchange(&other), Some(b'x'));
        gate.close();
    }

    #[test]
    fn what_is_no_socket_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        std::fs::write(&path, b"precious").unwrap();
        let Err(error) = Listening::at_path(&path) else { panic!("it listens") };
        assert!(error.to_string().contains("no socket"), "{error}");
        crate::sockets::remove_socket(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        std::fs::remove_file(&path).unwrap();
        drop(Listening::at_path(&path).unwrap());
        // One that a dead server left is replaced.
        Listening::at_path(&path).unwrap();
    }
}
