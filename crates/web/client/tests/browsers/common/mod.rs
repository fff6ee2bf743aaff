//! Common parts of the tests: documents, a server with scripted answers, and clients with a number of requests.

pub mod nginx;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_web_client::{
    Answer, Ask, Class, Client, Documents, Expect, Folders, Load, Options, Outcome, Report, Server, browse,
};
use weir_workload::{Distribution, FileSet, Files, Popularity};

/// `count` documents of this size.
pub fn documents(count: u32, bytes: u64) -> Arc<Documents> {
    let size = Distribution::Fixed { bytes };
    let files = Files { count, size, stratified: false, popularity: Popularity::Uniform };
    Arc::new(Documents::new(FileSet::new(&files, "web", 7), "web", 7, Folders::One))
}

/// The bytes of a document.
pub fn content(documents: &Documents, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; documents.sizes_bytes()[number as usize] as usize];
    documents.key(number).fill(0, &mut bytes);
    bytes
}

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reply {
    Right,
    /// The right answer, this much later.
    Slow(Duration),
    /// The right answer in pieces of so many bytes.
    Pieces(usize),
    /// The right answer in chunks of so many bytes.
    Chunked(usize),
    /// The right answer, and the connection is closed; with or without saying so.
    Closing {
        said: bool,
    },
    /// The right answer, delimited by the end of the connection.
    UntilClose,
    /// One byte is another.
    Wrong,
    /// A page less than the document has.
    Less,
    /// Closed in the middle of the body.
    Short,
    /// Closed before anything.
    Nothing,
    /// Reset in the middle of the body.
    Reset,
    Garbage,
    Status(u16),
    /// The right answer, followed by more bytes.
    Surplus,
    /// No answer, for so long.
    Silent(Duration),
}

/// A server of documents with a scripted answer to its n-th request.
pub struct TestServer {
    pub address: SocketAddr,
    /// Requests that came.
    pub requests: Arc<AtomicU64>,
    /// Connections that came.
    pub connections: Arc<AtomicU64>,
    /// Bodies of the POST requests, concatenated.
    pub posted: Arc<Mutex<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    pub fn new(documents: &Arc<Documents>, choose: impl Fn(u64) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, connections) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let stop = Arc::<AtomicBool>::default();
        let posted = Arc::<Mutex<Vec<u8>>>::default();
        let all_posted = Arc::clone(&posted);
        let choose = Arc::new(choose);
        let (counts, stopped) = ((Arc::clone(&requests), Arc::clone(&connections)), Arc::clone(&stop));
        let documents = Arc::clone(documents);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                counts.1.fetch_add(1, Ordering::Relaxed);
                let (documents, requests, choose) =
                    (Arc::clone(&documents), Arc::clone(&counts.0), Arc::clone(&choose));
                let posted = Arc::clone(&all_posted);
                // It ends with the connection.
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    stream.set_nodelay(true).unwrap();
                    while let Some(number) = request(&mut stream, &posted) {
                        let nth = requests.fetch_add(1, Ordering::Relaxed);
                        if !answer(&mut stream, &documents, number, choose(nth)) {
                            return;
                        }
                    }
                });
            }
        });
        TestServer { address, requests, connections, posted, stop, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads a request; returns the requested document.
fn request(stream: &mut TcpStream, posted: &Mutex<Vec<u8>>) -> Option<u32> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    let mut read = |text: &mut Vec<u8>| match stream.read(&mut piece) {
        Ok(0) | Err(_) => None,
        Ok(count) => {
            text.extend_from_slice(&piece[..count]);
            Some(())
        }
    };
    let end = loop {
        if let Some(at) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read(&mut text)?;
    };
    let head = String::from_utf8(text[..end].to_vec()).unwrap();
    if let Some(length) = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")) {
        while text.len() < end + length.parse::<usize>().unwrap() {
            read(&mut text)?;
        }
        posted.lock().unwrap().extend_from_slice(&text[end..]);
    }
    let path = head.split(' ').nth(1).unwrap();
    Some(weir_content::file_id(path.trim_start_matches('/')).unwrap_or(0))
}

/// Answers; false where the connection ends with that.
fn answer(stream: &mut TcpStream, documents: &Documents, number: u32, reply: Reply) -> bool {
    let mut body = content(documents, number);
    let head = |status: u16, lines: &str| format!("HTTP/1.1 {status} X\r\nServer: test\r\n{lines}\r\n");
    let length = format!("Content-Length: {}\r\n", body.len());
    let right = [head(200, &length).into_bytes(), body.clone()].concat();
    let half = right.len() - body.len() / 2;
    let keep = matches!(
        reply,
        Reply::Right
            | Reply::Slow(_)
            | Reply::Pieces(_)
            | Reply::Chunked(_)
            | Reply::Wrong
            | Reply::Less
            | Reply::Status(_)
            | Reply::Surplus
    );
    let sent = match reply {
        Reply::Right => stream.write_all(&right),
        Reply::Slow(time) => {
            std::thread::sleep(time);
            stream.write_all(&right)
        }
        Reply::Pieces(bytes) => right.chunks(bytes).try_for_each(|piece| stream.write_all(piece)),
        Reply::Chunked(bytes) => {
            let mut text = head(200, "Transfer-Encoding: chunked\r\n").into_bytes();
            for chunk in body.chunks(bytes) {
                text.extend(format!("{:x};of=test\r\n", chunk.len()).bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\nSum: none\r\n\r\n");
            stream.write_all(&text)
        }
        Reply::Closing { said: false } => stream.write_all(&right),
        Reply::Closing { said: true } => {
            stream.write_all(&[head(200, &(length + "Connection: close\r\n")).into_bytes(), body].concat())
        }
        Reply::UntilClose => stream.write_all(&[head(200, "").into_bytes(), body].concat()),
        Reply::Wrong => {
            let middle = body.len() / 2;
            body[middle] ^= 1;
            stream.write_all(&[head(200, &length).into_bytes(), body].concat())
        }
        Reply::Less => {
            body.truncate(body.len() - 4096);
            let length = format!("Content-Length: {}\r\n", body.len());
            stream.write_all(&[head(200, &length).into_bytes(), body].concat())
        }
        Reply::Short => stream.write_all(&right[..half]),
        Reply::Nothing => Ok(()),
        Reply::Reset => {
            let sent = stream.write_all(&right[..half]);
            std::thread::sleep(Duration::from_millis(20));
            let linger = libc::linger { l_onoff: 1, l_linger: 0 };
            // SAFETY: the descriptor is open, and `linger` has the type of this option.
            unsafe {
                libc::setsockopt(
                    stream.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_LINGER,
                    (&raw const linger).cast(),
                    size_of::<libc::linger>() as libc::socklen_t,
                )
            };
            sent
        }
        Reply::Garbage => stream.write_all(b"I am no web server\r\n\r\n"),
        Reply::Status(status) => stream.write_all(head(status, "Content-Length: 0\r\n").as_bytes()),
        Reply::Surplus => stream.write_all(&[&right[..], b"HTTP/1.1 200 X\r\n"].concat()),
        Reply::Silent(time) => {
            std::thread::sleep(time);
            Ok(())
        }
    };
    keep && sent.is_ok()
}

/// A client that requests this many documents, one after the other.
pub struct Asks {
    pub left: u32,
    pub documents: u32,
    pub think_ns: i64,
}

impl Client for Asks {
    fn next(&mut self, _: Option<&Answer<'_>>, now_ns: i64, ask: &mut Ask) -> ControlFlow<()> {
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        let number = self.left % self.documents;
        ask.path = format!("/{}", weir_content::file_name(number));
        ask.expect = Expect::Document(number);
        ask.at_ns = now_ns + self.think_ns;
        ControlFlow::Continue(())
    }
}

/// Runs `clients` clients that request `each` documents at this URL.
pub fn ask(
    url: &str,
    documents: &Arc<Documents>,
    clients: u32,
    each: u32,
    options: &Options,
) -> (Vec<Outcome>, Report) {
    let count = documents.sizes_bytes().len() as u32;
    let client = |_| -> Box<dyn Client> { Box::new(Asks { left: each, documents: count, think_ns: 0 }) };
    let class = Class {
        name: "web".into(),
        server: Server::new(url).unwrap(),
        documents: Some(Arc::clone(documents)),
        load: Load::Closed((0..clients).map(client).collect()),
    };
    let mut outcomes = Vec::new();
    let report = browse(vec![class], options, |outcome| outcomes.push(outcome.clone())).unwrap();
    (outcomes, report)
}
