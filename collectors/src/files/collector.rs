//! File collector: start, stop, and the thread that drains the ring buffer.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBufferBuilder};
use serde::Serialize;
use weir_records::TableWriter;

use super::record::{FileOp, FileRequest, FileSource};
use super::skeleton::FilesSkelBuilder;
use crate::capability;
use crate::error::Error;
use crate::spool::Spool;
use crate::worker::{Told, Worker};

/// Bytes of `struct file_event` in `files.h`.
const EVENT_BYTES: usize = 64;
const RING_BYTES: u32 = 16 << 20;
const MEMORY_BYTES: usize = 256 << 20;
const VISIT: Duration = Duration::from_millis(10);

/// `enum file_op` of `files.h`, by system call.
const SYSCALLS: [(libc::c_long, FileOp); 13] = [
    (libc::SYS_read, FileOp::Read),
    (libc::SYS_pread64, FileOp::Read),
    (libc::SYS_readv, FileOp::Read),
    (libc::SYS_preadv, FileOp::Read),
    (libc::SYS_preadv2, FileOp::Read),
    (libc::SYS_write, FileOp::Write),
    (libc::SYS_pwrite64, FileOp::Write),
    (libc::SYS_writev, FileOp::Write),
    (libc::SYS_pwritev, FileOp::Write),
    (libc::SYS_pwritev2, FileOp::Write),
    (libc::SYS_fsync, FileOp::Fsync),
    (libc::SYS_fdatasync, FileOp::Fsync),
    (libc::SYS_sync_file_range, FileOp::Fsync),
];

/// The same by opcode of io_uring (`enum io_uring_op`).
const URING_OPS: [(usize, FileOp); 8] = [
    (1, FileOp::Read),   // READV
    (2, FileOp::Write),  // WRITEV
    (3, FileOp::Fsync),  // FSYNC
    (4, FileOp::Read),   // READ_FIXED
    (5, FileOp::Write),  // WRITE_FIXED
    (8, FileOp::Fsync),  // SYNC_FILE_RANGE
    (22, FileOp::Read),  // READ
    (23, FileOp::Write), // WRITE
];

fn number_of(op: FileOp) -> u8 {
    match op {
        FileOp::Read => 1,
        FileOp::Write => 2,
        FileOp::Fsync => 3,
    }
}

/// Counters of the programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FileCounters {
    /// Requests that began.
    pub started: u64,
    /// Requests that ended.
    pub ended: u64,
    /// Events lost because the ring buffer was full: no rows.
    pub ring_full: u64,
    /// Requests or processes not followed because a table was full.
    pub map_full: u64,
}

impl FileCounters {
    /// Requests without a row that are not outstanding.
    pub fn lost(&self) -> u64 {
        self.ring_full + self.map_full
    }
}

/// A running collection. Dropping it ends it and discards its events.
pub struct Collector {
    worker: Worker<FileCapture>,
    followed: MapHandle,
}

/// Recording of a collection.
pub struct FileCapture {
    counters: FileCounters,
    spool: Spool,
}

impl Collector {
    /// Starts a collection; returns when the programs are attached. Children of a followed process are followed too.
    ///
    /// Events beyond 256 MiB go to an unlinked file in `directory`.
    ///
    /// # Errors
    /// BPF cannot be used; the text says why.
    pub fn start(directory: &Path) -> Result<Self, Error> {
        let directory = directory.to_owned();
        let (worker, followed) = Worker::start("weir-files", move |told| collect(&directory, told))?;
        Ok(Collector { worker, followed })
    }

    /// Follows a process, its threads, and its later children.
    ///
    /// # Errors
    /// Too many processes are followed.
    pub fn follow(&self, process: u32) -> Result<(), Error> {
        self.followed
            .update(&process.to_ne_bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| Error::Bpf(capability::explain("following a process", &error)))
    }

    /// Ends following a process; its children are still followed.
    pub fn leave(&self, process: u32) {
        let _ = self.followed.delete(&process.to_ne_bytes());
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// The programs' counters cannot be read.
    pub fn stop(self) -> Result<FileCapture, Error> {
        self.worker.stop()
    }
}

fn collect(directory: &Path, told: &Told<MapHandle>) -> Result<FileCapture, Error> {
    if let Some(missing) = capability::missing_for_bpf() {
        return Err(Error::Bpf(missing));
    }
    libbpf_rs::set_print(None);
    let refuse =
        |what: &'static str| move |error: libbpf_rs::Error| Error::Bpf(capability::explain(what, &error));
    let mut storage = MaybeUninit::uninit();
    let mut open =
        FilesSkelBuilder::default().open(&mut storage).map_err(refuse("opening the file programs"))?;
    let no_data = || Error::Bpf("the programs' data cannot be mapped. Use Linux 5.5 or later".to_owned());
    let rodata = open.maps.rodata_data.as_mut().ok_or_else(no_data)?;
    for (number, op) in SYSCALLS {
        if let Some(slot) = usize::try_from(number).ok().and_then(|at| rodata.syscall_ops.get_mut(at)) {
            *slot = number_of(op);
        }
    }
    for (opcode, op) in URING_OPS {
        rodata.uring_ops[opcode] = number_of(op);
    }
    open.maps.file_events.set_max_entries(RING_BYTES).map_err(refuse("sizing the ring buffer"))?;
    let mut skeleton = open.load().map_err(refuse("loading the file programs"))?;
    skeleton.attach().map_err(refuse("attaching the file programs"))?;
    let followed = MapHandle::try_from(&skeleton.maps.followed).map_err(refuse("sharing a map"))?;

    let spool = RefCell::new(Spool::new(EVENT_BYTES, MEMORY_BYTES, directory));
    {
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&skeleton.maps.file_events, |bytes| {
                spool.borrow_mut().push(bytes);
                0
            })
            .map_err(refuse("reading the ring buffer"))?;
        let ring = builder.build().map_err(refuse("mapping the ring buffer"))?;
        told.ready(followed);
        while told.sleep(VISIT) {
            ring.consume_raw();
        }
        // Links end with the skeleton; requests that end before are still recorded.
        ring.consume_raw();
    }
    let shared = skeleton.maps.bss_data.as_deref().ok_or_else(no_data)?;
    // SAFETY: the counters are aligned and mapped for as long as the skeleton lives; the programs may still count, which
    // a volatile read of aligned numbers permits.
    let raw = unsafe { (&raw const shared.file_counters).read_volatile() };
    Ok(FileCapture {
        counters: FileCounters {
            started: raw.started,
            ended: raw.ended,
            ring_full: raw.ring_full,
            map_full: raw.map_full,
        },
        spool: spool.into_inner(),
    })
}

fn decode(bytes: &[u8], epoch_ns: i64) -> Option<FileRequest> {
    let bytes: &[u8; EVENT_BYTES] = bytes.try_into().ok()?;
    let u64_at = |at: usize| bytes[at..at + 8].try_into().map(u64::from_ne_bytes).ok();
    let u32_at = |at: usize| bytes[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
    Some(FileRequest {
        start_ns: i64::try_from(u64_at(0)?).ok()? - epoch_ns,
        end_ns: i64::try_from(u64_at(8)?).ok()? - epoch_ns,
        inode: u64_at(16)?,
        fs_magic: u64_at(24)?,
        result: u64_at(32)?.cast_signed(),
        size_bytes: u64_at(40)?,
        pid: u32_at(48)?,
        process: u32_at(52)?,
        op: match u32_at(56)? {
            1 => FileOp::Read,
            2 => FileOp::Write,
            _ => FileOp::Fsync,
        },
        source: match u32_at(60)? {
            0 => FileSource::Syscall,
            1 => FileSource::IoUring,
            _ => FileSource::Fuse,
        },
    })
}

impl FileCapture {
    /// Counters of the recording.
    pub fn counters(&self) -> FileCounters {
        self.counters
    }

    /// All rows in order of completion, with times relative to `epoch_ns`.
    ///
    /// # Errors
    /// The overflow file of events cannot be written or read.
    pub fn into_rows(mut self, epoch_ns: i64) -> Result<Vec<FileRequest>, Error> {
        let mut rows = Vec::new();
        self.spool.each(|bytes| {
            rows.extend(decode(bytes, epoch_ns));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Writes `files.parquet`; returns the number of rows.
    ///
    /// # Errors
    /// As [`FileCapture::into_rows`], or the disk is full.
    pub fn write(mut self, path: &Path, epoch_ns: i64) -> Result<u64, Error> {
        let mut table = TableWriter::create(path, epoch_ns)?;
        self.spool.each(|bytes| match decode(bytes, epoch_ns) {
            Some(row) => Ok(table.write(&row)?),
            None => Ok(()),
        })?;
        Ok(table.close()?)
    }
}
