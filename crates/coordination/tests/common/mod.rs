//! Hosts of tests, and somebody between them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use weir_coordination::{Coordination, Error, JoinConfig, Roster, Timeouts, Token};

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

pub fn timeouts() -> Timeouts {
    Timeouts {
        beat: Duration::from_millis(50),
        silence: Duration::from_millis(600),
        patience: Duration::from_secs(5),
        handshake: Duration::from_millis(500),
        lead: Duration::from_millis(100),
        exchanges: 20,
    }
}

pub fn roster(me: &str) -> Roster {
    Roster::new(me, &["a".to_owned(), "b".to_owned()], &["s".to_owned()]).unwrap()
}

/// A port that nobody listens at.
pub fn address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub fn config(me: &str, address: SocketAddr) -> JoinConfig {
    let (roster, token) = (roster(me), Token::new(TOKEN).unwrap());
    JoinConfig { roster, address, token, run: "run".to_owned(), timeouts: timeouts(), stop: Arc::default() }
}

pub fn join(me: &str, address: SocketAddr, stop: &Arc<AtomicBool>) -> Result<Coordination, Error> {
    Coordination::join(JoinConfig { stop: Arc::clone(stop), ..config(me, address) })
}

/// Connects as soon as somebody listens.
pub fn connect(address: SocketAddr) -> TcpStream {
    let began = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                return stream;
            }
            Err(error) => assert!(began.elapsed() < Duration::from_secs(10), "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Somebody on the way from a host to the coordinator: sees all lines, and passes on to the coordinator what `pass` pushes. If that
/// returns false, nothing more is passed on, and the connections stay.
pub struct Between {
    pub address: SocketAddr,
    streams: Arc<std::sync::Mutex<Vec<TcpStream>>>,
}

impl Between {
    pub fn start(
        coordinator: SocketAddr,
        mut pass: impl FnMut(&[u8], &mut Vec<Vec<u8>>) -> bool + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let streams = Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        thread::spawn(move || {
            let host = listener.accept().unwrap().0;
            let mut to = connect(coordinator);
            kept.lock().unwrap().extend([host.try_clone().unwrap(), to.try_clone().unwrap()]);
            let (mut back, mut forth) = (to.try_clone().unwrap(), host.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut back, &mut forth);
                let _ = forth.shutdown(Shutdown::Both);
            });
            let mut lines = BufReader::new(host);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let mut passed = Vec::new();
                let goes_on = pass(&line, &mut passed);
                if to.write_all(&passed.concat()).is_err() || !goes_on {
                    return;
                }
                line.clear();
            }
            let _ = to.shutdown(Shutdown::Write);
        });
        Between { address, streams }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        for stream in self.streams.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
