//! Spool: buffer of events until the measurement ends, in memory, then in an unlinked file.
//!
//! Conversion of events to Parquet costs several times their collection, and is done after the measurement.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// Events in one chunk: a chunk is never reallocated.
const CHUNK_EVENTS: usize = 32_768;

/// Encoded events in order of arrival.
pub(crate) struct Spool {
    event_bytes: usize,
    chunks: Vec<Vec<u8>>,
    memory_chunks: usize,
    directory: PathBuf,
    overflow: Option<File>,
    overflow_bytes: u64,
    failure: Option<Error>,
}

impl Spool {
    /// A spool for events of `event_bytes` each. About `memory_bytes` are kept in memory, the rest in a file in `directory`.
    pub(crate) fn new(event_bytes: usize, memory_bytes: usize, directory: &Path) -> Self {
        Spool {
            event_bytes,
            chunks: Vec::new(),
            memory_chunks: (memory_bytes / (CHUNK_EVENTS * event_bytes)).max(1),
            directory: directory.to_owned(),
            overflow: None,
            overflow_bytes: 0,
            failure: None,
        }
    }

    /// Adds one encoded event. An error of the file is reported by [`Spool::each`].
    pub(crate) fn push(&mut self, event: &[u8]) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_EVENTS * self.event_bytes => chunk.extend_from_slice(event),
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
        let mut chunk = Vec::with_capacity(CHUNK_EVENTS * self.event_bytes);
        chunk.extend_from_slice(event);
        self.chunks.push(chunk);
    }

    fn spill(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let directory = self.directory.clone();
        let file = match &mut self.overflow {
            Some(file) => file,
            None => self.overflow.insert(unlinked_file(&directory)?),
        };
        file.write_all(bytes).map_err(Error::io(&directory))?;
        self.overflow_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Calls `each` with every event, in order. No event may be added afterwards.
    ///
    /// # Errors
    /// The overflow file could not be written or read, or `each` failed.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        // The last chunk is the newest; the overflow file has those before it.
        let newest = self.chunks.len() - usize::from(self.overflow.is_some());
        let (oldest, newest) = self.chunks.split_at(newest);
        for chunk in oldest {
            chunk.chunks_exact(self.event_bytes).try_for_each(&mut each)?;
        }
        if let Some(file) = &mut self.overflow {
            file.seek(SeekFrom::Start(0)).map_err(Error::io(&self.directory))?;
            let mut reader = BufReader::with_capacity(1 << 20, file);
            let mut event = vec![0; self.event_bytes];
            for _ in 0..self.overflow_bytes / self.event_bytes as u64 {
                reader.read_exact(&mut event).map_err(Error::io(&self.directory))?;
                each(&event)?;
            }
        }
        newest.iter().try_for_each(|chunk| chunk.chunks_exact(self.event_bytes).try_for_each(&mut each))
    }
}

/// An unlinked file: it ends when closed, also after a crash.
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
        let mut spool = Spool::new(8, 1, directory.path());
        let count = 5 * CHUNK_EVENTS as u64 + 17;
        (0..count).for_each(|index| spool.push(&index.to_ne_bytes()));
        assert!(spool.overflow.is_some());
        for _ in 0..2 {
            let mut found = Vec::new();
            let each = |event: &[u8]| {
                found.push(u64::from_ne_bytes(event.try_into().unwrap()));
                Ok(())
            };
            spool.each(each).unwrap();
            assert!(found.into_iter().eq(0..count));
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_system_that_refuses_is_reported_at_the_end() {
        let mut spool = Spool::new(8, 1, Path::new("/proc"));
        (0..4 * CHUNK_EVENTS).for_each(|_| spool.push(&[0; 8]));
        assert!(matches!(spool.each(|_| Ok(())), Err(Error::Io { .. })));
    }
}
