//! Writing the files of a class, so that what is read later has been written.
//!
//! Direct I/O in large pieces: reads of blocks that were never written do not reach the device, and dirty
//! pages left behind would be written out in the middle of the measurement.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use weir_replayer::pattern::Key;

use crate::Error;
use crate::place::{Place, file_path};

const PIECE_BYTES: usize = 1 << 20;
const ALIGNMENT: usize = 4096;

/// Writes all files of a class.
///
/// # Errors
/// The device is full or failed.
pub(crate) fn fill(place: &Place, seed: u64) -> Result<(), Error> {
    let mut buffer = Buffer::new();
    if place.is_raw() {
        let file = open(&place.path, false).map_err(failed(&place.path))?;
        for (offset, size) in place.offsets_bytes.iter().zip(place.files.sizes_bytes()) {
            // On a raw device the replayer knows no files: the pattern is the device's.
            let key = Key::new(&place.class.name, None, seed);
            write(&file, key, *offset, *offset, *size, &mut buffer).map_err(failed(&place.path))?;
        }
        return file.sync_all().map_err(failed(&place.path));
    }
    fs::create_dir_all(&place.path).map_err(failed(&place.path))?;
    for (id, size) in (0..).zip(place.files.sizes_bytes()) {
        let path = file_path(&place.path, id);
        let file = open(&path, true).map_err(failed(&path))?;
        // One extent where the file system can: a file written in pieces beside others would be scattered.
        // SAFETY: the descriptor is open for the duration of the call.
        unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, i64::try_from(*size).unwrap_or(i64::MAX)) };
        let key = Key::new(&place.class.name, Some(id), seed);
        write(&file, key, 0, 0, *size, &mut buffer).map_err(failed(&path))?;
    }
    Ok(())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    Error::io("cannot fill", path)
}

fn open(path: &Path, create: bool) -> io::Result<File> {
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

/// Writes `size` bytes at `at`, with the pattern that belongs at `offset`.
fn write(file: &File, key: Key, offset: u64, at: u64, size: u64, buffer: &mut Buffer) -> io::Result<()> {
    let mut done = 0;
    while done < size {
        let length = (size - done).min(PIECE_BYTES as u64) as usize;
        let piece = &mut buffer.bytes()[..length];
        key.fill(offset + done, piece);
        file.write_all_at(piece, at + done)?;
        done += length as u64;
    }
    Ok(())
}

/// Memory aligned for direct I/O.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new() -> Self {
        let memory = vec![0; PIECE_BYTES + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Buffer { memory, start }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + PIECE_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_what_a_verifying_replay_expects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let file = open(&path, true).unwrap();
        let key = Key::new("text", Some(3), 9);
        write(&file, key, 0, 0, 3 * 1024 * 1024 + 4096, &mut Buffer::new()).unwrap();
        let found = fs::read(&path).unwrap();
        assert_eq!(found.len(), 3 * 1024 * 1024 + 4096);
        assert!(key.matches(0, &found));
    }
}
