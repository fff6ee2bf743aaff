//! Where events wait until the measurement is over: first in memory, then in an unlinked file.
//!
//! Turning events into Parquet costs several times what taking them costs, so it is not done while the host under
//! test is measured.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::event::{EVENT_BYTES, Event};
use crate::Error;

/// Events are kept in pieces of this many bytes, so that no piece is ever copied again.
const CHUNK_BYTES: usize = 32_768 * EVENT_BYTES;

/// Encoded events in the order of their arrival.
pub(crate) struct Spool {
    chunks: Vec<Vec<u8>>,
    memory_chunks: usize,
    directory: PathBuf,
    overflow: Option<File>,
    failure: Option<Error>,
}

impl Spool {
    /// At most about `memory_bytes` are held in memory; what exceeds it goes to a file in `directory`.
    pub(crate) fn new(memory_bytes: usize, directory: &Path) -> Self {
        Spool {
            chunks: Vec::new(),
            memory_chunks: (memory_bytes / CHUNK_BYTES).max(1),
            directory: directory.to_owned(),
            overflow: None,
            failure: None,
        }
    }

    /// Adds one encoded event. A failure of the file is kept for [`Spool::finish`]: there is no one to tell it to here.
    pub(crate) fn push(&mut self, event: &[u8]) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() + event.len() <= CHUNK_BYTES => chunk.extend_from_slice(event),
            _ => self.push_to_new_chunk(event),
        }
    }

    fn push_to_new_chunk(&mut self, event: &[u8]) {
        if self.chunks.len() > self.memory_chunks
            && let Some(mut full) = self.chunks.pop()
        {
            if self.failure.is_none()
                && let Err(error) = self.spill(&full)
            {
                self.failure = Some(error);
            }
            full.clear();
            full.extend_from_slice(event);
            self.chunks.push(full);
            return;
        }
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        chunk.extend_from_slice(event);
        self.chunks.push(chunk);
    }

    fn spill(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let directory = self.directory.clone();
        let file = match &mut self.overflow {
            Some(file) => file,
            None => self.overflow.insert(unlinked_file(&directory)?),
        };
        file.write_all(bytes).map_err(Error::io(&directory))
    }

    /// Calls `each` with every event, in order.
    ///
    /// # Errors
    /// The overflow file could not be written or read, or `each` failed.
    pub(crate) fn finish(mut self, mut each: impl FnMut(Event) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        // The last chunk is the newest; the overflow file continues the ones before it.
        let newest = if self.overflow.is_some() { self.chunks.pop() } else { None };
        let mut decode = |bytes: &[u8]| match Event::decode(bytes) {
            Some(event) => each(event),
            None => Ok(()),
        };
        for chunk in &self.chunks {
            chunk.chunks_exact(EVENT_BYTES).try_for_each(&mut decode)?;
        }
        if let Some(mut file) = self.overflow.take() {
            let length = file.stream_position().map_err(Error::io(&self.directory))?;
            file.seek(SeekFrom::Start(0)).map_err(Error::io(&self.directory))?;
            let mut reader = BufReader::with_capacity(1 << 20, file);
            let mut event = [0; EVENT_BYTES];
            for _ in 0..length / EVENT_BYTES as u64 {
                reader.read_exact(&mut event).map_err(Error::io(&self.directory))?;
                decode(&event)?;
            }
        }
        if let Some(chunk) = newest {
            chunk.chunks_exact(EVENT_BYTES).try_for_each(&mut decode)?;
        }
        Ok(())
    }
}

/// A file that is gone when it is closed, even after a crash.
fn unlinked_file(directory: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(directory)
        .map_err(Error::io(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_overflow() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(1, directory.path());
        let count = 5 * (CHUNK_BYTES / EVENT_BYTES) + 17;
        for index in 0..count {
            let mut bytes = [0; EVENT_BYTES];
            bytes[32..40].copy_from_slice(&(index as u64).to_ne_bytes());
            spool.push(&bytes);
        }
        assert!(spool.overflow.is_some());
        let mut sectors = Vec::new();
        spool.finish(|event| {
            sectors.push(event.sector);
            Ok(())
        }).unwrap();
        assert!(sectors.iter().copied().eq(0..count as u64));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_system_that_refuses_is_reported_at_the_end() {
        let mut spool = Spool::new(1, Path::new("/proc"));
        for _ in 0..4 * (CHUNK_BYTES / EVENT_BYTES) {
            spool.push(&[0; EVENT_BYTES]);
        }
        assert!(matches!(spool.finish(|_| Ok(())), Err(Error::Io { .. })));
    }
}
