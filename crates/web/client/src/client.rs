//! Interfaces of closed-loop clients and open-loop sources.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A client of a closed loop: it sends a request, waits for the answer, thinks, and sends the next.
///
/// A client has its own connection and one outstanding request. It runs in one thread; clients that share state must
/// synchronise without blocking.
pub trait Client: Send {
    /// Writes the next request into `ask`, which is empty.
    ///
    /// `answered` is the outcome of the last request, right or failed; absent at the first call. `now_ns` is the current
    /// instant. `ask.at_ns` is the intended instant: `now_ns` plus the think time; an instant in the past counts as `now_ns`.
    /// The response time counts from there.
    ///
    /// Also called after the last answer of a run; that request is not sent. `Break`: the client leaves.
    fn next(&mut self, answered: Option<&Answer<'_>>, now_ns: i64, ask: &mut Ask) -> ControlFlow<()>;
}

/// Requests of an open loop: sent at their times, whether or not earlier ones were answered.
pub trait Source: Send {
    /// Writes the next request into `ask`, which is empty. `at_ns` never decreases. `Break`: the last request was sent.
    fn next(&mut self, ask: &mut Ask) -> ControlFlow<()>;
}

/// How a request is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// Sent again if the connection was lost before an answer began.
    #[default]
    Get,
    /// As `Get`, without the body.
    Head,
    /// Has a body; never sent twice.
    Post,
}

impl Method {
    /// Name in a request line.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
        }
    }

    /// Whether a repeated request changes nothing more (RFC 9110, 9.2.2).
    pub fn is_idempotent(self) -> bool {
        self != Method::Post
    }
}

/// One request, with the rule for a right answer.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Intended instant of sending, ns since the epoch of the run.
    pub at_ns: i64,
    /// Number of the client within its class. The engine sets it for clients of a closed loop.
    pub client: u32,
    /// How it is made.
    pub method: Method,
    /// Path below that of the server's URL: begins with `/`, percent-encoded, with its query.
    pub path: String,
    /// Header lines besides `Host`, `User-Agent` and `Content-Length`, each with its `\r\n`.
    pub headers: String,
    /// Sent with `Post`.
    pub body: Vec<u8>,
    /// The expected answer.
    pub expect: Expect,
    /// Name of the page, for tables by page. Absent: the class's name.
    pub label: Option<Arc<str>>,
    /// Deadline, ns since the epoch; absent: none.
    pub deadline_ns: Option<i64>,
}

impl Ask {
    /// Empties the request and keeps its memory.
    pub fn clear(&mut self) {
        self.at_ns = 0;
        self.client = 0;
        self.method = Method::Get;
        self.path.clear();
        self.headers.clear();
        self.body.clear();
        self.expect = Expect::Any;
        self.label = None;
        self.deadline_ns = None;
    }
}

/// Whether an answer of this status and body is right.
pub type Judgement = Arc<dyn Fn(u16, &[u8]) -> bool + Send + Sync>;

/// Rule for a right answer. In any case its status is below 400 and it is complete.
#[derive(Clone, Default)]
pub enum Expect {
    /// Nothing more.
    #[default]
    Any,
    /// Status 200 and the bytes of this document of the class.
    Document(u32),
    /// This function decides by status and body. It runs in a sending thread and must be fast.
    Check(Judgement),
}

impl fmt::Debug for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Any => f.write_str("Any"),
            Expect::Document(number) => write!(f, "Document({number})"),
            Expect::Check(_) => f.write_str("Check"),
        }
    }
}

/// Outcome of a request.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The request.
    pub ask: &'a Ask,
    /// 0, or the `errno` of the failure (see [`crate::status`]).
    pub error: i32,
    /// The HTTP status; 0 where no answer began.
    pub status: u16,
    /// The body received. Empty for documents, which are compared while they are received.
    pub body: &'a [u8],
    /// Instant of the first write to the socket; absent: never sent.
    pub submitted_ns: Option<i64>,
    /// Instant at which the answer was complete or had failed.
    pub completed_ns: i64,
}
