//! Waiting for sockets by poll(2), and waking of a waiting thread.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The longest wait at once.
const LONGEST: Duration = Duration::from_secs(60);

/// A descriptor to wait for.
pub(crate) fn entry(descriptor: &impl AsFd, for_writing: bool) -> PollFd<'_> {
    PollFd::new(descriptor, if for_writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN })
}

/// Whether a descriptor is ready or closed.
pub(crate) fn is_ready(entry: &PollFd<'_>) -> bool {
    !entry.revents().is_empty()
}

/// Waits until a descriptor is ready or closed, or the timeout has passed. [`is_ready`] tells which.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn wait(entries: &mut [PollFd<'_>], limit: Duration) -> io::Result<()> {
    let limit = Timespec::try_from(limit.min(LONGEST)).map_err(io::Error::other)?;
    match poll(entries, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
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

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Reads the bytes that woke the thread.
    pub(crate) fn clear(&self) {
        let mut some = [0; 64];
        while matches!((&self.receiver).read(&mut some), Ok(64)) {}
    }
}
