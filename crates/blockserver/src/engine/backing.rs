//! Backing of a device's data: anonymous memory, or a sparse file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of a device, zero where nothing was written.
pub(crate) enum Backing {
    /// Memory, freed when the server ends.
    Memory(Memory),
    /// A file, accessed by system calls and not mapped: a full disk is then an error of one request, not a signal.
    File(File),
}

impl Backing {
    /// Anonymous memory, allocated page by page when written.
    pub fn memory(size_bytes: u64) -> io::Result<Self> {
        Memory::new(size_bytes as usize).map(Self::Memory)
    }

    /// A file, made if absent and set to `size_bytes`; its content stays.
    pub fn file(path: &Path, size_bytes: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.set_len(size_bytes)?;
        Ok(Self::File(file))
    }

    /// Writes `data` at `offset`; the caller has checked the range.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory.write(offset as usize, data);
                Ok(())
            }
            Self::File(file) => file.write_all_at(data, offset),
        }
    }

    /// Makes bytes zero and frees their space.
    pub fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        match self {
            Self::Memory(memory) => memory.discard(offset as usize, length as usize),
            Self::File(file) => {
                Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length)?)
            }
        }
    }
}

/// Private anonymous memory that does not count against overcommit until it is written.
pub(crate) struct Memory {
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping lives as long as the value, and any thread may access it; concurrent accesses to the same bytes are
// discussed at `bytes` and `write`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(length: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, flags) }?;
        // With huge pages a random 4 KiB write would use 2 MiB. A refusal is harmless.
        // SAFETY: advice about the mapping just made.
        let _ = unsafe { madvise(start, length, Advice::LinuxNoHugepage) };
        Ok(Self { start: start.cast(), length })
    }

    /// The bytes `offset..offset + length`, for a system call to copy out.
    ///
    /// A write to the same bytes may run at the same time, as on any disk; so the slice must only be passed to the
    /// kernel, which copies bytes that may change, and never be read by Rust code.
    pub fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        let (offset, end) = (offset.min(self.length), offset.saturating_add(length).min(self.length));
        // SAFETY: the range is inside the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.add(offset), end - offset) }
    }

    fn write(&self, offset: usize, data: &[u8]) {
        let offset = offset.min(self.length);
        let length = data.len().min(self.length - offset);
        // SAFETY: the range is inside the mapping, and `data` is a separate buffer. After concurrent writes each byte is
        // from one of them, as on any disk.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.start.add(offset), length) };
    }

    fn discard(&self, offset: usize, length: usize) -> io::Result<()> {
        const PAGE: usize = 4096;
        let (first, end) = (offset.min(self.length), offset.saturating_add(length).min(self.length));
        let (whole_first, whole_end) = (first.next_multiple_of(PAGE), end / PAGE * PAGE);
        if whole_first >= whole_end {
            self.zero(first, end);
            return Ok(());
        }
        self.zero(first, whole_first);
        self.zero(whole_end, end);
        // SAFETY: whole pages inside the mapping; private anonymous pages read as zero afterwards.
        unsafe {
            let start = self.start.add(whole_first).cast();
            Ok(madvise(start, whole_end - whole_first, Advice::LinuxDontNeed)?)
        }
    }

    fn zero(&self, first: usize, end: usize) {
        // SAFETY: the callers clip the range to the mapping.
        unsafe { std::ptr::write_bytes(self.start.add(first), 0, end - first) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(backing: &Backing, offset: usize, length: usize) -> Vec<u8> {
        match backing {
            Backing::Memory(memory) => memory.bytes(offset, length).to_vec(),
            Backing::File(file) => {
                let mut data = vec![0; length];
                file.read_exact_at(&mut data, offset as u64).unwrap();
                data
            }
        }
    }

    #[test]
    fn discard_zeroes_exactly_its_range() {
        let folder = tempfile::tempdir().unwrap();
        let file = Backing::file(&folder.path().join("disk"), 65_536).unwrap();
        for backing in [Backing::memory(65_536).unwrap(), file] {
            for (offset, length) in [(0u64, 65_536u64), (100, 300), (4096, 8192), (4000, 10_000), (4095, 2)] {
                backing.write(0, &[7; 65_536]).unwrap();
                backing.discard(offset, length).unwrap();
                for (at, byte) in read(&backing, 0, 65_536).iter().enumerate() {
                    let inside = (offset..offset + length).contains(&(at as u64));
                    assert_eq!(
                        *byte,
                        if inside { 0 } else { 7 },
                        "byte {at} after discarding {offset}+{length}"
                    );
                }
            }
        }
    }
}
