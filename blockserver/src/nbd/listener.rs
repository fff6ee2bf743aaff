//! Where clients come in.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Exports;
use super::connection::serve;
use crate::live::Caller;

/// Clients at once; more are turned away.
const MOST_CLIENTS: usize = 256;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A Unix socket, which only the user of this process can open.
    Unix(PathBuf),
    /// A port of 127.0.0.1; 0 for any that is free.
    Loopback(u16),
}

/// A connection that can be ended.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Takes clients in until it is dropped.
pub(crate) struct Listener {
    uri: String,
    shared: Arc<Shared>,
    path: Option<PathBuf>,
}

struct Shared {
    exports: Exports,
    is_closed: AtomicBool,
    next: AtomicU32,
    clients: Mutex<Vec<(u32, Stream)>>,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn start(address: &Address, exports: Exports) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            exports,
            is_closed: AtomicBool::new(false),
            next: AtomicU32::new(0),
            clients: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("nbd".to_owned());
        match address {
            Address::Unix(path) => {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let listener = UnixListener::bind(path)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
                thread.spawn(move || {
                    while let Ok((stream, _)) = listener.accept() {
                        if !of_thread.take_in(Stream::Unix(stream)) {
                            break;
                        }
                    }
                })?;
                let uri = format!("nbd+unix:///?socket={}", path.display());
                Ok(Listener { uri, shared, path: Some(path.clone()) })
            }
            Address::Loopback(port) => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?;
                let uri = format!("nbd://{}", listener.local_addr()?);
                thread.spawn(move || {
                    while let Ok((stream, _)) = listener.accept() {
                        if !of_thread.take_in(Stream::Tcp(stream)) {
                            break;
                        }
                    }
                })?;
                Ok(Listener { uri, shared, path: None })
            }
        }
    }

    /// Where clients find it.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        for (_, stream) in self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            stream.end();
        }
        // A last visitor lets the thread see it.
        match &self.path {
            Some(path) => {
                let _ = UnixStream::connect(path);
                let _ = fs::remove_file(path);
            }
            None => drop(self.uri.strip_prefix("nbd://").map(TcpStream::connect)),
        }
    }
}

impl Shared {
    /// Serves a client in a thread of its own; false if the server takes nobody in any more.
    fn take_in(self: &Arc<Self>, stream: Stream) -> bool {
        if self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Ok(held) = stream.try_clone() else { return true };
        {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            if clients.len() >= MOST_CLIENTS {
                return true;
            }
            clients.push((number, held));
        }
        let shared = Arc::clone(self);
        let serve_one = move || {
            let caller = Caller { pid: stream.peer_pid(), stream: number };
            if let Err(error) = stream.serve(&shared.exports, caller)
                && error.kind() == io::ErrorKind::InvalidData
            {
                eprintln!("NBD client {number}: {error}; the connection was closed");
            }
            shared
                .clients
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|(other, _)| *other != number);
        };
        // Without a thread the client is turned away.
        let _ = thread::Builder::new().name("nbd-client".to_owned()).spawn(serve_one);
        true
    }
}

impl Stream {
    fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    fn end(&self) {
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// The process at the other end of a Unix socket, as it was when it connected; 0 of others.
    fn peer_pid(&self) -> u32 {
        let Stream::Unix(stream) = self else { return 0 };
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: `peer` is of the length that is told.
        let failed = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                std::ptr::from_mut(&mut peer).cast(),
                &mut length,
            )
        } != 0;
        if failed { 0 } else { peer.pid as u32 }
    }

    fn serve(&self, exports: &Exports, caller: Caller) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => serve(io::BufReader::new(stream), stream.try_clone()?, exports, caller),
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                serve(io::BufReader::new(stream), stream.try_clone()?, exports, caller)
            }
        }
    }
}
