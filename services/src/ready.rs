//! Waiting until a service answers.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::Identity;

/// A question whose answer says that a service is ready.
pub(crate) enum Question {
    Tcp(SocketAddr),
    Socket(PathBuf),
    Command(Vec<String>),
}

impl Question {
    fn is_answered(&self, namespace: Option<&Path>) -> Result<bool, Error> {
        let ask = || match self {
            Question::Tcp(address) => TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok(),
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

    /// Waits until it is answered.
    ///
    /// # Errors
    /// The process ends, or the time is over; the last words of its log say why.
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
                    "service {name} ended before it was ready: {}",
                    last_words(log)
                )));
            }
            if self.is_answered(namespace)? {
                return Ok(());
            }
            if began.elapsed() > limit {
                let seconds = limit.as_secs();
                return Err(Error::Failed(format!(
                    "service {name} was not ready within {seconds} s: {}",
                    last_words(log)
                )));
            }
            sleep(Duration::from_millis(10));
        }
    }
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
