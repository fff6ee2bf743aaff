//! A file that is read at any place.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::MARK;
use super::chunk::{Chunk, HEAD_BYTES, Head, Names};
use super::index::{FOOTER_BYTES, Index};
use crate::error::{Bad, Place};
use crate::{Error, TraceRequest};

/// Largest index: that of 10^11 requests.
const MOST_INDEX_BYTES: u64 = 1 << 30;

/// An open file with its index. Chunks are read by positional reads: several readers can share it, and a file that somebody
/// cuts off is an error (in a memory map it would be a signal).
#[derive(Debug)]
pub struct PackedFile {
    file: File,
    path: PathBuf,
    index: Index,
}

impl PackedFile {
    /// Opens a file and reads its index.
    ///
    /// # Errors
    /// The file cannot be read, is no trace of weir's own format, or is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let bytes = file.metadata().map_err(|source| Error::Io { path: path.to_owned(), source })?.len();
        let mut opened = PackedFile { file, path: path.to_owned(), index: Index::default() };
        let least = (MARK.len() + HEAD_BYTES + FOOTER_BYTES) as u64;
        if bytes < least {
            return Err(opened.bad(0, Bad::number("size", bytes, "that of a whole trace of weir")));
        }
        let mut mark = [0; MARK.len()];
        opened.at(0, &mut mark)?;
        if mark != MARK {
            return Err(opened.bad(0, Bad::text("the first bytes", &mark, "weirtrc1")));
        }
        let mut footer = [0; FOOTER_BYTES];
        let footer_at = bytes - FOOTER_BYTES as u64;
        opened.at(footer_at, &mut footer)?;
        let index_at = Index::offset(&footer).map_err(|bad| opened.bad(footer_at, bad))?;
        if index_at > footer_at || bytes - index_at > MOST_INDEX_BYTES {
            return Err(
                opened.bad(footer_at, Bad::number("offset of the index", index_at, "one within the file"))
            );
        }
        let mut index = vec![0; (bytes - index_at) as usize];
        opened.at(index_at, &mut index)?;
        opened.index =
            Index::decode(&index, MARK.len() as u64, index_at).map_err(|bad| opened.bad(index_at, bad))?;
        Ok(opened)
    }

    /// A file that was just written.
    pub(super) fn written(file: File, path: PathBuf, index: Index) -> Self {
        PackedFile { file, path, index }
    }

    /// Its index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Reads a chunk. Devices keep the numbers of the file.
    ///
    /// # Errors
    /// It cannot be read, or is damaged. A number that is not below [`Index::chunks`] makes an empty chunk.
    pub fn read(&self, number: usize, into: &mut Chunk) -> Result<(), Error> {
        let Some((offset, bytes)) = self.index.range(number) else {
            *into = Chunk::default();
            return Ok(());
        };
        let mut buffer = std::mem::take(&mut into.bytes);
        buffer.resize(bytes, 0);
        self.at(offset, &mut buffer)?;
        let decoded = decode(&buffer, into);
        if decoded.is_err() {
            *into = Chunk::default();
        }
        into.bytes = buffer;
        decoded.map_err(|bad| self.bad(offset, bad))
    }

    /// All requests, in order.
    pub fn rows(&self) -> Rows<'_> {
        Rows { file: self, position: Position::default() }
    }

    /// As [`PackedFile::rows`]; closes the file at the end.
    pub fn into_rows(self) -> IntoRows {
        IntoRows { file: self, position: Position::default() }
    }

    fn at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let io = |source| Error::Io { path: self.path.clone(), source };
        self.file.read_exact_at(buffer, offset).map_err(io)
    }

    fn bad(&self, offset: u64, bad: Bad) -> Error {
        Error::Bad { path: self.path.clone(), place: Place::Byte(offset), bad }
    }
}

fn decode(bytes: &[u8], into: &mut Chunk) -> Result<(), Bad> {
    let short = || Bad::number("bytes of a chunk", bytes.len(), "those that its head says");
    let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(short)?;
    let head = Head::read(head)?;
    // The chunk that ends a file may follow directly.
    let body = body.get(..head.body_bytes()).ok_or_else(short)?;
    into.decode(&head, body, &mut Names::new())
}

/// Requests of a file in order.
#[derive(Debug)]
pub struct Rows<'a> {
    file: &'a PackedFile,
    position: Position,
}

/// As [`Rows`], of a file that it owns.
#[derive(Debug)]
pub struct IntoRows {
    file: PackedFile,
    position: Position,
}

#[derive(Debug, Default)]
struct Position {
    chunk: Chunk,
    /// Number of the chunk to read next.
    number: usize,
    next: usize,
}

impl Position {
    fn next(&mut self, file: &PackedFile) -> Option<Result<TraceRequest, Error>> {
        while self.next == self.chunk.len() {
            if self.number == file.index.chunks() {
                return None;
            }
            let read = file.read(self.number, &mut self.chunk);
            self.number += 1;
            self.next = 0;
            if let Err(error) = read {
                self.number = file.index.chunks();
                self.chunk = Chunk::default();
                return Some(Err(error));
            }
        }
        self.next += 1;
        Some(Ok(self.chunk.get(self.next - 1)))
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<TraceRequest, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.position.next(self.file)
    }
}

impl Iterator for IntoRows {
    type Item = Result<TraceRequest, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.position.next(&self.file)
    }
}
