//! A file served one request at a time, each taking a fixed time; beyond a point it cannot be read.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};

const FILE: INodeNo = INodeNo(2);
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

struct Server {
    size_bytes: u64,
    damaged_from: u64,
    service: Duration,
}

/// The file, mounted; it goes when this is dropped.
pub struct SlowFile {
    pub path: PathBuf,
    _session: BackgroundSession,
    _folder: tempfile::TempDir,
}

impl SlowFile {
    /// Every request takes `service`; reads from byte `damaged_from` on end in EIO.
    pub fn new(size_bytes: u64, service: Duration, damaged_from: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server { size_bytes, damaged_from, service };
        let session = fuser::spawn_mount(server, folder.path(), &fuser::Config::default()).unwrap();
        SlowFile { path: folder.path().join("disk"), _session: session, _folder: folder }
    }
}

impl Server {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let is_file = ino == FILE;
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino,
            size: if is_file { self.size_bytes } else { 0 },
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: 0o700,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it, and with the default of 12 in the background, requests would wait in FUSE and not below it.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| io::ErrorKind::Unsupported)?;
        config.set_max_background(256).map_err(|_| io::ErrorKind::Unsupported)?;
        Ok(())
    }

    fn lookup(&self, _req: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == "disk" {
            reply.entry(&FOR_EVER, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, inode: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(inode));
    }

    fn open(&self, _req: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        std::thread::sleep(self.service);
        if offset >= self.damaged_from {
            return reply.error(Errno::EIO);
        }
        let bytes = u64::from(size).min(self.size_bytes.saturating_sub(offset));
        reply.data(&vec![0; bytes as usize]);
    }

    fn write(
        &self,
        _req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        std::thread::sleep(self.service);
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _req: &Request, _inode: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }
}
