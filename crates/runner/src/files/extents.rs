//! Extents of files on their device, by FIEMAP (Documentation/filesystems/fiemap.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use crate::Error;
use crate::files::walk;

/// `_IOWR('f', 11, struct fiemap)` of <linux/fs.h>.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// Writes the file back first: then all extents have a place.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
/// Flags of an extent without a place of its own: UNKNOWN, DELALLOC, ENCODED, DATA_INLINE, DATA_TAIL.
const WITHOUT_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400;
/// Extents of one call.
const BATCH: usize = 128;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// Ranges of the device that hold the files of a folder: first byte and the byte after the last, ordered and disjoint.
///
/// # Errors
/// A file cannot be read, or the file system does not report its extents.
pub(crate) fn of_folder(folder: &Path) -> Result<Vec<[u64; 2]>, Error> {
    let mut parts = Vec::new();
    walk::each_file(folder, &mut |path| of_file(&File::open(path)?, &mut parts))?;
    Ok(joined(parts))
}

fn of_file(file: &File, parts: &mut Vec<[u64; 2]>) -> io::Result<()> {
    let mut start = 0;
    loop {
        let mut request = Request {
            start,
            length: u64::MAX - start,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        };
        // SAFETY: the descriptor is open, and the kernel writes at most `extent_count` extents.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut request) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &request.extents[..(request.mapped_extents as usize).min(BATCH)];
        for extent in found {
            if extent.flags & WITHOUT_PLACE != 0 {
                return Err(io::Error::other("the file system does not report its place on the device"));
            }
            parts.push([extent.physical, extent.physical.saturating_add(extent.length)]);
        }
        match found.last() {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 => start = last.logical + last.length,
            _ => return Ok(()),
        }
    }
}

/// The same ranges in order, adjacent ones merged.
fn joined(mut parts: Vec<[u64; 2]>) -> Vec<[u64; 2]> {
    parts.sort_unstable();
    let mut all: Vec<[u64; 2]> = Vec::new();
    for [from, to] in parts {
        match all.last_mut() {
            Some(last) if from <= last[1] => last[1] = last[1].max(to),
            _ => all.push([from, to]),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_kernel_reads_what_is_written_here() {
        assert_eq!((size_of::<Extent>(), size_of::<Request>()), (56, 32 + BATCH * 56));
    }

    #[test]
    fn what_touches_is_one() {
        let parts = vec![[30, 40], [0, 10], [10, 20], [35, 38], [21, 22]];
        assert_eq!(joined(parts), [[0, 20], [21, 22], [30, 40]]);
    }

    proptest! {
        #[test]
        fn parts_hold_the_same_bytes_in_order_and_apart(parts in prop::collection::vec((0u64..200, 1u64..20), 0..30)) {
            let parts: Vec<[u64; 2]> = parts.into_iter().map(|(from, length)| [from, from + length]).collect();
            let all = joined(parts.clone());
            prop_assert!(all.windows(2).all(|pair| pair[0][1] < pair[1][0]));
            let holds = |parts: &[[u64; 2]], at: u64| parts.iter().any(|[from, to]| (*from..*to).contains(&at));
            for at in 0..230 {
                prop_assert_eq!(holds(&parts, at), holds(&all, at));
            }
        }
    }
}
