//! Free and used space of file systems.

use std::path::Path;

use weir_host::space::{self, Space};

use crate::Error;

fn space(path: &Path) -> Result<Space, Error> {
    space::of(path).map_err(Error::io("cannot read the free space of", path))
}

/// Bytes that can still be written to a file system.
pub(crate) fn free_bytes(path: &Path) -> Result<u64, Error> {
    space(path).map(|found| found.available_bytes)
}

/// Bytes used on a file system.
pub(crate) fn used_bytes(path: &Path) -> Result<u64, Error> {
    space(path).map(|found| found.used_bytes())
}
