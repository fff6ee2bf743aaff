//! Waiting for sockets by poll(2), and waking of a waiting thread.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A descriptor to wait for.
pub(crate) fn entry(descriptor: RawFd, for_writing: bool) -> libc::pollfd {
    let events = if for_writing { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    libc::pollfd { fd: descriptor, events, revents: 0 }
}

/// Waits until a descriptor is ready or closed, or the timeout has passed. `revents` has the ready ones.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn wait(entries: &mut [libc::pollfd], limit: Duration) -> io::Result<()> {
    // Rounded up: a wait that ends early would be repeated at once.
    let limit_ms = limit.as_micros().div_ceil(1000).min(60_000) as libc::c_int;
    // SAFETY: the pointer and the length are those of the slice.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, limit_ms) };
    match ready {
        0.. => Ok(()),
        _ => {
            entries.iter_mut().for_each(|entry| entry.revents = 0);
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
        }
    }
}

/// Wakes a thread that waits for sockets.
pub(crate) struct Waker {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Waker { sender, receiver })
    }

    pub(crate) fn wake(&self) {
        // A full socket wakes the thread too.
        let _ = (&self.sender).write(&[1]);
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.receiver.as_raw_fd()
    }

    /// Reads the bytes that woke the thread.
    pub(crate) fn clear(&self) {
        let mut some = [0; 64];
        while matches!((&self.receiver).read(&mut some), Ok(64)) {}
    }
}
