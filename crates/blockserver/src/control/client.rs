//! Client of a server's control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Answer, Command};
use crate::engine::scheduled::{Arrangement, ClassSpec, SchedulingStats};
use crate::error::Error;
use crate::state::State;
use crate::stats::Stats;

/// A connection to a server's control socket.
#[derive(Debug)]
pub struct Control {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
    timeout: Duration,
    /// Whether no command was sent yet: the server may close an unused connection.
    is_new: bool,
}

/// Timeout of a command: a server answers in well under a millisecond, except when it discards a large backing file.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Control {
    /// Connects to the server of a state.
    ///
    /// # Errors
    /// [`Error::System`] if no server listens.
    pub fn connect(state: &State) -> Result<Self, Error> {
        Self::connect_within(state, TIMEOUT)
    }

    pub(crate) fn connect_within(state: &State, timeout: Duration) -> Result<Self, Error> {
        let socket = state.socket.clone();
        let stream = open(&socket, timeout).map_err(Error::path("connect to", &socket))?;
        Ok(Self { stream: BufReader::new(stream), socket, timeout, is_new: true })
    }

    /// Turns service times on or off. Off: each request completes immediately, for formatting and filling. On: the model
    /// starts in its initial state.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer.
    pub fn timing(&mut self, on: bool) -> Result<(), Error> {
        self.ask(&Command::Timing { on }).map(|_| ())
    }

    /// Statistics since the server's start or the last reset; resets them if `reset`.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer.
    pub fn stats(&mut self, reset: bool) -> Result<Stats, Error> {
        match self.ask(&Command::Stats { reset })? {
            Answer::Stats(stats) => Ok(*stats),
            other => Err(Error::Refused(format!("unexpected answer to `stats`: {other:?}"))),
        }
    }

    /// Makes every byte zero and frees the memory. All data are lost: nothing may be mounted from the device.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer, [`Error::Refused`] if its backing cannot.
    pub fn discard(&mut self) -> Result<(), Error> {
        self.ask(&Command::Discard {}).map(|_| ())
    }

    /// Statistics of each class of a server with a scheduler.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer, [`Error::Refused`] if it has no policy.
    pub fn live(&mut self) -> Result<SchedulingStats, Error> {
        match self.ask(&Command::Live {})? {
            Answer::Live(stats) => Ok(*stats),
            other => Err(Error::Refused(format!("unexpected answer to `live`: {other:?}"))),
        }
    }

    /// Classes of a server with a scheduler, including the one of unattributed requests.
    ///
    /// # Errors
    /// As [`live`](Self::live).
    pub fn classes(&mut self) -> Result<Vec<ClassSpec>, Error> {
        match self.ask(&Command::Classes {})? {
            Answer::Classes(classes) => Ok(classes),
            other => Err(Error::Refused(format!("unexpected answer to `classes`: {other:?}"))),
        }
    }

    /// Adds a class, or changes the one of that name, during service. The scheduler is restarted with the waiting requests.
    ///
    /// # Errors
    /// [`Error::Refused`] if the class is invalid, or the scheduler refuses it: nothing has changed. [`Error::System`].
    pub fn set_class(&mut self, class: ClassSpec) -> Result<(), Error> {
        self.ask(&Command::SetClass { class: Box::new(class) }).map(|_| ())
    }

    /// Removes a class; its waiting requests go to the class of unattributed requests.
    ///
    /// # Errors
    /// As [`set_class`](Self::set_class).
    pub fn remove_class(&mut self, name: &str) -> Result<(), Error> {
        self.ask(&Command::RemoveClass { name: name.to_owned() }).map(|_| ())
    }

    /// Replaces the scheduler; waiting requests go to the new one.
    ///
    /// # Errors
    /// As [`set_class`](Self::set_class).
    pub fn set_policy(&mut self, policy: &str) -> Result<(), Error> {
        self.ask(&Command::SetPolicy { policy: policy.to_owned() }).map(|_| ())
    }

    /// Replaces scheduler, classes and queue depth, and resets models and statistics.
    ///
    /// # Errors
    /// [`Error::Refused`] if they do not fit together, or requests are outstanding: nothing has changed. [`Error::System`].
    pub fn arrange(&mut self, wanted: &Arrangement) -> Result<(), Error> {
        self.ask(&Command::Arrange { arrangement: Box::new(wanted.clone()) }).map(|_| ())
    }

    /// Active scheduler, classes and queue depth; the class of unattributed requests is one of the classes.
    ///
    /// # Errors
    /// As [`live`](Self::live).
    pub fn arrangement(&mut self) -> Result<Arrangement, Error> {
        match self.ask(&Command::Arrangement {})? {
            Answer::Arrangement(arrangement) => Ok(*arrangement),
            other => Err(Error::Refused(format!("unexpected answer to `arrangement`: {other:?}"))),
        }
    }

    /// Sets time 0 of models and schedulers to an instant of CLOCK_MONOTONIC, in ns, at which they are in their initial state.
    ///
    /// # Errors
    /// [`Error::Refused`] if service times are off, requests are outstanding or the instant is not near: nothing has changed.
    /// [`Error::System`].
    pub fn begin_at(&mut self, at_ns: u64) -> Result<(), Error> {
        self.ask(&Command::Begin { at_ns }).map(|_| ())
    }

    fn ask(&mut self, command: &Command) -> Result<Answer, Error> {
        let answer =
            self.exchange(command).map_err(Error::system("talk to the server on its control socket"))?;
        match answer {
            Answer::Error(message) => Err(Error::Refused(message)),
            answer => Ok(answer),
        }
    }

    fn exchange(&mut self, command: &Command) -> io::Result<Answer> {
        let mut line = serde_json::to_string(command)?;
        line.push('\n');
        let answer = match self.send(&line) {
            Err(error) if self.is_new && is_closed(&error) => {
                self.stream = BufReader::new(open(&self.socket, self.timeout)?);
                self.send(&line)?
            }
            answer => answer?,
        };
        self.is_new = false;
        Ok(serde_json::from_str(&answer)?)
    }

    fn send(&mut self, line: &str) -> io::Result<String> {
        self.stream.get_mut().write_all(line.as_bytes())?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        Ok(answer)
    }
}

fn open(socket: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}
