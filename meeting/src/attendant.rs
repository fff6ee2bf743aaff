//! Every host but the first client: comes, learns the conductor's clock, and does as it is told.

use std::io::{ErrorKind, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::arrive::{connect, introduce};
use crate::{Clocks, Ended, Error, Exchange, Invitation, Lines, Message, Offset, Record, monotonic_ns};

/// How often waiting threads look whether all is over.
const GLANCE: Duration = Duration::from_millis(20);
/// The run has not begun.
const NEVER: i64 = i64::MIN;

/// The part of a host that does not conduct.
pub struct Attendant {
    invitation: Invitation,
    line: Arc<Line>,
    inbox: Receiver<(Message, i64)>,
    threads: Vec<JoinHandle<()>>,
    clocks: Option<Clocks>,
    epoch_ns: Option<i64>,
}

/// The connection to the conductor, as its threads share it.
struct Line {
    conductor: String,
    writer: Mutex<TcpStream>,
    ended: Mutex<Option<Ended>>,
    closed: AtomicBool,
    begun_ns: AtomicI64,
    stop: Arc<AtomicBool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Attendant {
    pub(crate) fn come(invitation: Invitation) -> Result<Self, Error> {
        let Invitation { address, manners, .. } = invitation;
        let failed = |error: std::io::Error| Error::Failed(format!("conductor at {address}: {error}"));
        let stream = connect(&invitation)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(manners.silence)).map_err(failed)?;
        stream.set_write_timeout(Some(manners.silence)).map_err(failed)?;
        let mut lines = Lines::new(stream.try_clone().map_err(failed)?);
        introduce(&invitation, &stream, &mut lines)?;
        let line = Arc::new(Line {
            conductor: invitation.company.conductor().to_owned(),
            writer: Mutex::new(stream),
            ended: Mutex::new(None),
            closed: AtomicBool::new(false),
            begun_ns: AtomicI64::new(NEVER),
            stop: Arc::clone(&invitation.stop),
        });
        let (sender, inbox) = channel();
        let (ears, heart) = (Arc::clone(&line), Arc::clone(&line));
        let threads = vec![
            thread::spawn(move || ears.listen(lines, &sender)),
            thread::spawn(move || heart.beat(manners.beat)),
        ];
        Ok(Attendant { invitation, line, inbox, threads, clocks: None, epoch_ns: None })
    }

    pub(crate) fn begin(&mut self) -> Result<i64, Error> {
        let start = self.ask_the_time()?;
        let clocks = Clocks { start, end: None };
        self.line.say(&Message::Ready {});
        let epoch_ns = match self.hear()?.0 {
            Message::Begin { epoch_ns } => epoch_ns,
            other => return Err(unexpected(&other)),
        };
        let local_ns = epoch_ns.saturating_sub(start.offset_ns);
        let left_ns = local_ns.saturating_sub(monotonic_ns());
        if left_ns <= 0 {
            return Err(Error::Failed(format!(
                "heard of the beginning {:.1} ms after it",
                -left_ns as f64 / 1e6
            )));
        }
        (self.clocks, self.epoch_ns) = (Some(clocks), Some(epoch_ns));
        self.line.begun_ns.store(local_ns, Ordering::Relaxed);
        Ok(local_ns)
    }

    pub(crate) fn wait_for_clients(&mut self) -> Result<(), Error> {
        match self.hear()?.0 {
            Message::Asked {} => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn end(&mut self) -> Result<Record, Error> {
        let end = self.ask_the_time()?;
        if let Some(clocks) = &mut self.clocks {
            clocks.end = Some(end);
        }
        self.line.say(&Message::Done {});
        match self.hear()?.0 {
            Message::End {} => {}
            other => return Err(unexpected(&other)),
        }
        self.line.closed.store(true, Ordering::Relaxed);
        Ok(self.record())
    }

    pub(crate) fn fail(&mut self, reason: &str) {
        if !self.line.closed.load(Ordering::Relaxed) {
            // Longer ones would not be read.
            let reason = reason.chars().take(500).collect();
            self.line.say(&Message::Failed { reason });
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.line.ended).clone()
    }

    pub(crate) fn record(&self) -> Record {
        let begun = self.line.begun_ns.load(Ordering::Relaxed);
        Record {
            epoch_ns: self.epoch_ns,
            local_epoch_ns: (begun != NEVER).then_some(begun),
            clocks: self.clocks,
            ..Record::of_none(&self.invitation.company, &self.invitation.run, self.ended())
        }
    }

    /// How far the conductor's clock is ahead.
    fn ask_the_time(&mut self) -> Result<Offset, Error> {
        let mut exchanges = Vec::new();
        for _ in 0..self.invitation.manners.exchanges.max(1) {
            let sent_ns = monotonic_ns();
            self.line.say(&Message::Ask { sent_ns });
            match self.hear()? {
                (Message::Told { sent_ns: asked_ns, received_ns, replied_ns }, heard_ns)
                    if asked_ns == sent_ns =>
                {
                    exchanges.push(Exchange { sent_ns, received_ns, replied_ns, heard_ns });
                }
                (other, _) => return Err(unexpected(&other)),
            }
        }
        Offset::best(&exchanges)
            .ok_or_else(|| Error::Failed("the conductor's clock gave times that cannot be".to_owned()))
    }

    /// The next message, and when it came.
    fn hear(&self) -> Result<(Message, i64), Error> {
        loop {
            match self.inbox.recv_timeout(GLANCE) {
                Ok(heard) => return Ok(heard),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(ended) = self.ended() {
                        return Err(Error::Ended(ended));
                    }
                    if self.line.stop.load(Ordering::Relaxed) {
                        return Err(Error::Failed("interrupted".to_owned()));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(match self.ended() {
                        Some(ended) => Error::Ended(ended),
                        None => Error::Failed("the meeting is over".to_owned()),
                    });
                }
            }
        }
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.line.closed.store(true, Ordering::Relaxed);
        let _ = lock(&self.line.writer).shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Line {
    fn say(&self, message: &Message) {
        // A conductor that cannot be told is found to be lost by the thread that listens.
        let _ = lock(&self.writer).write_all(&message.line());
    }

    fn beat(&self, every: Duration) {
        let mut last = Instant::now();
        while !self.closed.load(Ordering::Relaxed) && lock(&self.ended).is_none() {
            thread::sleep(GLANCE);
            if last.elapsed() >= every {
                last = Instant::now();
                self.say(&Message::Beat {});
            }
        }
    }

    /// Passes on what the conductor says until it goes.
    fn listen(&self, mut lines: Lines<TcpStream>, inbox: &Sender<(Message, i64)>) {
        let mut last_ns = monotonic_ns();
        let ended = loop {
            let said = lines.next_message();
            let heard_ns = monotonic_ns();
            let lost = |at_ns: i64| {
                let begun = self.begun_ns.load(Ordering::Relaxed);
                let after_ns = (begun != NEVER).then(|| at_ns - begun);
                Ended { host: self.conductor.clone(), after_ns, failed: None }
            };
            match said {
                Ok(Some(Message::Beat {})) => {}
                Ok(Some(Message::Over { ended })) => break ended,
                Ok(Some(message)) => {
                    let is_last = message == Message::End {};
                    if inbox.send((message, heard_ns)).is_err() || is_last {
                        return;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    break lost(last_ns);
                }
                Ok(None) | Err(_) => break lost(heard_ns),
            }
            last_ns = heard_ns;
        };
        if !self.closed.load(Ordering::Relaxed) {
            *lock(&self.ended) = Some(ended);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn unexpected(message: &Message) -> Error {
    Error::Failed(format!("the conductor said {message:?} where it should not"))
}
