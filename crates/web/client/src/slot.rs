//! A connection and the request on it.

use std::net::TcpStream;

use crate::client::{Ask, Client, Expect, Method};
use crate::documents::Documents;
use crate::parser::Parser;
use crate::server::Server;
use crate::status;

/// Phase of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No request is on it.
    Free,
    /// The connection is being made.
    Connecting,
    /// Part of the request is still to be handed over.
    Sending,
    /// The answer is awaited.
    Awaiting,
}

/// A connection, kept or to be made, and the request on it. Each client of a closed loop has its own slot; requests of an
/// open loop share slots.
pub(crate) struct Slot {
    pub class: u32,
    /// The pool that it belongs to; `None` for a client's own.
    pub pool: Option<u32>,
    pub client: Option<Box<dyn Client>>,
    /// The client's number, where it is its own.
    pub number: u32,
    pub ask: Ask,
    pub phase: Phase,
    pub stream: Option<TcpStream>,
    /// Number of the connection: distinguishes events of an earlier connection.
    pub generation: u32,
    pub watches_writes: bool,
    /// Whether an answer came on this connection before.
    pub used: bool,
    /// Whether the request was sent before, on a connection that the server had closed.
    pub resent: bool,
    pub parser: Parser,
    pub out: Vec<u8>,
    pub out_at: usize,
    pub submitted_ns: Option<i64>,
    pub verdict: BodyState,
}

/// State of the body so far.
#[derive(Default)]
pub(crate) struct BodyState {
    /// Bytes of the body so far.
    pub bytes: u64,
    /// All bytes so far are those of the document.
    same: bool,
    /// The body itself, where it is wanted.
    pub body: Vec<u8>,
    too_large: bool,
}

impl BodyState {
    fn clear(&mut self) {
        self.bytes = 0;
        self.same = true;
        self.body.clear();
        self.too_large = false;
    }
}

impl Slot {
    pub fn new(class: u32, pool: Option<u32>, client: Option<Box<dyn Client>>, number: u32) -> Self {
        Slot {
            class,
            pool,
            client,
            number,
            ask: Ask::default(),
            phase: Phase::Free,
            stream: None,
            generation: 0,
            watches_writes: false,
            used: false,
            resent: false,
            parser: Parser::default(),
            out: Vec::new(),
            out_at: 0,
            submitted_ns: None,
            verdict: BodyState::default(),
        }
    }

    /// Encodes the request and resets the parser. False if its path or a header would break the request.
    pub fn prepare(&mut self, server: &Server) -> bool {
        self.submitted_ns = None;
        self.resent = false;
        self.await_answer();
        let Ask { method, path, headers, body, .. } = &self.ask;
        let graphic = path.bytes().all(|byte| byte.is_ascii_graphic());
        let whole_lines = headers.is_empty() || headers.ends_with("\r\n") && !headers.contains("\r\n\r\n");
        let out = &mut self.out;
        out.clear();
        if !path.starts_with('/') || !graphic || !whole_lines {
            return false;
        }
        for part in [method.name(), " ", &server.base, path, " HTTP/1.1\r\nHost: ", &server.host] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(b"\r\nUser-Agent: weir\r\n");
        out.extend_from_slice(headers.as_bytes());
        if *method == Method::Post {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        if *method == Method::Post {
            out.extend_from_slice(body);
        }
        true
    }

    /// Resets the parser for a new answer.
    pub fn await_answer(&mut self) {
        self.out_at = 0;
        self.parser.begin(self.ask.method == Method::Head);
        self.verdict.clear();
    }

    /// Reads a piece of the answer; returns how much of it belongs to it, or `None` if it is malformed.
    pub fn read(&mut self, piece: &[u8], documents: Option<&Documents>, limit_bytes: usize) -> Option<usize> {
        let (verdict, expect) = (&mut self.verdict, &self.ask.expect);
        let judge = |status: u16, part: &[u8]| {
            match expect {
                Expect::Document(number) if status == 200 => {
                    let known = |documents: &Documents| documents.matches(*number, verdict.bytes, part);
                    verdict.same = verdict.same && documents.is_some_and(known);
                }
                Expect::Document(_) => {}
                Expect::Any | Expect::Check(_) => {
                    if verdict.body.len() + part.len() <= limit_bytes {
                        verdict.body.extend_from_slice(part);
                    } else {
                        verdict.too_large = true;
                    }
                }
            }
            verdict.bytes += part.len() as u64;
        };
        self.parser.feed(piece, judge).ok()
    }

    /// 0 if the answer is complete and right, else its `errno`.
    pub fn judge(&self, documents: Option<&Documents>) -> i32 {
        let status = self.parser.status();
        let failed = status::of_http(status);
        if failed != 0 {
            return failed;
        }
        match &self.ask.expect {
            _ if self.verdict.too_large => libc::EMSGSIZE,
            Expect::Any => 0,
            Expect::Document(_) if status != 200 => libc::EPROTO,
            Expect::Document(number) => {
                let size = documents.and_then(|all| all.sizes_bytes().get(*number as usize));
                if self.verdict.same && size == Some(&self.verdict.bytes) { 0 } else { libc::EBADMSG }
            }
            Expect::Check(check) if check(status, &self.verdict.body) => 0,
            Expect::Check(_) => libc::EBADMSG,
        }
    }

    /// Closes the connection, if there is one.
    pub fn close(&mut self) {
        // epoll forgets a closed descriptor; events already reported have an old generation.
        self.stream = None;
        self.generation = self.generation.wrapping_add(1);
        self.watches_writes = false;
        self.used = false;
    }

    /// The number that the connection is registered under.
    pub fn key(&self, index: u32) -> u64 {
        u64::from(self.generation) << 32 | u64::from(index)
    }
}
