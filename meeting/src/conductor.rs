//! The first client: lets the others in, names the beginning, and notices who is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::message::VERSION;
use crate::token::nonce;
use crate::{
    Clocks, Company, Ended, Error, Lines, Manners, Message, Offset, Record, Role, Token, monotonic_ns,
};

/// How often the door is looked at, and waiting threads look whether all is over.
const GLANCE: Duration = Duration::from_millis(20);
/// After a run that was over before all had come, who comes so long after the door was opened is still told.
const LATE: Duration = Duration::from_secs(20);

/// The part of the host that conducts.
pub struct Conductor {
    hall: Arc<Hall>,
    opened: Instant,
    threads: Vec<JoinHandle<()>>,
}

/// What the conductor's threads share.
struct Hall {
    company: Company,
    token: Token,
    run: String,
    manners: Manners,
    stop: Arc<AtomicBool>,
    room: Mutex<Room>,
    changed: Condvar,
}

#[derive(Default)]
struct Room {
    seats: BTreeMap<String, Seat>,
    begun: Option<i64>,
    /// This host's own part is done.
    done: bool,
    ended: Option<Ended>,
    /// Who came too late, and was told so.
    told: BTreeSet<String>,
    /// Nobody is waited for any more.
    closed: bool,
}

struct Seat {
    writer: Arc<Mutex<TcpStream>>,
    progress: Progress,
    heard_ns: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Here,
    Ready,
    Done,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that fell leaves nothing half done here: each change is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(writer: &Mutex<TcpStream>, message: &Message) -> std::io::Result<()> {
    lock(writer).write_all(&message.line())
}

impl Conductor {
    pub(crate) fn open(
        company: &Company,
        address: SocketAddr,
        token: &Token,
        run: &str,
        manners: Manners,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let refuse = |error: std::io::Error| Error::Refused(format!("cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let hall = Arc::new(Hall {
            company: company.clone(),
            token: token.clone(),
            run: run.to_owned(),
            manners,
            stop: Arc::clone(stop),
            room: Mutex::default(),
            changed: Condvar::new(),
        });
        let (door, beats) = (Arc::clone(&hall), Arc::clone(&hall));
        let threads =
            vec![thread::spawn(move || door.keep_door(&listener)), thread::spawn(move || beats.beat())];
        Ok(Conductor { hall, opened: Instant::now(), threads })
    }

    pub(crate) fn begin(&mut self) -> Result<i64, Error> {
        let hall = &self.hall;
        let mut room = lock(&hall.room);
        loop {
            if let Some(ended) = room.ended.clone() {
                hall.see_off(room, self.opened);
                return Err(Error::Ended(ended));
            }
            if hall.stop.load(Ordering::Relaxed) {
                return Err(Error::Failed("interrupted".to_owned()));
            }
            let absent = hall.company.others().find(|name| !room.seats.contains_key(*name));
            match absent {
                Some(host) if self.opened.elapsed() > hall.manners.patience => {
                    let ended = Ended { host: host.to_owned(), after_ns: None, failed: None };
                    hall.end_for_all(&mut room, ended.clone());
                    return Err(Error::Ended(ended));
                }
                None if room.seats.values().all(|seat| seat.progress >= Progress::Ready) => break,
                _ => {}
            }
            room = hall.wait(room);
        }
        let lead_ns = i64::try_from(hall.manners.lead.as_nanos()).unwrap_or(0);
        let epoch_ns = monotonic_ns() + lead_ns;
        room.begun = Some(epoch_ns);
        Hall::tell_all(&room, &Message::Begin { epoch_ns });
        Ok(epoch_ns)
    }

    pub(crate) fn end(&mut self) -> Result<Record, Error> {
        {
            let hall = &self.hall;
            let mut room = lock(&hall.room);
            room.done = true;
            hall.look_round(&room);
            loop {
                if let Some(ended) = &room.ended {
                    return Err(Error::Ended(ended.clone()));
                }
                if hall.stop.load(Ordering::Relaxed) {
                    return Err(Error::Failed("interrupted".to_owned()));
                }
                if room.seats.values().all(|seat| seat.progress == Progress::Done) {
                    break;
                }
                room = hall.wait(room);
            }
            room.closed = true;
            Hall::tell_all(&room, &Message::End {});
        }
        Ok(self.record())
    }

    pub(crate) fn fail(&mut self, reason: &str) {
        let hall = &self.hall;
        let is_interrupted = hall.stop.load(Ordering::Relaxed);
        let mut room = lock(&hall.room);
        if room.ended.is_none() && !room.closed {
            let after_ns = room.begun.map(|begun| monotonic_ns() - begun);
            let failed = Some(reason.to_owned());
            let ended = Ended { host: hall.company.me().to_owned(), after_ns, failed };
            hall.end_for_all(&mut room, ended);
            if !is_interrupted {
                hall.see_off(room, self.opened);
            }
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.hall.room).ended.clone()
    }

    pub(crate) fn record(&self) -> Record {
        let room = lock(&self.hall.room);
        Record {
            host: self.hall.company.me().to_owned(),
            role: Role::Client,
            client: self.hall.company.client(),
            run: self.hall.run.clone(),
            epoch_ns: room.begun,
            local_epoch_ns: room.begun,
            clocks: room.begun.map(|begun| Clocks { start: Offset::none(begun), end: None }),
            ended: room.ended.clone(),
        }
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        {
            let mut room = lock(&self.hall.room);
            room.closed = true;
            for seat in room.seats.values() {
                // Writing only: what was said last still reaches the other side, which then closes.
                let _ = lock(&seat.writer).shutdown(Shutdown::Write);
            }
        }
        self.hall.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Hall {
    /// Waits for a change, but not long: `stop` is set without one.
    fn wait<'a>(&self, room: MutexGuard<'a, Room>) -> MutexGuard<'a, Room> {
        self.changed.wait_timeout(room, GLANCE).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for those who have not come yet, so that they hear why there is no run; not for long.
    fn see_off(&self, mut room: MutexGuard<'_, Room>, opened: Instant) {
        let is_there = |room: &Room, name: &str| room.seats.contains_key(name) || room.told.contains(name);
        while opened.elapsed() < LATE.min(self.manners.patience)
            && !self.company.others().all(|name| is_there(&room, name))
        {
            room = self.wait(room);
        }
    }

    fn is_closed(&self) -> bool {
        lock(&self.room).closed
    }

    fn tell_all(room: &Room, message: &Message) {
        for seat in room.seats.values() {
            // Whoever cannot be told is found to be lost by its reader.
            let _ = say(&seat.writer, message);
        }
    }

    /// The first end is the one that counts.
    fn end_for_all(&self, room: &mut Room, ended: Ended) {
        if room.ended.is_none() && !room.closed {
            Self::tell_all(room, &Message::Over { ended: ended.clone() });
            room.ended = Some(ended);
            self.stop.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    /// Tells the servers once all clients are done.
    fn look_round(&self, room: &Room) {
        let is_busy = |(name, seat): (&String, &Seat)| {
            self.company.role(name) == Some(Role::Client) && seat.progress != Progress::Done
        };
        if room.done && !room.seats.iter().any(is_busy) {
            for (name, seat) in &room.seats {
                if self.company.role(name) == Some(Role::Server) && seat.progress == Progress::Ready {
                    let _ = say(&seat.writer, &Message::Asked {});
                }
            }
        }
    }

    fn beat(&self) {
        let mut last = Instant::now();
        while !self.is_closed() {
            thread::sleep(GLANCE);
            if last.elapsed() >= self.manners.beat {
                last = Instant::now();
                let writers: Vec<_> =
                    lock(&self.room).seats.values().map(|seat| Arc::clone(&seat.writer)).collect();
                for writer in writers {
                    let _ = say(&writer, &Message::Beat {});
                }
            }
        }
    }

    fn keep_door(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_closed() {
            match listener.accept() {
                Ok((stream, from)) => {
                    let hall = Arc::clone(self);
                    // Not waited for: it ends with its connection.
                    thread::spawn(move || hall.receive(stream, from));
                }
                Err(_) => thread::sleep(GLANCE),
            }
        }
    }

    /// One connection, from the first word to the last.
    fn receive(&self, stream: TcpStream, from: SocketAddr) {
        let silence = Some(self.manners.silence);
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.set_read_timeout(silence))
            .and_then(|()| stream.set_write_timeout(silence))
            .and_then(|()| stream.try_clone());
        let Ok(reader) = prepared else { return };
        let mut lines = Lines::new(reader);
        let writer = Arc::new(Mutex::new(stream));
        match self.let_in(&mut lines, &writer) {
            Ok(host) => self.listen(&host, &mut lines, &writer),
            Err(reason) => {
                eprintln!("{} was not let in: {reason}", from.ip());
                let _ = say(&writer, &Message::Refused { reason });
            }
        }
    }

    /// Who it is, if that can be believed; or why not.
    fn let_in(&self, lines: &mut Lines<TcpStream>, writer: &Arc<Mutex<TcpStream>>) -> Result<String, String> {
        let nonce = nonce().map_err(|error| error.to_string())?;
        let challenge = Message::Challenge { version: VERSION, nonce: nonce.clone() };
        say(writer, &challenge).map_err(|error| error.to_string())?;
        let (host, run, answer) = match lines.next_message() {
            Ok(Some(Message::Hello { host, run, answer })) => (host, run, answer),
            Ok(_) => return Err("it did not say who it is".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if !self.token.is_answer(&answer, &nonce, &host, &run) {
            // The name is only what somebody claims, but it tells which host to look at.
            return Err(format!("host `{}` has another token", printable(&host)));
        }
        if run != self.run {
            return Err(format!(
                "host `{}` came for run {}, this is {}",
                printable(&host),
                printable(&run),
                self.run
            ));
        }
        if !self.company.others().any(|name| name == host) {
            return Err(format!("host `{}` does not take part in this run", printable(&host)));
        }
        let mut room = lock(&self.room);
        if room.seats.contains_key(&host) {
            return Err(format!("host `{host}` is here already"));
        }
        if let Some(ended) = room.ended.clone() {
            let reason = format!("host `{host}` came when the run was over: {ended}");
            let _ = say(writer, &Message::Over { ended });
            room.told.insert(host);
            self.changed.notify_all();
            return Err(reason);
        }
        say(writer, &Message::Welcome {}).map_err(|error| error.to_string())?;
        let seat = Seat { writer: Arc::clone(writer), progress: Progress::Here, heard_ns: monotonic_ns() };
        room.seats.insert(host.clone(), seat);
        self.changed.notify_all();
        Ok(host)
    }

    /// Answers a host until it goes.
    fn listen(&self, host: &str, lines: &mut Lines<TcpStream>, writer: &Mutex<TcpStream>) {
        loop {
            let said = lines.next_message();
            let received_ns = monotonic_ns();
            let mut room = lock(&self.room);
            let heard_ns = room.seats.get(host).map_or(received_ns, |seat| seat.heard_ns);
            let since_begin = |begun: Option<i64>, at_ns: i64| begun.map(|begun| at_ns - begun);
            let (after_ns, failed) = match said {
                Ok(Some(message)) => {
                    if let Some(seat) = room.seats.get_mut(host) {
                        seat.heard_ns = received_ns;
                        match message {
                            Message::Ready {} => seat.progress = Progress::Ready,
                            Message::Done {} => seat.progress = Progress::Done,
                            _ => {}
                        }
                    }
                    match message {
                        Message::Beat {} => continue,
                        Message::Ready {} => {
                            self.changed.notify_all();
                            continue;
                        }
                        Message::Done {} => {
                            self.look_round(&room);
                            self.changed.notify_all();
                            continue;
                        }
                        Message::Ask { sent_ns } => {
                            drop(room);
                            let mut to = lock(writer);
                            let told = Message::Told { sent_ns, received_ns, replied_ns: monotonic_ns() };
                            let _ = to.write_all(&told.line());
                            continue;
                        }
                        Message::Failed { reason } => (since_begin(room.begun, received_ns), Some(reason)),
                        _ => (
                            since_begin(room.begun, received_ns),
                            Some("it said what a host does not say to the conductor".to_owned()),
                        ),
                    }
                }
                // Its connection ended now; of a silent one the last word counts.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    (since_begin(room.begun, heard_ns), None)
                }
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    (since_begin(room.begun, received_ns), Some(error.to_string()))
                }
                Ok(None) | Err(_) => (since_begin(room.begun, received_ns), None),
            };
            self.end_for_all(&mut room, Ended { host: host.to_owned(), after_ns, failed });
            return;
        }
    }
}

/// What somebody sent, fit for a message.
fn printable(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}
