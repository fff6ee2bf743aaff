//! Non-blocking sockets and epoll.

use std::io;
use std::mem::size_of;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Readiness of a socket, or an error of it.
pub(crate) const READABLE: u32 = (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// Room to send, or an error.
pub(crate) const WRITABLE: u32 = (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// Begins to connect; the second value is true if the connection is complete.
pub(crate) fn connect(address: &SocketAddr) -> io::Result<(TcpStream, bool)> {
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: three integers.
    let descriptor = unsafe { libc::socket(domain, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by no one else.
    let stream = TcpStream::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    // A request is one write: there is nothing to collect it with.
    stream.set_nodelay(true)?;
    let (storage, length) = raw(address);
    // SAFETY: `storage` holds an address of `length` bytes, of the socket's domain.
    let done = unsafe { libc::connect(descriptor, (&raw const storage).cast(), length) } == 0;
    if !done {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(error);
        }
    }
    Ok((stream, done))
}

/// An address in the kernel's form.
fn raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: `sockaddr_storage` is large and aligned enough for every kind of address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

/// One event: which conditions hold, and the number that the socket was registered under.
pub(crate) struct Event {
    pub conditions: u32,
    pub key: u64,
}

/// Waits for many sockets.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Poll {
    pub fn new(batch: usize) -> io::Result<Self> {
        // SAFETY: one integer.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by no one else.
        let epoll = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Poll { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; batch], ready: 0 })
    }

    /// Watches a socket from now on, until it is closed.
    pub fn add(&self, stream: &TcpStream, key: u64, writes: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, stream, key, writes)
    }

    /// Starts or stops watching for room to send.
    pub fn modify(&self, stream: &TcpStream, key: u64, writes: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, stream, key, writes)
    }

    fn control(&self, operation: i32, stream: &TcpStream, key: u64, writes: bool) -> io::Result<()> {
        let wanted = if writes { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        let mut event = libc::epoll_event { events: wanted as u32, u64: key };
        // SAFETY: both descriptors are open, `event` is valid for the call.
        let done =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, stream.as_raw_fd(), &raw mut event) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until something is ready or this time has passed. Returns how many events there are.
    pub fn wait(&mut self, timeout_ns: i64) -> io::Result<usize> {
        let timeout_ns = timeout_ns.max(0);
        let timeout =
            libc::timespec { tv_sec: timeout_ns / 1_000_000_000, tv_nsec: timeout_ns % 1_000_000_000 };
        // SAFETY: `events` has room for the stated number of events; `timeout` is valid; there is no signal mask.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        self.ready = match usize::try_from(ready) {
            Ok(ready) => ready,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
                0
            }
        };
        Ok(self.ready)
    }

    /// One of the events of the last wait.
    pub fn event(&self, index: usize) -> Event {
        let event = self.events[index];
        Event { conditions: event.events, key: event.u64 }
    }
}
