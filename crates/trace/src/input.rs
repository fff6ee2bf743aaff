//! Input of a trace, plain or compressed, detected by its first bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Error;

/// Number of decompressed bytes used to detect a format.
pub const HEAD_BYTES: usize = 64 << 10;

/// Bytes per read of the file.
const CHUNK_BYTES: usize = 1 << 18;

/// An opened trace, with buffered but unconsumed first bytes.
pub struct Input {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    /// Unconsumed bytes: `buffer[start..end]`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed, decompressed.
    consumed: u64,
    ended: bool,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read, or its compressed beginning is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Self::from_reader(path, file)
    }

    /// Reads from another source, such as a pipe; the path is for errors only.
    ///
    /// # Errors
    /// Same as [`Input::open`].
    pub fn from_reader(path: &Path, mut raw: impl Read + Send + 'static) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut magic = [0; 6];
        let mut have = 0;
        while have < magic.len() {
            match raw.read(&mut magic[have..]) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io(error)),
            }
        }
        let whole = io::Cursor::new(magic).take(have as u64).chain(raw);
        let mut input = Input {
            path: path.to_owned(),
            source: decompressed(&magic[..have], whole).map_err(io)?,
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            consumed: 0,
            ended: false,
        };
        while input.end < HEAD_BYTES && input.fill()? {}
        Ok(input)
    }

    /// The file's name, for errors.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unconsumed bytes.
    pub fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes consumed so far, decompressed.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Consumes available bytes.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.consumed += bytes as u64;
    }

    /// Makes at least `bytes` available, or all remaining ones.
    ///
    /// # Errors
    /// The file cannot be read, or compressed data is damaged or truncated.
    pub fn need(&mut self, bytes: usize) -> Result<&[u8], Error> {
        while self.end - self.start < bytes && self.fill()? {}
        Ok(self.available())
    }

    /// Reads more bytes; returns whether there were any.
    ///
    /// # Errors
    /// Same as [`Input::need`].
    pub fn fill(&mut self) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 && self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    self.ended = read == 0;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { path: self.path.clone(), source }),
            }
        }
    }
}

/// Decompressed stream of gzip, bzip2, xz or zstd, with several members in sequence.
fn decompressed(magic: &[u8], raw: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let buffered = |raw| io::BufReader::with_capacity(CHUNK_BYTES, raw);
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(raw))),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(raw))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(buffered(raw)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::with_buffer(buffered(raw))?),
        _ => Box::new(raw),
    })
}
