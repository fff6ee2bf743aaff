//! Streams and files of records.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::{Error, RECORD_BYTES, Record, VERSION};

/// Bytes requested from the source in one read.
const READ_BYTES: usize = 1 << 18;

/// Reads the records of a stream.
pub struct Reader<R> {
    path: PathBuf,
    source: R,
    buffer: Vec<u8>,
    used: usize,
    offset: u64,
    ended: bool,
}

impl Reader<File> {
    /// Opens a file of one CPU, such as `loop0.blktrace.0`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Ok(Reader::new(file, path))
    }
}

impl<R: Read> Reader<R> {
    /// Reads from `source`; `path` is its name in errors.
    pub fn new(source: R, path: &Path) -> Self {
        Reader { path: path.to_owned(), source, buffer: Vec::new(), used: 0, offset: 0, ended: false }
    }

    fn fill(&mut self) -> Result<usize, Error> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + READ_BYTES, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(held + read.as_ref().copied().unwrap_or(0));
        read.map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    fn advance(&mut self) -> Result<Option<Record>, Error> {
        loop {
            if let Some((record, length)) = Record::decode(&self.buffer[self.used..], self.offset)? {
                self.used += length;
                self.offset += length as u64;
                return Ok(Some(record));
            }
            if self.fill()? == 0 {
                let rest = &self.buffer[self.used..];
                if rest.is_empty() {
                    return Ok(None);
                }
                let payload = if rest.len() < RECORD_BYTES {
                    0
                } else {
                    let bytes = [rest[46], rest[47]];
                    let little = rest[0] == VERSION as u8;
                    usize::from(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
                };
                return Err(Error::Truncated {
                    offset: self.offset,
                    have: rest.len(),
                    need: RECORD_BYTES + payload,
                });
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Writes `PREFIX.blktrace.CPU` for every CPU up to the highest that has a record, as blktrace(8) does, so that
/// blkparse, btt and fio read them: records are numbered and in the order of time, and have no cgroup ids.
/// Returns the files.
///
/// # Errors
/// A file cannot be written.
pub fn write_per_cpu(prefix: &Path, records: &mut [Record]) -> Result<Vec<PathBuf>, Error> {
    records.sort_by_key(|record| record.time_ns);
    let highest = records.iter().map(|record| record.cpu).max().unwrap_or(0);
    let mut files = Vec::new();
    for cpu in 0..=highest {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!(".blktrace.{cpu}"));
        let path = PathBuf::from(name);
        let io = |source| Error::Io { path: path.clone(), source };
        let mut file = BufWriter::new(File::create(&path).map_err(io)?);
        for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| record.cpu == cpu) {
            record.sequence = u32::try_from(index + 1).unwrap_or(u32::MAX);
            record.forget_cgroup();
            file.write_all(&record.encode()).map_err(io)?;
        }
        file.flush().map_err(io)?;
        files.push(path);
    }
    Ok(files)
}
