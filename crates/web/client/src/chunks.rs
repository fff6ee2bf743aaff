//! Incremental decoder of chunked bodies (RFC 9112, 7.1).

use crate::parser::{HEAD_LIMIT_BYTES, Malformed};

/// Longest extension of a chunk.
const EXTENSION_LIMIT_BYTES: usize = 4096;
/// Digits of a size: 2^60 bytes are enough.
const SIZE_DIGITS: u8 = 15;

/// Where in a chunked body the last piece ended.
#[derive(Debug)]
pub(crate) enum Chunks {
    /// In the digits of a size.
    Size { bytes: u64, digits: u8 },
    /// After the digits, with the number of bytes skipped so far.
    Extension { bytes: u64, skipped: usize },
    /// Between the `\r` and `\n` behind a size.
    SizeEnd { bytes: u64 },
    /// In the data of a chunk, with the number of bytes left.
    Data { left: u64 },
    /// Before the `\r` behind a chunk.
    DataEnd,
    /// Before the `\n` behind a chunk.
    DataEndNewline,
    /// In the trailers: bytes so far, and bytes of the current line including `\r`.
    Trailer { skipped: usize, line: usize, return_seen: bool },
    /// At the end.
    Done,
}

impl Default for Chunks {
    fn default() -> Self {
        Chunks::Size { bytes: 0, digits: 0 }
    }
}

impl Chunks {
    pub fn is_done(&self) -> bool {
        matches!(self, Chunks::Done)
    }

    /// Reads a piece; returns how much of it belongs to the body.
    pub fn feed(&mut self, piece: &[u8], mut body: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < piece.len() {
            match self {
                Chunks::Done => break,
                Chunks::Data { left } => {
                    let here = (*left).min((piece.len() - at) as u64);
                    body(&piece[at..at + here as usize]);
                    at += here as usize;
                    *left -= here;
                    if *left == 0 {
                        *self = Chunks::DataEnd;
                    }
                }
                _ => {
                    self.byte(piece[at])?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    /// Reads a byte that is not data.
    fn byte(&mut self, byte: u8) -> Result<(), Malformed> {
        let next = match (&mut *self, byte) {
            (&mut Chunks::Size { bytes, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if digits == SIZE_DIGITS {
                    return Err(Malformed("a chunk's size of more than 15 digits"));
                }
                // The arm has hexadecimal digits only.
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                Chunks::Size { bytes: bytes << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Chunks::Size { digits: 0, .. }, _) => return Err(Malformed("a chunk without a size")),
            (&mut Chunks::Size { bytes, .. }, b'\r') => Chunks::SizeEnd { bytes },
            (&mut Chunks::Size { bytes, .. }, b';' | b' ' | b'\t') => Chunks::Extension { bytes, skipped: 1 },
            (&mut Chunks::Extension { bytes, .. }, b'\r') => Chunks::SizeEnd { bytes },
            (&mut Chunks::Extension { bytes, skipped }, b' '..=b'~' | b'\t' | 0x80..) => {
                if skipped == EXTENSION_LIMIT_BYTES {
                    return Err(Malformed("a chunk's extension of more than 4 KiB"));
                }
                Chunks::Extension { bytes, skipped: skipped + 1 }
            }
            (Chunks::SizeEnd { bytes: 0 }, b'\n') => {
                Chunks::Trailer { skipped: 0, line: 0, return_seen: false }
            }
            (&mut Chunks::SizeEnd { bytes }, b'\n') => Chunks::Data { left: bytes },
            (Chunks::DataEnd, b'\r') => Chunks::DataEndNewline,
            (Chunks::DataEndNewline, b'\n') => Chunks::default(),
            (&mut Chunks::Trailer { skipped, line, return_seen }, _) => {
                return self.trailer(byte, skipped, line, return_seen);
            }
            _ => return Err(Malformed("a chunk's end")),
        };
        *self = next;
        Ok(())
    }

    fn trailer(&mut self, byte: u8, skipped: usize, line: usize, return_seen: bool) -> Result<(), Malformed> {
        *self = match (byte, return_seen) {
            _ if skipped == HEAD_LIMIT_BYTES => return Err(Malformed("trailers of more than 64 KiB")),
            (b'\n', true) if line == 0 => Chunks::Done,
            (b'\n', true) => Chunks::Trailer { skipped: skipped + 1, line: 0, return_seen: false },
            (b'\n', false) | (_, true) => return Err(Malformed("a trailer's end")),
            (b'\r', false) => Chunks::Trailer { skipped: skipped + 1, line, return_seen: true },
            (_, false) => Chunks::Trailer { skipped: skipped + 1, line: line + 1, return_seen: false },
        };
        Ok(())
    }
}
