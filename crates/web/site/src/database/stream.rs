//! Unix or TCP socket with time limits.

use std::io::{BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::{Address, DatabaseError, Engine, Place};

/// Time limit of a statement; its connection is closed then. It is long enough for the indexes of a large table.
const LONGEST_ANSWER: Duration = Duration::from_secs(3600);
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Socket::Unix(socket) => socket.read(into),
            Socket::Tcp(socket) => socket.read(into),
        }
    }
}

/// A buffered connection; everything that fails marks it broken.
pub(super) struct Stream {
    socket: BufReader<Socket>,
    place: String,
    pub(super) broken: bool,
}

impl Stream {
    pub(super) fn connect(address: &Address) -> Result<Self, DatabaseError> {
        let io = |source| DatabaseError::Io { place: address.to_string(), source };
        let socket = match &address.place {
            Place::Socket(path) => {
                let socket = UnixStream::connect(socket_file(address.engine, path)).map_err(io)?;
                socket.set_read_timeout(Some(LONGEST_ANSWER)).map_err(io)?;
                Socket::Unix(socket)
            }
            Place::Host(host, port) => {
                let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host has no address");
                let mut found = None;
                for to in (host.as_str(), *port).to_socket_addrs().map_err(io)? {
                    match TcpStream::connect_timeout(&to, LONGEST_CONNECT) {
                        Ok(socket) => {
                            found = Some(socket);
                            break;
                        }
                        Err(error) => last = error,
                    }
                }
                let socket = found.ok_or(last).map_err(io)?;
                socket.set_nodelay(true).map_err(io)?;
                socket.set_read_timeout(Some(LONGEST_ANSWER)).map_err(io)?;
                Socket::Tcp(socket)
            }
        };
        Ok(Stream {
            socket: BufReader::with_capacity(32 << 10, socket),
            place: address.to_string(),
            broken: false,
        })
    }

    fn io(&mut self, source: std::io::Error) -> DatabaseError {
        self.broken = true;
        DatabaseError::Io { place: self.place.clone(), source }
    }

    /// Something that is not in the protocol came.
    pub(super) fn unexpected(&mut self, what: impl Into<String>) -> DatabaseError {
        self.broken = true;
        DatabaseError::Protocol(what.into())
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        let sent = match self.socket.get_mut() {
            Socket::Unix(socket) => socket.write_all(bytes),
            Socket::Tcp(socket) => socket.write_all(bytes),
        };
        sent.map_err(|error| self.io(error))
    }

    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<(), DatabaseError> {
        self.socket.read_exact(into).map_err(|error| self.io(error))
    }
}

/// PostgreSQL's sockets have a fixed name in a folder; the path may be either.
fn socket_file(engine: Engine, path: &std::path::Path) -> PathBuf {
    match engine {
        Engine::PostgreSql if path.is_dir() => path.join(".s.PGSQL.5432"),
        _ => path.to_owned(),
    }
}
