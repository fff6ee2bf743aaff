//! Lines of bounded length from a stream of bytes.

use std::io::{self, ErrorKind};

/// Maximum length of a line, in bytes: an unauthenticated connection may send anything.
pub const MOST_BYTES: usize = 4096;

/// Received bytes that are not yet taken as lines.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Number of bytes known to have no end of a line.
    searched: usize,
}

impl LineBuffer {
    /// Adds received bytes.
    pub fn push(&mut self, some: &[u8]) {
        self.bytes.extend_from_slice(some);
    }

    /// Takes the next line, without its end; `None` if it is not complete.
    ///
    /// # Errors
    /// The line is longer than [`MOST_BYTES`].
    pub fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let end = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let length = end.map_or(self.bytes.len(), |end| self.searched + end);
        if length > MOST_BYTES {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("a line of more than {MOST_BYTES} bytes"),
            ));
        }
        if end.is_none() {
            self.searched = length;
            return Ok(None);
        }
        self.searched = 0;
        let rest = self.bytes.split_off(length + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.truncate(length);
        Ok(Some(line))
    }

    /// Whether a line is incomplete.
    pub fn is_within_line(&self) -> bool {
        !self.bytes.is_empty()
    }
}
