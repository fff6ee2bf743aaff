//! Lines out of a stream of bytes, none longer than it may be.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};

use crate::Message;

/// The longest line, in bytes: who is not let in yet may send anything.
pub const MOST_BYTES: usize = 4096;

/// Reads messages.
pub struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// From the beginning of a stream.
    pub fn new(from: R) -> Self {
        Lines { from: BufReader::new(from), line: Vec::new() }
    }

    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream fails or is silent for longer than its timeout, ends within a line, or what came is no message.
    pub fn next_message(&mut self) -> io::Result<Option<Message>> {
        let bad = |what: String| io::Error::new(ErrorKind::InvalidData, what);
        self.line.clear();
        loop {
            let some = match self.from.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                some => some?,
            };
            if some.is_empty() {
                return match self.line.len() {
                    0 => Ok(None),
                    _ => Err(ErrorKind::UnexpectedEof.into()),
                };
            }
            let end = some.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(some.len());
            if self.line.len() + taken > MOST_BYTES {
                return Err(bad(format!("a line of more than {MOST_BYTES} bytes")));
            }
            self.line.extend_from_slice(&some[..taken]);
            self.from.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Message::parse(&self.line).map(Some).map_err(bad);
            }
        }
    }
}
