//! Connection of the poll loop: never blocks, and buffers a bounded number of bytes.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use weir_host::clock::monotonic_ns;

use crate::{LineBuffer, MOST_BYTES, Message};

/// Maximum bytes buffered for a host that does not read: far more than one burst of messages.
const MOST_WAITING_BYTES: usize = 64 << 10;

pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) from: SocketAddr,
    input: LineBuffer,
    output: Vec<u8>,
}

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// Bytes, received at this time in ns.
    Some(i64),
    /// No bytes now.
    Nothing,
    /// The other side has closed the connection, or it is broken.
    Closed,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, from: SocketAddr) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, from, input: LineBuffer::default(), output: Vec::new() })
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Reads once: one connection does not delay the others.
    pub(crate) fn receive(&mut self) -> Received {
        let mut some = [0; MOST_BYTES];
        let read = self.stream.read(&mut some);
        // Before anything else: this timestamp measures clock offsets.
        let now_ns = monotonic_ns();
        match read {
            Ok(0) => Received::Closed,
            Ok(read) => {
                self.input.push(&some[..read]);
                Received::Some(now_ns)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Received::Nothing
            }
            Err(_) => Received::Closed,
        }
    }

    /// Reads once, and discards the bytes.
    pub(crate) fn discard(&mut self) -> Received {
        let received = self.receive();
        self.input = LineBuffer::default();
        received
    }

    /// As [`LineBuffer::next_line`].
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.input.next_line()
    }

    /// Sends bytes, now or as soon as the other side reads.
    ///
    /// # Errors
    /// The connection is broken, or the other side does not read.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.output.len() + bytes.len() > MOST_WAITING_BYTES {
            return Err(ErrorKind::TimedOut.into());
        }
        self.output.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends buffered bytes, as far as the other side reads.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends why the connection ends, if the other side reads, and closes it.
    pub(crate) fn refuse(mut self, reason: &str) {
        let _ = self.send(&Message::Refused { reason: crate::message::short(reason) }.line());
        self.end_output();
    }

    /// Closes the sending side; sent bytes still arrive.
    pub(crate) fn end_output(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
