//! Readiness checks of daemons.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::Identity;

/// A readiness check.
pub(crate) enum Question {
    Tcp(SocketAddr),
    Http(SocketAddr),
    Socket(PathBuf),
    Command(Vec<String>),
}

impl Question {
    fn is_answered(&self, namespace: Option<&Path>) -> Result<bool, Error> {
        let ask = || match self {
            Question::Tcp(address) => TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok(),
            Question::Http(address) => speaks_http(address).is_ok_and(|speaks| speaks),
            Question::Socket(path) => UnixStream::connect(path).is_ok(),
            Question::Command(words) => words.split_first().is_some_and(|(program, arguments)| {
                let mut command = Command::new(program);
                command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                command.status().is_ok_and(|status| status.success())
            }),
        };
        Ok(match namespace {
            Some(namespace) => weir_network::within(namespace, ask)?,
            None => ask(),
        })
    }

    /// Waits until the check succeeds.
    ///
    /// # Errors
    /// The process ends, or the time limit is reached; the error has the end of its log.
    pub(crate) fn wait(
        &self,
        identity: Identity,
        namespace: Option<&Path>,
        limit: Duration,
        name: &str,
        log: &Path,
    ) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            if !identity.is_alive() {
                return Err(Error::Failed(format!(
                    "daemon {name} exited before it was ready: {}",
                    last_words(log)
                )));
            }
            if self.is_answered(namespace)? {
                return Ok(());
            }
            if began.elapsed() > limit {
                let seconds = limit.as_secs();
                return Err(Error::Failed(format!(
                    "daemon {name} was not ready within {seconds} s: {}",
                    last_words(log)
                )));
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// Whether the listener answers HTTP, with any status: some servers listen before they can serve.
fn speaks_http(address: &SocketAddr) -> std::io::Result<bool> {
    let limit = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(b"HEAD / HTTP/1.0\r\n\r\n")?;
    let mut first = [0; 5];
    stream.read_exact(&mut first)?;
    Ok(first == *b"HTTP/")
}

/// The end of a log, on one line.
pub(crate) fn last_words(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(2000)..]).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(3)..] {
        [] => format!("it said nothing ({})", log.display()),
        last => format!("{} ({})", last.join(" / "), log.display()),
    }
}
