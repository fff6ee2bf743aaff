//! Target of requests: a block device, a file, or a folder of files.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, fstatfs, ioctl_blksszget, statx};
use serde::{Deserialize, Serialize};
use weir_content::{file_id, file_name};

use crate::Error;
use crate::buffer::Buffer;

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A block device, addressed by byte.
    BlockDevice,
    /// A regular file, addressed by byte.
    File,
    /// A directory whose files are named by [`crate::file_name`], addressed by file and byte.
    Directory,
}

/// One open file or device.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: File,
    /// Addressable bytes.
    pub size_bytes: u64,
    /// Alignment of offsets and lengths; 1 without a restriction.
    pub alignment_bytes: u64,
    /// Whether transfers bypass the page cache.
    pub direct: bool,
}

impl OpenFile {
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// A target and everything in it.
#[derive(Debug)]
pub(crate) struct Target {
    pub path: PathBuf,
    pub kind: Kind,
    /// One entry, or one for each file of the directory.
    pub files: Vec<OpenFile>,
    /// Place of the first file among those of all targets.
    pub first_file: u32,
    /// Index into `files` by file number; empty unless the target is a directory.
    pub by_id: HashMap<u32, usize>,
}

/// Options of opening.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub write: bool,
    pub direct: bool,
    /// Whether a writable block device is opened exclusively.
    pub exclusive: bool,
}

impl Target {
    /// Opens a target of any kind; `first_file` is the number of files of earlier targets.
    pub fn open(path: &Path, access: Access, first_file: u32) -> Result<Self, Error> {
        let failed = |doing| move |source| Error::Target { path: path.to_owned(), doing, source };
        let metadata = std::fs::metadata(path).map_err(failed("cannot be looked up"))?;
        let kind = kind(path, &metadata)?;
        let (files, by_id) = if kind == Kind::Directory {
            open_directory(path, access)?
        } else {
            (vec![open_file(path, kind, access)?], HashMap::new())
        };
        Ok(Target { path: path.to_owned(), kind, files, first_file, by_id })
    }

    /// Whether every transfer bypasses the page cache.
    pub fn direct(&self) -> bool {
        self.files.iter().all(|file| file.direct)
    }
}

fn kind(path: &Path, metadata: &Metadata) -> Result<Kind, Error> {
    let file_type = metadata.file_type();
    let found = if file_type.is_block_device() {
        return Ok(Kind::BlockDevice);
    } else if file_type.is_file() {
        return Ok(Kind::File);
    } else if file_type.is_dir() {
        return Ok(Kind::Directory);
    } else if file_type.is_char_device() {
        "character device"
    } else if file_type.is_fifo() {
        "pipe"
    } else {
        "socket"
    };
    Err(Error::Kind { path: path.to_owned(), found })
}

fn open_directory(path: &Path, access: Access) -> Result<(Vec<OpenFile>, HashMap<u32, usize>), Error> {
    let failed = |source| Error::Target { path: path.to_owned(), doing: "cannot be listed", source };
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        if let Some(id) = entry.map_err(failed)?.file_name().to_str().and_then(file_id) {
            ids.push(id);
        }
    }
    if ids.is_empty() {
        return Err(Error::EmptyDirectory { path: path.to_owned(), example: file_name(0) });
    }
    // Some stay free for the ring, the streams and the standard descriptors.
    let limit = weir_host::thread::raise_open_files().map_err(failed)?;
    if ids.len() as u64 + 64 > limit {
        return Err(Error::TooManyFiles { path: path.to_owned(), files: ids.len(), limit });
    }
    ids.sort_unstable();
    let mut files = Vec::with_capacity(ids.len());
    for id in &ids {
        files.push(open_file(&path.join(file_name(*id)), Kind::File, access)?);
    }
    Ok((files, ids.into_iter().zip(0..).collect()))
}

fn open_file(path: &Path, kind: Kind, access: Access) -> Result<OpenFile, Error> {
    let failed = |doing| move |source| Error::Target { path: path.to_owned(), doing, source };
    // On a block device O_EXCL fails while the device is mounted or in use.
    let exclusive =
        if kind == Kind::BlockDevice && access.write && access.exclusive { libc::O_EXCL } else { 0 };
    let open = |flags: i32| {
        OpenOptions::new().read(true).write(access.write).custom_flags(exclusive | flags).open(path)
    };
    let mut opened = if access.direct { open(libc::O_DIRECT) } else { open(0) };
    let mut direct = access.direct;
    if direct && opened.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL)) {
        direct = false;
        opened = open(0);
    }
    let mut file = opened.map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY) if exclusive != 0 => Error::InUse { path: path.to_owned() },
        _ => failed(if access.write {
            "cannot be opened for reading and writing"
        } else {
            "cannot be opened for reading"
        })(source),
    })?;
    // Also works for devices, whose metadata have no length.
    let size_bytes = file.seek(SeekFrom::End(0)).map_err(failed("has no known size"))?;
    let mut alignment_bytes = 1;
    if direct {
        match direct_alignment(&file, kind).map_err(failed("its alignment cannot be found"))? {
            Some(alignment) => alignment_bytes = alignment,
            None => {
                direct = false;
                file = open(0).map_err(failed("cannot be opened again through the page cache"))?;
            }
        }
    }
    Ok(OpenFile { file, size_bytes, alignment_bytes, direct })
}

/// `statfs` type of a file system in memory.
const TMPFS_MAGIC: i64 = 0x0102_1994;
/// `statfs` type of a file system in user space.
const FUSE_MAGIC: i64 = 0x6573_5546;

/// Alignment of direct transfers; `None` if direct transfers do not work.
///
/// The kernel reports it for most file systems (`STATX_DIOALIGN`, Linux 6.1) and for block devices. Elsewhere it is probed. A
/// file system may silently answer an unaligned direct read from the page cache: hence the preferred block size is probed,
/// not the smallest accepted one.
fn direct_alignment(file: &File, kind: Kind) -> io::Result<Option<u64>> {
    if let Ok(stated) = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
        && stated.stx_mask & StatxFlags::DIOALIGN.bits() != 0
    {
        return Ok((stated.stx_dio_offset_align > 0).then_some(u64::from(stated.stx_dio_offset_align)));
    }
    if kind == Kind::BlockDevice {
        return Ok(Some(u64::from(ioctl_blksszget(file)?)));
    }
    let system = fstatfs(file)?;
    let magic = system.f_type as i64;
    let (alignment, from) = match magic {
        TMPFS_MAGIC => (1, 0),
        // Behind the end: otherwise a read-ahead by a user-space file system would cache the file.
        FUSE_MAGIC => (1, file.metadata()?.len()),
        _ => (u64::try_from(system.f_bsize).unwrap_or(4096).next_power_of_two().clamp(512, 65_536), 0),
    };
    Ok(direct_read_works(file, from, alignment).then_some(alignment))
}

fn direct_read_works(file: &File, from: u64, length: u64) -> bool {
    let mut buffer = Buffer::new(65_536);
    let data = &mut buffer.as_mut_slice()[..length as usize];
    !file.read_at(data, from).is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
}
