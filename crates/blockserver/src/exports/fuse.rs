//! FUSE file system with one file, `disk`.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

/// Name of the file.
pub(crate) const FILE_NAME: &str = "disk";
/// Largest request of the kernel: near the loop device's own limit.
pub(crate) const MAX_REQUEST_BYTES: u32 = 1 << 20;

const ROOT: INodeNo = INodeNo::ROOT;
const FILE: INodeNo = INodeNo(2);
/// Validity of attributes: only the kernel changes them.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);
/// Allocation unit, which the loop device takes for its discard granularity.
const BLOCK_BYTES: u32 = 4096;
/// Maximum outstanding requests in FUSE: more than the 128 of a loop device. Requests must not wait in FUSE, where the block
/// layer's schedulers and statistics do not see them.
const MAX_BACKGROUND: u16 = 512;

/// Service behind the file. Offsets and sizes are in bytes; `pid` is of the requesting process, by the kernel.
pub(crate) trait FileService: Send + Sync + 'static {
    /// Size of the file in bytes.
    fn size_bytes(&self) -> u64;
    /// Prepares a thread that receives requests.
    fn enter_reader(&self);
    /// A read, truncated at the end of the file.
    fn read(&self, pid: u32, offset: u64, size: u32, reply: ReplyData);
    /// A write; one past the end is refused.
    fn write(&self, pid: u32, offset: u64, data: &[u8], reply: ReplyWrite);
    /// A flush.
    fn flush(&self, reply: ReplyEmpty);
    /// Bytes inside the file become zero.
    fn discard(&self, offset: u64, length: u64, reply: ReplyEmpty);
}

/// Passes the kernel's requests to a service.
pub(crate) struct DiskFile {
    service: Arc<dyn FileService>,
    started: SystemTime,
}

impl DiskFile {
    pub fn new(service: Arc<dyn FileService>) -> Self {
        Self { service, started: SystemTime::now() }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size, nlink) = match inode {
            ROOT => (FileType::Directory, 0o700, 0, 2),
            FILE => (FileType::RegularFile, 0o600, self.service.size_bytes(), 1),
            _ => return None,
        };
        let time = self.started;
        let blocks = size / 512;
        let (atime, mtime, ctime, crtime) = (time, time, time, time);
        let blksize = BLOCK_BYTES;
        Some(FileAttr {
            ino: inode,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize,
            flags: 0,
        })
    }

    /// The first request that a reader thread handles: that is the only time at which this code runs on it.
    fn enter_reader(&self) {
        thread_local!(static ENTERED: Cell<bool> = const { Cell::new(false) });
        if !ENTERED.replace(true) {
            self.service.enter_reader();
        }
    }
}

impl Filesystem for DiskFile {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |what: &str| io::Error::new(io::ErrorKind::Unsupported, format!("FUSE without {what}"));
        // Without it the loop device's requests would be served one at a time.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| refused("asynchronous direct I/O"))?;
        config.set_max_write(MAX_REQUEST_BYTES).map_err(|_| refused("1 MiB writes"))?;
        config.set_max_background(MAX_BACKGROUND).map_err(|_| refused("a background queue"))?;
        config.set_congestion_threshold(MAX_BACKGROUND).map_err(|_| refused("a background queue"))?;
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attributes) if parent == ROOT && name == FILE_NAME => {
                reply.entry(&FOR_EVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, inode: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOR_EVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        inode: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // The size is fixed; times do not matter (writing to the file may set them).
        if size.is_some_and(|size| size != self.service.size_bytes()) {
            return reply.error(Errno::EPERM);
        }
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOR_EVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if inode != FILE {
            return reply.error(Errno::EISDIR);
        }
        // No page cache in FUSE, and parallel writes: the block layer above handles both.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.enter_reader();
        self.service.read(req.pid(), offset, size, reply);
    }

    fn write(
        &self,
        req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.enter_reader();
        self.service.write(req.pid(), offset, data, reply);
    }

    fn flush(&self, _req: &Request, _inode: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _req: &Request, _inode: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.service.flush(reply);
    }

    fn fallocate(
        &self,
        _req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let zeroing = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        let known = zeroing | libc::FALLOC_FL_KEEP_SIZE;
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.service.size_bytes());
        if mode & !known != 0 || mode & zeroing == 0 || !inside {
            return reply.error(Errno::EOPNOTSUPP);
        }
        self.service.discard(offset, length, reply);
    }

    fn readdir(
        &self,
        _req: &Request,
        inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (index, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(inode, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let blocks = self.service.size_bytes() / u64::from(BLOCK_BYTES);
        reply.statfs(blocks, 0, 0, 1, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }
}
