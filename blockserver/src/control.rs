//! Talking to a running server: one JSON line to its socket, one JSON line back.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::state::State;
use crate::stats::Stats;

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Command {
    /// Switch the model off (requests take no time) or on.
    Timing { on: bool },
    /// What has been done; start counting anew if `reset`.
    Stats {
        #[serde(default)]
        reset: bool,
    },
    /// Forget all data: every byte is zero again.
    Discard,
}

/// What the server answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    Done,
    Stats(Box<Stats>),
    Error(String),
}

/// A connection to a server's control socket.
#[derive(Debug)]
pub struct Control {
    stream: BufReader<UnixStream>,
}

/// A server answers in well under a millisecond, unless it discards a large backing file.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Control {
    /// Connects to the server of a state.
    ///
    /// # Errors
    /// [`Error::System`] if nobody listens.
    pub fn connect(state: &State) -> Result<Self, Error> {
        Self::connect_within(state, TIMEOUT)
    }

    pub(crate) fn connect_within(state: &State, timeout: Duration) -> Result<Self, Error> {
        let open = || {
            let stream = UnixStream::connect(&state.socket)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            Ok(stream)
        };
        let stream = open().map_err(Error::path("connect to", &state.socket))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Switches the model's timing: off, every request is served at once, for formatting and filling; on, the model starts
    /// in its first state.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer.
    pub fn timing(&mut self, on: bool) -> Result<(), Error> {
        self.ask(&Command::Timing { on }).map(|_| ())
    }

    /// What the server has done since its start or the last reset; starts counting anew if `reset`.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer.
    pub fn stats(&mut self, reset: bool) -> Result<Stats, Error> {
        match self.ask(&Command::Stats { reset })? {
            Answer::Stats(stats) => Ok(*stats),
            other => Err(Error::Refused(format!("it answered {other:?} when asked for statistics"))),
        }
    }

    /// Makes every byte zero and gives the memory back. Whatever was on the device is gone, so nothing may be mounted from it.
    ///
    /// # Errors
    /// [`Error::System`] if the server does not answer, [`Error::Refused`] if its backing cannot.
    pub fn discard(&mut self) -> Result<(), Error> {
        self.ask(&Command::Discard).map(|_| ())
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
        self.stream.get_mut().write_all(line.as_bytes())?;
        line.clear();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        Ok(serde_json::from_str(&line)?)
    }
}
