//! The application server: one thread for each HTTP connection, a shared pool of database connections.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answers::{Answers, Context};
use super::request::{self, NoRequest, Request};
use crate::Error;
use crate::database::{Address, Pool};
use crate::definition::Definition;

/// A connection that is idle between two requests for this long is closed.
const LONGEST_SILENCE: Duration = Duration::from_secs(300);
/// A connection without a first request is closed after this long: idle connections occupy threads.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// Time limit of a request from its first to its last byte.
const WHOLE_REQUEST: Duration = Duration::from_secs(30);
const MOST_CONNECTIONS: usize = 20_000;
const STACK_BYTES: usize = 256 << 10;

/// The pages of the site that a database holds.
pub struct Application {
    pub(crate) definition: &'static Definition,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) answers: Box<dyn Answers>,
}

impl Application {
    fn answer(&self, page: &str, request: &Request, context: &mut Context<'_>) -> Result<Value, Error> {
        if self.definition.changes.contains(&page) && request.method != "POST" {
            return Err(Error::Refused(
                405,
                format!("page {page} changes data and takes POST only (found {})", request.method),
            ));
        }
        let mut answer = self.answers.answer(page, &request.form, context)?;
        let mut whole = json!({"page": page});
        if let (Some(whole), Some(answer)) = (whole.as_object_mut(), answer.as_object_mut()) {
            whole.append(answer);
        }
        Ok(whole)
    }
}

/// Counts a connection while it is served.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// A site that is being served.
pub struct Site {
    application: Application,
    pool: Pool,
    counts: BTreeMap<&'static str, Counts>,
    retries: AtomicU64,
    connections: AtomicUsize,
    /// The last error in the log: a database that is gone must not fill the log.
    told: Mutex<String>,
}

impl Site {
    /// A site whose pages share `workers` connections to the database.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn new(application: Application, address: Address, workers: usize) -> Result<Arc<Self>, Error> {
        let counts = application.definition.pages.iter().map(|page| (*page, Counts::default())).collect();
        Ok(Arc::new(Site {
            application,
            pool: Pool::new(address, workers)?,
            counts,
            retries: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            told: Mutex::default(),
        }))
    }

    /// Serves until `stop` is set, and one more connection has come.
    ///
    /// # Errors
    /// The listener fails.
    pub fn serve(self: &Arc<Self>, listener: &TcpListener, stop: &AtomicBool) -> Result<(), Error> {
        let io = |source| Error::Io { path: "the listening socket".into(), source };
        for stream in listener.incoming() {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let stream = match stream {
                Ok(stream) => stream,
                // The browser was gone before it was greeted; or descriptors ran out, which may pass.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => continue,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                Err(error) => return Err(io(error)),
            };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let site = Arc::clone(self);
            let thread = std::thread::Builder::new().name("page".into()).stack_size(STACK_BYTES);
            let started = thread.spawn(move || {
                // Also of one that panics.
                let _counted = Counted(&site.connections);
                let _ = site.converse(stream);
            });
            if started.is_err() {
                self.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn converse(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WHOLE_REQUEST))?;
        let mut answers = stream.try_clone()?;
        let mut requests = BufReader::with_capacity(4096, Timed { stream, until: None });
        let mut silence = FIRST_REQUEST;
        loop {
            // Until its first byte a request may be waited for; from there on it has its time.
            requests.get_mut().until = Some(Instant::now() + silence);
            if requests.fill_buf()?.is_empty() {
                return Ok(());
            }
            requests.get_mut().until = Some(Instant::now() + WHOLE_REQUEST);
            silence = LONGEST_SILENCE;
            match request::read(&mut requests) {
                Ok(request) => {
                    let (status, body) = self.answer(&request);
                    write(&mut answers, status, &body, request.keep_alive)?;
                    if !request.keep_alive {
                        return Ok(());
                    }
                }
                Err(NoRequest::Closed) => return Ok(()),
                Err(NoRequest::Refused(status, why)) => {
                    return write(&mut answers, status, &json!({"error": why}), false);
                }
            }
        }
    }

    /// The answer to a request: its status and body.
    fn answer(&self, request: &Request) -> (u16, Value) {
        let site = self.application.definition.name;
        let page = request.path.strip_prefix('/').and_then(|path| path.strip_prefix(site)?.strip_prefix('/'));
        let Some((page, counts)) = page.and_then(|page| self.counts.get_key_value(page)) else {
            return match request.path.as_str() {
                "/status" => (200, self.status()),
                path => (404, json!({"error": format!("no such page: {path}; pages are /{site}/PAGE")})),
            };
        };
        let result = self.pool.lease().map_err(Error::from).and_then(|mut lease| {
            let now_s = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs() as i64);
            let mut context = Context { connection: &mut *lease, retries: &self.retries, now_s };
            self.application.answer(page, request, &mut context)
        });
        let (count, status, body) = match result {
            Ok(body) => (&counts.answered, 200, body),
            Err(Error::Refused(status, why)) => (&counts.refused, status, json!({"error": why})),
            Err(error) => {
                self.log_error(page, &error);
                // A deadlock that did not resolve itself is worth another try, as is a database that is gone.
                let later = error.database().is_some_and(|error| error.is_gone() || error.is_retryable());
                (&counts.failed, if later { 503 } else { 500 }, json!({"error": error.to_string()}))
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        (status, body)
    }

    fn log_error(&self, page: &str, error: &Error) {
        let text = error.to_string();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != text {
            eprintln!("{page}: {text}");
            *told = text;
        }
    }

    /// Answers so far, by page.
    fn status(&self) -> Value {
        let pages: serde_json::Map<String, Value> = self
            .counts
            .iter()
            .map(|(page, counts)| {
                let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
                let counts = json!({
                    "answered": read(&counts.answered), "refused": read(&counts.refused), "failed": read(&counts.failed),
                });
                ((*page).to_owned(), counts)
            })
            .collect();
        let facts = self.application.facts.iter().map(|(name, value)| (name.clone(), json!(value)));
        json!({
            "site": self.application.definition.name,
            "facts": facts.collect::<serde_json::Map<String, Value>>(),
            "pages": pages,
            "transactions_retried": self.retries.load(Ordering::Relaxed),
            "connections": self.connections.load(Ordering::Relaxed),
        })
    }
}

/// A stream whose reads have a deadline.
struct Timed {
    stream: TcpStream,
    until: Option<Instant>,
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(left)?;
        self.stream.read(bytes)
    }
}

fn write(to: &mut TcpStream, status: u16, body: &Value, keep_alive: bool) -> std::io::Result<()> {
    let body = body.to_string();
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        503 => "Service Unavailable",
        500 => "Internal Server Error",
        _ => "Refused",
    };
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let retry = if status == 503 { "Retry-After: 1\r\n" } else { "" };
    // One write: head and body are one segment if they fit. Pages differ from request to request: a proxy must not cache
    // them.
    let answer = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: \
         {}\r\n{retry}Connection: {connection}\r\n\r\n{body}",
        body.len()
    );
    to.write_all(answer.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection, both of its ends.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, there)
    }

    #[test]
    fn a_request_has_its_time_however_slowly_it_is_sent() {
        let (stream, mut slow) = pair();
        let began = Instant::now();
        let sends = std::thread::spawn(move || {
            while slow.write_all(b"a").is_ok() && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let until = Some(began + Duration::from_millis(300));
        let mut requests = BufReader::new(Timed { stream, until });
        assert!(matches!(request::read(&mut requests), Err(NoRequest::Closed)));
        assert!((300..5000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        drop(requests);
        sends.join().unwrap();
    }

    #[test]
    fn who_says_nothing_is_waited_for_no_longer_than_said() {
        let (stream, _silent) = pair();
        let began = Instant::now();
        let mut requests = BufReader::new(Timed { stream, until: Some(began + Duration::from_millis(200)) });
        assert!(requests.fill_buf().is_err());
        assert!((200..5000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    }
}
