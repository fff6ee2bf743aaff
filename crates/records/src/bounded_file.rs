//! File reader that returns an error at the end of the file.
//!
//! The parquet library skips the elements of a list in a page header one by one and does not stop at the end of the file. One
//! damaged byte would cause 2 billion empty reads.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Result};

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

/// The file of a table.
pub(crate) struct BoundedFile(pub(crate) File);

impl Length for BoundedFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for BoundedFile {
    type T = ErrorAtEnd<BufReader<File>>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.0.get_read(start).map(ErrorAtEnd)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// A reader that returns `UnexpectedEof` at the end.
pub(crate) struct ErrorAtEnd<R>(R);

impl<R: Read> Read for ErrorAtEnd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(Error::from(ErrorKind::UnexpectedEof)),
            bytes => Ok(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skips 8 bytes like the parquet library.
    fn skip(reader: &mut impl Read) -> Result<u64> {
        std::io::copy(&mut reader.take(8), &mut std::io::sink())
    }

    #[test]
    fn skipping_past_the_end_is_an_error_and_reading_up_to_it_is_none() {
        let mut reader = ErrorAtEnd(&[0; 16][..]);
        assert_eq!(skip(&mut reader).unwrap(), 8);
        assert_eq!(skip(&mut reader).unwrap(), 8);
        assert_eq!(skip(&mut reader).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(reader.read(&mut []).unwrap(), 0);
    }
}
