//! Participant of a run, each host but the coordinator: joins, measures the clock offset, and follows the coordinator's messages.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_host::clock::monotonic_ns;

use crate::connect::{Connected, connect};
use crate::poll;
use crate::sealed::{Opener, Sealer};
use crate::session::{POLL_INTERVAL, lock};
use crate::{
    Clocks, Ended, Error, Exchange, JoinConfig, LineBuffer, MOST_BYTES, Message, Offset, Record, Timeouts,
};

/// The run has not begun.
const NEVER: i64 = i64::MIN;

/// A host that is not the coordinator.
pub struct Participant {
    config: JoinConfig,
    link: Arc<Link>,
    inbox: Receiver<(Message, i64)>,
    receiver: Option<JoinHandle<()>>,
    clocks: Option<Clocks>,
    epoch_ns: Option<i64>,
}

/// Connection to the coordinator, shared by this host's threads.
struct Link {
    coordinator: String,
    writer: Mutex<Writer>,
    ended: Mutex<Option<Ended>>,
    closed: AtomicBool,
    begun_ns: AtomicI64,
    stop: Arc<AtomicBool>,
}

struct Writer {
    stream: TcpStream,
    sealer: Sealer,
}

/// The receiving side of the connection.
struct Reader {
    stream: TcpStream,
    input: LineBuffer,
    opener: Opener,
}

impl Participant {
    pub(crate) fn join(config: JoinConfig) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::Failed(format!("coordinator at {}: {error}", config.address));
        let Connected { stream, input, sealer, opener } = connect(&config)?;
        let reader = Reader { stream: stream.try_clone().map_err(failed)?, input, opener };
        let link = Arc::new(Link {
            coordinator: config.roster.coordinator().to_owned(),
            writer: Mutex::new(Writer { stream, sealer }),
            ended: Mutex::new(None),
            closed: AtomicBool::new(false),
            begun_ns: AtomicI64::new(NEVER),
            stop: Arc::clone(&config.stop),
        });
        let (sender, inbox) = channel();
        let (of_thread, timeouts) = (Arc::clone(&link), config.timeouts);
        let thread = thread::Builder::new().name("participant".to_owned());
        let receiver = thread.spawn(move || of_thread.receive(reader, &sender, &timeouts)).map_err(failed)?;
        Ok(Participant { config, link, inbox, receiver: Some(receiver), clocks: None, epoch_ns: None })
    }

    pub(crate) fn begin(&mut self) -> Result<i64, Error> {
        let start = self.measure_clock()?;
        let clocks = Clocks { start, end: None };
        self.link.say(&Message::Ready {});
        let epoch_ns = match self.next_message()?.0 {
            Message::Begin { epoch_ns } => epoch_ns,
            other => return Err(unexpected(&other)),
        };
        let local_ns = epoch_ns.saturating_sub(start.offset_ns);
        let left_ns = local_ns.saturating_sub(monotonic_ns());
        if left_ns <= 0 {
            return Err(Error::Failed(format!(
                "received the start message {:.1} ms after the start of the run",
                -left_ns as f64 / 1e6
            )));
        }
        (self.clocks, self.epoch_ns) = (Some(clocks), Some(epoch_ns));
        self.link.begun_ns.store(local_ns, Ordering::Relaxed);
        Ok(local_ns)
    }

    pub(crate) fn wait_for_clients(&mut self) -> Result<(), Error> {
        match self.next_message()?.0 {
            Message::Asked {} => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn end(&mut self) -> Result<Record, Error> {
        let end = self.measure_clock()?;
        if let Some(clocks) = &mut self.clocks {
            clocks.end = Some(end);
        }
        self.link.say(&Message::Done {});
        match self.next_message()?.0 {
            Message::End {} => {}
            other => return Err(unexpected(&other)),
        }
        self.link.close();
        Ok(self.record())
    }

    pub(crate) fn fail(&mut self, reason: &str) {
        // Later replies of the coordinator are not read.
        if !self.link.closed.swap(true, Ordering::Relaxed) {
            self.link.say(&Message::Failed { reason: crate::message::short(reason) });
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.link.ended).clone()
    }

    pub(crate) fn record(&self) -> Record {
        let begun = self.link.begun_ns.load(Ordering::Relaxed);
        Record {
            epoch_ns: self.epoch_ns,
            local_epoch_ns: (begun != NEVER).then_some(begun),
            clocks: self.clocks,
            ..Record::of_none(&self.config.roster, &self.config.run, self.ended())
        }
    }

    /// Offset of the coordinator's clock from this host's.
    fn measure_clock(&mut self) -> Result<Offset, Error> {
        let mut exchanges = Vec::new();
        for number in 0..self.config.timeouts.exchanges.max(1) {
            let sent_ns = self.link.ask(number);
            let (told, heard_ns) = self.next_message()?;
            let (replied, _) = self.next_message()?;
            match (told, replied) {
                (
                    Message::Told { number: told, received_ns },
                    Message::Replied { number: replied, replied_ns },
                ) if told == number && replied == number => {
                    exchanges.push(Exchange { sent_ns, received_ns, replied_ns, heard_ns });
                }
                (other, _) => return Err(unexpected(&other)),
            }
        }
        Offset::best(&exchanges)
            .ok_or_else(|| Error::Failed("the coordinator sent impossible clock readings".to_owned()))
    }

    /// The next message, and when it was received.
    fn next_message(&self) -> Result<(Message, i64), Error> {
        loop {
            match self.inbox.recv_timeout(POLL_INTERVAL) {
                Ok(received) => return Ok(received),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(ended) = self.ended() {
                        return Err(Error::Ended(ended));
                    }
                    if self.link.stop.load(Ordering::Relaxed) {
                        return Err(Error::Failed("interrupted".to_owned()));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(match self.ended() {
                        Some(ended) => Error::Ended(ended),
                        None => Error::Failed("the run is over".to_owned()),
                    });
                }
            }
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.link.close();
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}

impl Link {
    fn say(&self, message: &Message) {
        // The receiving thread detects a lost coordinator.
        let _ = lock(&self.writer).say(message);
    }

    /// Requests the coordinator's clock; returns the time of sending.
    fn ask(&self, number: u32) -> i64 {
        let mut writer = lock(&self.writer);
        let line = writer.sealer.seal(&Message::Ask { number });
        // The time of sealing is not part of the transit time.
        let sent_ns = monotonic_ns();
        let _ = writer.stream.write_all(&line);
        sent_ns
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = lock(&self.writer).stream.shutdown(Shutdown::Both);
    }

    /// Receives messages until the coordinator closes the connection, and sends heartbeats.
    fn receive(&self, mut reader: Reader, inbox: &Sender<(Message, i64)>, timeouts: &Timeouts) {
        let ended = self.receive_all(&mut reader, inbox, timeouts);
        if let (Some(ended), false) = (ended, self.closed.load(Ordering::Relaxed)) {
            *lock(&self.ended) = Some(ended);
            self.stop.store(true, Ordering::Relaxed);
            // The coordinator waits for this, for a limited time.
            let _ = lock(&self.writer).stream.shutdown(Shutdown::Both);
        }
    }

    /// As [`Self::receive`]; returns the host that ended the run early, or `None`.
    fn receive_all(
        &self,
        reader: &mut Reader,
        inbox: &Sender<(Message, i64)>,
        timeouts: &Timeouts,
    ) -> Option<Ended> {
        let (mut heard, mut heard_ns, mut last_beat) = (Instant::now(), monotonic_ns(), Instant::now());
        loop {
            while let Some(line) = match reader.input.next_line() {
                Ok(line) => line,
                Err(error) => return Some(self.lost(heard_ns, Some(error.to_string()))),
            } {
                match reader.opener.open(&line) {
                    Ok(Message::Beat {}) => {}
                    Ok(Message::Over { ended }) => return Some(ended),
                    Ok(message) => {
                        let is_last = message == Message::End {};
                        if inbox.send((message, heard_ns)).is_err() || is_last {
                            return None;
                        }
                    }
                    Err(reason) => return Some(self.lost(heard_ns, Some(reason))),
                }
            }
            let now = Instant::now();
            if now.duration_since(last_beat) >= timeouts.beat {
                last_beat = now;
                self.say(&Message::Beat {});
            }
            let silent = now.duration_since(heard);
            if silent >= timeouts.silence {
                return Some(self.lost(heard_ns, None));
            }
            let until_beat = timeouts.beat.saturating_sub(now.duration_since(last_beat));
            match reader.receive(until_beat.min(timeouts.silence - silent)) {
                Ok(None) => {}
                Ok(Some(at_ns)) => (heard, heard_ns) = (Instant::now(), at_ns),
                Err(_) => return Some(self.lost(monotonic_ns(), None)),
            }
        }
    }

    fn lost(&self, at_ns: i64, failed: Option<String>) -> Ended {
        let begun = self.begun_ns.load(Ordering::Relaxed);
        let after_ns = (begun != NEVER).then(|| at_ns - begun);
        Ended { host: self.coordinator.clone(), after_ns, failed }
    }
}

impl Writer {
    fn say(&mut self, message: &Message) -> io::Result<()> {
        let line = self.sealer.seal(message);
        self.stream.write_all(&line)
    }
}

impl Reader {
    /// Reads once, within a time limit; returns the time of arrival, or `None`.
    fn receive(&mut self, limit: Duration) -> io::Result<Option<i64>> {
        let mut entries = [poll::entry(&self.stream, false)];
        poll::wait(&mut entries, limit)?;
        if !poll::is_ready(&entries[0]) {
            return Ok(None);
        }
        let mut some = [0; MOST_BYTES];
        let read = self.stream.read(&mut some);
        // Before anything else: this timestamp measures clock offsets.
        let now_ns = monotonic_ns();
        match read {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.input.push(&some[..read]);
                Ok(Some(now_ns))
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn unexpected(message: &Message) -> Error {
    Error::Failed(format!("unexpected message from the coordinator: {message:?}"))
}
