//! Connection to the coordinator, with mutual authentication by the token.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::message::other_version;
use crate::poll;
use crate::sealed::{Opener, Sealer};
use crate::token::{Handshake, Side, nonce};
use crate::{Ended, Error, JoinConfig, LineBuffer, MOST_BYTES, Message, VERSION};

/// Interval between two attempts.
const AGAIN: Duration = Duration::from_millis(100);

/// A connection on which both sides are authenticated.
pub(crate) struct Connected {
    pub(crate) stream: TcpStream,
    pub(crate) input: LineBuffer,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

/// Failure of an attempt.
enum Attempt {
    /// Another attempt may succeed.
    Again(String),
    Never(Error),
}

/// Connects to the coordinator, which may start later than this host, and joins the run.
///
/// # Errors
/// The coordinator does not listen, refuses this host, or is another program.
pub(crate) fn connect(config: &JoinConfig) -> Result<Connected, Error> {
    let JoinConfig { roster, address, timeouts, stop, .. } = config;
    let began = Instant::now();
    loop {
        let attempt = match TcpStream::connect_timeout(address, timeouts.silence) {
            Ok(stream) => introduce(config, stream),
            Err(_) => Err(Attempt::Again(String::new())),
        };
        let why = match attempt {
            Ok(connected) => return Ok(connected),
            Err(Attempt::Never(error)) => return Err(error),
            Err(Attempt::Again(why)) => why,
        };
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Failed("interrupted".to_owned()));
        }
        if began.elapsed() >= timeouts.patience {
            let host = roster.coordinator().to_owned();
            let lost = Error::Ended(Ended { host, after_ns: None, failed: None });
            return Err(if why.is_empty() { lost } else { failed(config, &why) });
        }
        thread::sleep(AGAIN);
    }
}

fn failed(config: &JoinConfig, what: &str) -> Error {
    Error::Failed(format!("coordinator at {}: {what}", config.address))
}

/// Handshake from this host's side.
fn introduce(config: &JoinConfig, stream: TcpStream) -> Result<Connected, Attempt> {
    let JoinConfig { roster, address, token, run, timeouts, .. } = config;
    let never = |what: String| Attempt::Never(failed(config, &what));
    let refused = |reason: &str| {
        let reason = format!("refused by {} ({address}): {reason}", roster.coordinator());
        Attempt::Never(Error::Refused(reason))
    };
    prepare(&stream, timeouts.silence).map_err(|error| never(error.to_string()))?;
    let mut talk = Talk { stream, input: LineBuffer::default(), until: Instant::now() + timeouts.silence };
    let coordinator_nonce = match Message::parse(&talk.line(config)?) {
        Ok(Message::Challenge { version: VERSION, nonce }) => nonce,
        Ok(Message::Challenge { version, .. }) => {
            let who = format!("the coordinator at {address}");
            return Err(Attempt::Never(Error::Refused(other_version(&who, version))));
        }
        Ok(Message::Refused { reason }) => return Err(refused(&reason)),
        _ => return Err(never("another program listens there".to_owned())),
    };
    let host_nonce = nonce().map_err(|error| never(error.to_string()))?;
    let host = roster.me();
    let handshake = Handshake { coordinator_nonce: &coordinator_nonce, host_nonce: &host_nonce, host, run };
    talk.say(&Message::Hello {
        version: VERSION,
        host: host.to_owned(),
        run: run.clone(),
        nonce: host_nonce.clone(),
        proof: token.proof(Side::Host, &handshake),
    })?;
    match Message::parse(&talk.line(config)?) {
        Ok(Message::Welcome { proof }) if token.is_proof(&proof, Side::Coordinator, &handshake) => {}
        Ok(Message::Welcome { .. }) => {
            return Err(never("it does not know the token: another program listens there".to_owned()));
        }
        Ok(Message::Refused { reason }) => return Err(refused(&reason)),
        _ => return Err(never("it did not accept this host".to_owned())),
    }
    let sealer = Sealer::new(&token.key(Side::Host, &handshake));
    let mut opener = Opener::new(&token.key(Side::Coordinator, &handshake));
    match opener.open(&talk.line(config)?).map_err(never)? {
        Message::Joined {} => Ok(Connected { stream: talk.stream, input: talk.input, sealer, opener }),
        Message::Over { ended } => Err(Attempt::Never(Error::Ended(ended))),
        Message::Refused { reason } => Err(refused(&reason)),
        _ => Err(never("it did not accept this host".to_owned())),
    }
}

fn prepare(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(silence))
}

/// Connection with a deadline, however slowly the other side sends.
struct Talk {
    stream: TcpStream,
    input: LineBuffer,
    until: Instant,
}

impl Talk {
    fn say(&mut self, message: &Message) -> Result<(), Attempt> {
        self.stream.write_all(&message.line()).map_err(|error| Attempt::Again(error.to_string()))
    }

    fn line(&mut self, config: &JoinConfig) -> Result<Vec<u8>, Attempt> {
        self.read_line().map_err(|error| match error.kind() {
            // The coordinator closes old connections in favour of newer ones.
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
                Attempt::Again("it closed the connection before this host had joined".to_owned())
            }
            _ => Attempt::Never(failed(config, &error.to_string())),
        })
    }

    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(line) = self.input.next_line()? {
                return Ok(line);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            let mut entries = [poll::entry(&self.stream, false)];
            poll::wait(&mut entries, left)?;
            if left.is_zero() {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer: another program listens there"));
            }
            if !poll::is_ready(&entries[0]) {
                continue;
            }
            let mut some = [0; MOST_BYTES];
            match self.stream.read(&mut some) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.input.push(&some[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
