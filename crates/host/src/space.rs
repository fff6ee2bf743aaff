//! Size and free space of a file system.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Total bytes.
    pub size_bytes: u64,
    /// Free bytes, including those reserved for root.
    pub free_bytes: u64,
    /// Bytes available to every user.
    pub available_bytes: u64,
}

impl Space {
    /// Bytes that are taken.
    pub fn used_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.free_bytes)
    }
}

/// Space of the file system that a path lies on.
///
/// # Errors
/// The kernel refuses.
pub fn of(path: &Path) -> io::Result<Space> {
    let found = statvfs(path)?;
    Ok(Space {
        block_bytes: found.f_bsize,
        size_bytes: found.f_blocks * found.f_frsize,
        free_bytes: found.f_bfree * found.f_frsize,
        available_bytes: found.f_bavail * found.f_frsize,
    })
}
