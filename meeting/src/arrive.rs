//! Coming to the conductor.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::message::VERSION;
use crate::{Ended, Error, Invitation, Lines, Message};

/// How soon to knock again.
const AGAIN: Duration = Duration::from_millis(100);

/// A connection to the conductor, which may come later than this host.
pub(crate) fn connect(invitation: &Invitation) -> Result<TcpStream, Error> {
    let Invitation { company, address, manners, stop, .. } = invitation;
    let began = Instant::now();
    loop {
        match TcpStream::connect_timeout(address, manners.silence) {
            Ok(stream) => return Ok(stream),
            Err(_) if stop.load(Ordering::Relaxed) => return Err(Error::Failed("interrupted".to_owned())),
            Err(_) if began.elapsed() < manners.patience => thread::sleep(AGAIN),
            Err(_) => {
                let host = company.conductor().to_owned();
                return Err(Error::Ended(Ended { host, after_ns: None, failed: None }));
            }
        }
    }
}

/// Says who this host is, and that it knows the token.
///
/// # Errors
/// It is not let in, or somebody else listens there.
pub(crate) fn introduce(
    invitation: &Invitation,
    mut stream: &TcpStream,
    lines: &mut Lines<TcpStream>,
) -> Result<(), Error> {
    let Invitation { company, address, token, run, .. } = invitation;
    let failed = |what: String| Error::Failed(format!("conductor at {address}: {what}"));
    let nonce = match lines.next_message() {
        Ok(Some(Message::Challenge { version: VERSION, nonce })) => nonce,
        Ok(Some(Message::Challenge { version, .. })) => {
            return Err(Error::Refused(format!(
                "the conductor at {address} speaks version {version}, this host {VERSION}: install the same weir on both"
            )));
        }
        Ok(_) => return Err(failed("somebody else listens there".to_owned())),
        Err(error) => return Err(failed(error.to_string())),
    };
    let answer = token.answer(&nonce, company.me(), run);
    let hello = Message::Hello { host: company.me().to_owned(), run: run.clone(), answer };
    stream.write_all(&hello.line()).map_err(|error| failed(error.to_string()))?;
    match lines.next_message() {
        Ok(Some(Message::Welcome {})) => Ok(()),
        Ok(Some(Message::Over { ended })) => Err(Error::Ended(ended)),
        Ok(Some(Message::Refused { reason })) => {
            Err(Error::Refused(format!("not let in by {} ({address}): {reason}", company.conductor())))
        }
        Ok(_) => Err(failed("it did not let this host in".to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}
