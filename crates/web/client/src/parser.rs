//! Incremental parser of HTTP/1.x responses (RFC 9112).
//!
//! The result does not depend on how the response is split into pieces; `tests/browsers/parser.rs` checks this.

use crate::chunks::Chunks;

/// Longest head, and longest section of trailers.
pub(crate) const HEAD_LIMIT_BYTES: usize = 64 << 10;
/// Most header lines.
const HEADERS: usize = 64;

/// The response is not HTTP, or has no length. The text names the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// The state of one answer.
#[derive(Debug)]
pub struct Parser {
    state: State,
    /// A partially received head.
    head: Vec<u8>,
    /// The response to a `HEAD` has no body, whatever its headers are.
    bodiless: bool,
    begun: bool,
    status: u16,
    keep_alive: bool,
}

#[derive(Debug)]
enum State {
    Head,
    /// This many bytes of the body remain.
    Length(u64),
    Chunked(Chunks),
    /// The body ends where the connection does.
    UntilClose,
    Done,
}

/// How the body is delimited.
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

impl Default for Parser {
    fn default() -> Self {
        Parser {
            state: State::Head,
            head: Vec::new(),
            bodiless: false,
            begun: false,
            status: 0,
            keep_alive: true,
        }
    }
}

impl Parser {
    /// Makes ready for an answer, to a `HEAD` if `bodiless`.
    pub fn begin(&mut self, bodiless: bool) {
        self.state = State::Head;
        self.head.clear();
        self.bodiless = bodiless;
        self.begun = false;
        self.status = 0;
        self.keep_alive = true;
    }

    /// Reads a piece; `body` is called with the status and each part of the body. Returns how much of the piece belongs
    /// to this answer: less than all only if the answer is done.
    ///
    /// # Errors
    /// The answer is malformed; it cannot be read any further.
    pub fn feed(&mut self, mut piece: &[u8], mut body: impl FnMut(u16, &[u8])) -> Result<usize, Malformed> {
        let length = piece.len();
        self.begun |= length > 0;
        while !piece.is_empty() {
            let used = match &mut self.state {
                State::Done => break,
                State::Head => self.feed_head(piece)?,
                State::Length(left) => {
                    let here = (*left).min(piece.len() as u64);
                    *left -= here;
                    let done = *left == 0;
                    body(self.status, &piece[..here as usize]);
                    if done {
                        self.state = State::Done;
                    }
                    here as usize
                }
                State::Chunked(chunks) => {
                    let status = self.status;
                    let used = chunks.feed(piece, |part| body(status, part))?;
                    if chunks.is_done() {
                        self.state = State::Done;
                    }
                    used
                }
                State::UntilClose => {
                    body(self.status, piece);
                    piece.len()
                }
            };
            piece = &piece[used..];
        }
        Ok(length - piece.len())
    }

    /// The connection ended. True if the answer is whole.
    ///
    /// # Errors
    /// The part received so far is malformed.
    pub fn close(&mut self) -> Result<bool, Malformed> {
        self.keep_alive = false;
        match self.state {
            State::UntilClose => self.state = State::Done,
            // Bytes after the last end of line were not parsed.
            State::Head if !self.head.is_empty() => {
                let mut headers = [httparse::EMPTY_HEADER; HEADERS];
                httparse::Response::new(&mut headers).parse(&self.head).map_err(malformed)?;
            }
            _ => {}
        }
        Ok(self.is_done())
    }

    /// Whether the answer is whole.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether anything came.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The status; 0 before the head is whole.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection can be used again after this answer.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Reads more of the head; returns how much of `piece` belongs to it.
    fn feed_head(&mut self, piece: &[u8]) -> Result<usize, Malformed> {
        if self.head.is_empty() {
            return match parse_head(piece)? {
                Some((head, end)) => self.begin_body(head).map(|()| end),
                None => {
                    self.head.extend_from_slice(piece);
                    Ok(piece.len())
                }
            };
        }
        let before = self.head.len();
        self.head.extend_from_slice(piece);
        // A head ends with a line: it is parsed again only at the end of a line.
        if !piece.contains(&b'\n') && self.head.len() < HEAD_LIMIT_BYTES {
            return Ok(piece.len());
        }
        match parse_head(&self.head)? {
            Some((head, end)) => {
                self.head.clear();
                self.begin_body(head)?;
                // The kept part contained no complete head.
                Ok(end.saturating_sub(before))
            }
            None => Ok(piece.len()),
        }
    }

    fn begin_body(&mut self, head: Head) -> Result<(), Malformed> {
        if (100..200).contains(&head.status) {
            if head.status == 101 {
                return Err(Malformed("status 101, but no other protocol was requested"));
            }
            // An interim answer; the final one follows.
            return Ok(());
        }
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.state = if self.bodiless || head.status == 204 || head.status == 304 {
            State::Done
        } else {
            match head.framing {
                Framing::Length(0) => State::Done,
                Framing::Length(bytes) => State::Length(bytes),
                Framing::Chunked => State::Chunked(Chunks::default()),
                Framing::UntilClose => {
                    self.keep_alive = false;
                    State::UntilClose
                }
            }
        };
        Ok(())
    }
}

/// What matters of a head.
struct Head {
    status: u16,
    keep_alive: bool,
    framing: Framing,
}

fn malformed(error: httparse::Error) -> Malformed {
    Malformed(match error {
        httparse::Error::HeaderName => "a header's name",
        httparse::Error::HeaderValue => "a header's value",
        httparse::Error::NewLine => "a line's end in the head",
        httparse::Error::Status => "the status line",
        httparse::Error::TooManyHeaders => "more than 64 headers",
        httparse::Error::Version => "the version: not HTTP/1.x",
        httparse::Error::Token => "a token in the head",
    })
}

/// The head at the start of `bytes` and where it ends; `None` if it is not whole.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(&bytes[..bytes.len().min(HEAD_LIMIT_BYTES)]).map_err(malformed)?;
    let httparse::Status::Complete(end) = parsed else {
        if bytes.len() >= HEAD_LIMIT_BYTES {
            return Err(Malformed("a head of more than 64 KiB"));
        }
        return Ok(None);
    };
    let mut head = Head {
        status: response.code.unwrap_or(0),
        keep_alive: response.version == Some(1),
        framing: Framing::UntilClose,
    };
    if head.status < 100 {
        return Err(Malformed("a status below 100"));
    }
    let mut length = None;
    let mut chunked = false;
    for header in response.headers.iter() {
        // Lengths are compared first: most lines are none of these.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let bytes = digits(header.value).ok_or(Malformed("Content-Length"))?;
                if length.is_some_and(|other| other != bytes) {
                    return Err(Malformed("two different Content-Lengths"));
                }
                length = Some(bytes);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if chunked || !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed("a Transfer-Encoding that is not chunked"));
                }
                chunked = true;
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for token in header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    if token.eq_ignore_ascii_case(b"close") {
                        head.keep_alive = false;
                    } else if token.eq_ignore_ascii_case(b"keep-alive") {
                        head.keep_alive = true;
                    }
                }
            }
            _ => {}
        }
    }
    head.framing = match (chunked, length) {
        (true, Some(_)) => return Err(Malformed("both Content-Length and Transfer-Encoding")),
        (true, None) => Framing::Chunked,
        (false, Some(bytes)) => Framing::Length(bytes),
        (false, None) => Framing::UntilClose,
    };
    Ok(Some((head, end)))
}

/// A whole number in decimal digits only.
fn digits(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let small = !text.is_empty() && text.len() <= 18;
    let step = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'));
    small.then(|| text.iter().try_fold(0, step)).flatten()
}
