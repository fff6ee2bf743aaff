//! Free and used space of file systems.

use std::path::Path;

use crate::Error;

fn statvfs(path: &Path) -> Result<libc::statvfs, Error> {
    use std::os::unix::ffi::OsStrExt as _;
    let text = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Refused(format!("{path:?} holds a NUL")))?;
    // SAFETY: all zero is a valid statvfs; the path ends with NUL, and the kernel fills the struct in.
    let (done, found) = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(text.as_ptr(), &raw mut found), found)
    };
    if done == 0 {
        Ok(found)
    } else {
        Err(Error::io("cannot read the free space of", path)(std::io::Error::last_os_error()))
    }
}

/// Bytes that can still be written to a file system.
pub(crate) fn free_bytes(path: &Path) -> Result<u64, Error> {
    statvfs(path).map(|found| found.f_bavail * found.f_frsize)
}

/// Bytes used on a file system.
pub(crate) fn used_bytes(path: &Path) -> Result<u64, Error> {
    statvfs(path).map(|found| (found.f_blocks - found.f_bfree) * found.f_frsize)
}
