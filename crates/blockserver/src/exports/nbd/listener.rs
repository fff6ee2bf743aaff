//! NBD listener and its connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Exports;
use super::connection::serve;
use crate::engine::scheduled::Caller;
use crate::sockets::connections::{Gate, Limits, Place};
use crate::sockets::{Listening, Stream, remove_socket};

/// Maximum connections before the choice of an export.
const MOST_NEWCOMERS: usize = 16;
/// Time limit of that choice.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A Unix socket, for root and the user of this process only.
    Unix(PathBuf),
    /// A loopback port, for every user of this host; 0 for any free port.
    Loopback(SocketAddr),
}

/// Listener; dropping it stops listening.
pub(crate) struct Listener {
    uri: String,
    gate: Arc<Gate>,
    address: Address,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// The address is not available.
    pub fn start(address: &Address, clients: usize, exports: Exports) -> io::Result<Self> {
        let limits = Limits {
            what: "NBD",
            newcomers: MOST_NEWCOMERS,
            handshake: Some(HANDSHAKE),
            clients,
            remedy: "disconnect one, or start the server with a larger --nbd-connections",
        };
        let listening = match address {
            Address::Unix(path) => Listening::at_path(path)?,
            Address::Loopback(address) => Listening::at_port(*address)?,
        };
        let (uri, address) = match (address, listening.address()) {
            (Address::Loopback(_), Some(bound)) => (format!("nbd://{bound}"), Address::Loopback(bound)),
            (Address::Loopback(address), None) => (format!("nbd://{address}"), Address::Loopback(*address)),
            (Address::Unix(path), _) => {
                (format!("nbd+unix:///?socket={}", path.display()), Address::Unix(path.clone()))
            }
        };
        let gate = Gate::new(limits);
        let of_thread = Arc::clone(&gate);
        thread::Builder::new().name("nbd".to_owned()).spawn(move || {
            of_thread.serve(&listening, move |stream, place| serve_one(stream, place, &exports));
        })?;
        Ok(Listener { uri, gate, address })
    }

    /// Address for clients.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.gate.close();
        // A last connection wakes the thread.
        match &self.address {
            Address::Unix(path) => {
                let _ = UnixStream::connect(path);
                let _ = remove_socket(path);
            }
            Address::Loopback(address) => drop(TcpStream::connect(address)),
        }
    }
}

fn serve_one(stream: &Stream, place: &Place, exports: &Exports) {
    let pid = stream.peer().map_or(0, |peer| peer.pid);
    let caller = Caller { pid, stream: place.number() };
    let served = stream
        .try_clone()
        .and_then(|writer| serve(io::BufReader::new(stream), writer, exports, caller, place));
    if let Err(error) = served
        && matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock
        )
    {
        place.note(&format!("client {}: {error}; the connection was closed", place.number()));
    }
}
