//! A private database server for a test, and a site in front of it.

#![allow(dead_code)]

mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
pub use server::{Server, server};
use weir_web_site::Benchmark;
use weir_web_site::database::{Address, Connection, Row};
use weir_web_site::http::{Site, form};
use weir_web_site::load::{LoadOptions, Loaded, Population, load};

/// Loads without a word.
pub fn fill(address: &Address, population: &dyn Population, jobs: usize) -> Loaded {
    load(address, population, LoadOptions { jobs, replace: false, hot: None }, &|_| {}).unwrap()
}

/// All rows of all tables, hashed; and the number of rows.
pub fn content(connection: &mut dyn Connection, population: &dyn Population) -> Vec<(String, u64, usize)> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut tables = Vec::new();
    for table in population.tables() {
        let columns = table.column_names().join(", ");
        let sql = format!("SELECT {columns} FROM {} ORDER BY {}", table.name, table.key);
        let rows: Vec<Row> = connection.run(&sql, &[]).unwrap().rows;
        let mut hasher = DefaultHasher::new();
        rows.hash(&mut hasher);
        tables.push((table.name.to_owned(), hasher.finish(), rows.len()));
    }
    tables
}

/// A site that is served by a thread of the test.
pub struct Served {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub fn serve(benchmark: Benchmark, address: &Address, workers: usize) -> Served {
    let application = benchmark.application(&mut *address.connect().unwrap()).unwrap();
    let site = Site::new(application, address.clone(), workers).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::spawn(move || site.serve(&listener, &stopped).unwrap());
    Served { address, stop, thread: Some(thread) }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A browser's connection.
pub struct Visit {
    stream: BufReader<TcpStream>,
    site: &'static str,
}

impl Visit {
    pub fn new(served: &Served, site: &'static str) -> Self {
        Visit { stream: BufReader::new(TcpStream::connect(served.address).unwrap()), site }
    }

    fn talk(&mut self, request: &str) -> (u16, Value) {
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut line, mut length, mut status) = (String::new(), 0, 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(rest) = line.strip_prefix("Content-Length: ") {
                length = rest.trim().parse().unwrap();
            } else if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    pub fn get(&mut self, page: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        let mut query = String::new();
        pairs.iter().for_each(|(name, value)| form::put(&mut query, name, value));
        let site = self.site;
        self.talk(&format!("GET /{site}/{page}?{query} HTTP/1.1\r\nHost: test\r\n\r\n"))
    }

    pub fn post(&mut self, page: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        let mut body = String::new();
        pairs.iter().for_each(|(name, value)| form::put(&mut body, name, value));
        let (site, length) = (self.site, body.len());
        self.talk(&format!(
            "POST /{site}/{page} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// As `get`, of which 200 is expected.
    pub fn see(&mut self, page: &str, pairs: &[(&str, &str)]) -> Value {
        let (status, body) = self.get(page, pairs);
        assert_eq!(status, 200, "{page} {pairs:?}: {body}");
        body
    }

    /// As `post`, of which 200 is expected.
    pub fn do_it(&mut self, page: &str, pairs: &[(&str, &str)]) -> Value {
        let (status, body) = self.post(page, pairs);
        assert_eq!(status, 200, "{page} {pairs:?}: {body}");
        body
    }
}
