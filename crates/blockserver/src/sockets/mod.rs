//! Sockets of a server: a Unix socket for its user only, or a port of the loopback interface.

pub(crate) mod connections;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;

/// A socket that listens.
pub(crate) enum Listening {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A connection.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Process at the other end of a Unix socket, at the time of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub pid: u32,
    pub uid: u32,
}

impl Listening {
    /// Listens at a path with mode 0600. A socket of a dead server is replaced; any other file stays.
    ///
    /// # Errors
    /// Another file has the name, or the socket cannot be made.
    pub fn at_path(path: &Path) -> io::Result<Self> {
        remove_socket(path)?;
        let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file that is no socket has this name. Move it away, or give another --state",
            ),
            _ => error,
        })?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Listening::Unix(listener))
    }

    /// Listens at a port.
    ///
    /// # Errors
    /// The port is not available.
    pub fn at_port(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Listening::Tcp(listener))
    }

    /// Waits for a connection; `None` at a timeout.
    ///
    /// # Errors
    /// The kernel refuses to accept a waiting connection.
    pub fn accept(&self, limit: Option<Duration>) -> io::Result<Option<Stream>> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        // An interrupted wait is seen below: nobody waits there.
        let _ = poll(&mut [PollFd::new(self, PollFlags::IN)], limit.as_ref());
        let stream = match self {
            Listening::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Listening::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match stream {
            Ok(stream) => {
                stream.prepare()?;
                Ok(Some(stream))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Port of a TCP socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Listening::Unix(_) => None,
            Listening::Tcp(listener) => listener.local_addr().ok(),
        }
    }
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listening::Unix(listener) => listener.as_fd(),
            Listening::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Removes a socket, if it exists; any other file of that name stays.
///
/// # Errors
/// The socket cannot be removed.
pub(crate) fn remove_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

impl Stream {
    fn prepare(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(false),
            Stream::Tcp(stream) => stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)),
        }
    }

    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    /// Limits the time of each write.
    pub fn set_write_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_write_timeout(Some(limit)),
            Stream::Tcp(stream) => stream.set_write_timeout(Some(limit)),
        }
    }

    /// Closes the connection: waiting reads and writes return.
    pub fn end(&self) {
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Process at the other end; `None` for TCP.
    pub fn peer(&self) -> Option<Peer> {
        let Stream::Unix(stream) = self else { return None };
        // Without credentials the other process is refused.
        let unknown = Peer { pid: 0, uid: u32::MAX };
        let known = |peer: UCred| Peer { pid: peer.pid.as_raw_pid() as u32, uid: peer.uid.as_raw() };
        Some(socket_peercred(stream).map_or(unknown, known))
    }
}

impl Read for &Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).read(bytes),
            Stream::Tcp(stream) => (&mut &*stream).read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(bytes),
            Stream::Tcp(stream) => stream.write_vectored(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
