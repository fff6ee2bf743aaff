//! Input of a trace: compressed or not, detected by its first bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Error;

/// How many of the first bytes, decompressed, a format is detected from.
pub const HEAD_BYTES: usize = 64 << 10;

/// Bytes asked of the file at once.
const CHUNK_BYTES: usize = 1 << 18;

/// A trace that has been opened; its first bytes have been looked at, but are still to be read.
pub struct Input {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    /// What has been read and not been consumed: `buffer[start..end]`.
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
    /// It cannot be read, or its compressed beginning is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Self::from_reader(path, file)
    }

    /// Reads from something else, such as a pipe; the path is for errors only.
    ///
    /// # Errors
    /// As [`Input::open`].
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

    /// What has been read and not been consumed.
    pub fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes consumed so far, decompressed.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Passes over the next bytes, which are available.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.consumed += bytes as u64;
    }

    /// Makes at least `bytes` available, or all that are left.
    ///
    /// # Errors
    /// The file cannot be read; what is compressed is damaged or cut short.
    pub fn need(&mut self, bytes: usize) -> Result<&[u8], Error> {
        while self.end - self.start < bytes && self.fill()? {}
        Ok(self.available())
    }

    /// Reads on; whether there was anything.
    ///
    /// # Errors
    /// As [`Input::need`].
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

/// The stream behind its compression: gzip, bzip2, xz or zstd, several members behind one another included.
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
