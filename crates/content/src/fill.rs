//! Initial content of a file set.
//!
//! Direct I/O in large requests where the file system allows it: dirty pages would be written back during the
//! measurement.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use crate::pattern::Key;

const PIECE_BYTES: usize = 1 << 20;
const ALIGNMENT: usize = 4096;

/// Opens a file, or a device, for [`Filler::write`]: with direct I/O where that is possible.
///
/// # Errors
/// The system refuses.
pub fn open(path: &Path, create: bool) -> io::Result<File> {
    let options = |flags| {
        let mut options = File::options();
        options.write(true).create(create).custom_flags(flags);
        options
    };
    match options(libc::O_DIRECT).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => options(0).open(path),
        opened => opened,
    }
}

/// Writes patterns; holds the memory for it, aligned for direct I/O.
pub struct Filler {
    memory: Vec<u8>,
    start: usize,
}

impl Default for Filler {
    fn default() -> Self {
        let memory = vec![0; PIECE_BYTES + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Filler { memory, start }
    }
}

impl Filler {
    /// Writes a whole file of `size_bytes`, a multiple of 4096; makes it if it is not there.
    ///
    /// # Errors
    /// The device is full or failed.
    pub fn file(&mut self, path: &Path, key: Key, size_bytes: u64) -> io::Result<()> {
        let file = open(path, true)?;
        // One extent where the file system can: a file written in pieces beside others would be scattered.
        let _ = fallocate(&file, FallocateFlags::empty(), 0, size_bytes);
        self.write(&file, key, 0, 0, size_bytes)
    }

    /// Writes `size` bytes at `at`, with the pattern that belongs at `offset`; all multiples of 4096.
    ///
    /// # Errors
    /// The device is full or failed.
    pub fn write(&mut self, file: &File, key: Key, offset: u64, at: u64, size: u64) -> io::Result<()> {
        let mut done = 0;
        while done < size {
            let length = (size - done).min(PIECE_BYTES as u64) as usize;
            let piece = &mut self.memory[self.start..self.start + length];
            key.fill(offset + done, piece);
            file.write_all_at(piece, at + done)?;
            done += length as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_what_a_verifying_replay_expects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let key = Key::new("text", Some(3), 9);
        Filler::default().file(&path, key, 3 * 1024 * 1024 + 4096).unwrap();
        let found = std::fs::read(&path).unwrap();
        assert_eq!(found.len(), 3 * 1024 * 1024 + 4096);
        assert!(key.matches(0, &found));
    }
}
