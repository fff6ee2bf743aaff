//! Who asks: clients that wait for their answers, and sources of requests that do not.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A client of a closed loop: it asks, waits for the answer, thinks, and asks again.
///
/// A client has a connection of its own, and one request at a time. It belongs to one thread of the engine; what several
/// share is for them to synchronise, without waiting.
pub trait Client: Send {
    /// What the client asks next, written into `ask`, which comes empty.
    ///
    /// `answered` is what became of the last request, whatever that was; absent at the first call. `now_ns` is the
    /// instant at which this is known. `ask.at_ns` is when the client wants to ask: it comes as `now_ns`, to which a client
    /// adds its think time; an instant that is past counts as `now_ns`. The response time counts from there.
    ///
    /// After the last answer of a run this is called as well, and what it asks is not sent. `Break`: the client leaves.
    fn next(&mut self, answered: Option<&Answer<'_>>, now_ns: i64, ask: &mut Ask) -> ControlFlow<()>;
}

/// Requests of an open loop: sent at their times, whether or not earlier ones were answered.
pub trait Source: Send {
    /// The next request, written into `ask`, which comes empty; its `at_ns` is no less than that of the one before.
    /// `Break`: there are no more.
    fn next(&mut self, ask: &mut Ask) -> ControlFlow<()>;
}

/// How a request is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// Gives what is there; may be sent again if the connection was lost before an answer began.
    #[default]
    Get,
    /// As `Get`, without the body.
    Head,
    /// Has a body, and is never sent twice.
    Post,
}

impl Method {
    /// As it is written in a request.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
        }
    }

    /// Whether asking twice is as good as asking once (RFC 9110, 9.2.2).
    pub fn is_idempotent(self) -> bool {
        self != Method::Post
    }
}

/// One request, and what a right answer is.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// When it is to be sent, ns since the epoch of the run.
    pub at_ns: i64,
    /// The client that asks, within its class. The engine sets it for clients of a closed loop.
    pub client: u32,
    /// How it is made.
    pub method: Method,
    /// What is asked for, below the path of the server's URL: begins with `/`, percent-encoded, with its query.
    pub path: String,
    /// Header lines besides `Host`, `User-Agent` and `Content-Length`, each with its `\r\n`.
    pub headers: String,
    /// Sent with `Post`.
    pub body: Vec<u8>,
    /// What a right answer is.
    pub expect: Expect,
    /// What this is, for tables by page: the page's name. Empty: the class's name.
    pub label: Option<Arc<str>>,
    /// When the answer is worthless, ns since the epoch; absent: never.
    pub deadline_ns: Option<i64>,
}

impl Ask {
    /// Empties it for the next request, and keeps its memory.
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

/// What a right answer is. In any case its status is below 400 and it is whole.
#[derive(Clone, Default)]
pub enum Expect {
    /// Nothing more.
    #[default]
    Any,
    /// Status 200 and the bytes of this document of the class.
    Document(u32),
    /// This function says so, of the status and the body. It runs in the engine's thread: be quick.
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

/// What became of a request.
#[derive(Debug)]
pub struct Answer<'a> {
    /// What was asked.
    pub ask: &'a Ask,
    /// 0, or the `errno` of the failure (see [`crate::status`]).
    pub error: i32,
    /// The HTTP status; 0 where no answer began.
    pub status: u16,
    /// The body, as far as it came. Empty for documents, which are compared as they come.
    pub body: &'a [u8],
    /// When it was handed to the kernel; absent: never.
    pub submitted_ns: Option<i64>,
    /// When the answer, or its failure, was seen.
    pub completed_ns: i64,
}
