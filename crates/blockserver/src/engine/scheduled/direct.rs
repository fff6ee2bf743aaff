//! Direct I/O to real devices or files through one io_uring.
//!
//! A thread with the server's lock submits I/O; one thread waits for completions. The heads' queue depths bound outstanding
//! I/O, besides flushes and discards, which are few.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use rustix::fs::{FlockOperation, flock, ioctl_blksszget};
use weir_simulator::Op;

use super::buffer::Buffer;

/// User data of the request that ends the completion thread.
const STOP: u64 = u64::MAX;
/// From <linux/fs.h>: wait until the data are on the medium.
const RWF_DSYNC: i32 = 2;
/// Entries of the submission queue; each batch is submitted before the next.
const SUBMISSIONS: u32 = 256;

/// Kind of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    /// One head's part of a request: the head, and the slot of the dispatcher.
    Part { head: usize, slot: u64 },
    /// A part of a flush or a discard: its index among waiting ones.
    Join { place: usize },
}

/// One head's part of a request.
pub(crate) struct Part {
    pub(crate) what: CompletionKind,
    pub(crate) op: Op,
    /// Whether a write is on the medium when it completes.
    pub(crate) is_fua: bool,
    pub(crate) head: usize,
    /// First byte on the head.
    pub(crate) offset_bytes: u64,
}

/// Outstanding I/O. The kernel may read the vectors until it completes.
struct Flight {
    what: CompletionKind,
    wanted_bytes: u32,
    _vectors: Vec<libc::iovec>,
}

// SAFETY: the pointers lead to buffers that may be used by any thread.
unsafe impl Send for Flight {}

/// Outstanding I/O by number, under the server's lock.
#[derive(Default)]
pub(crate) struct Flights {
    list: Vec<Option<Flight>>,
    unused: Vec<usize>,
}

impl Flights {
    fn put(&mut self, flight: Flight) -> usize {
        match self.unused.pop() {
            Some(place) => {
                self.list[place] = Some(flight);
                place
            }
            None => {
                self.list.push(Some(flight));
                self.list.len() - 1
            }
        }
    }

    /// Takes a completed I/O: its kind, and its errno if it failed.
    pub fn take(&mut self, number: u64, result: i32) -> Option<(CompletionKind, Option<i32>)> {
        let place = usize::try_from(number).ok()?;
        let flight = self.list.get_mut(place)?.take()?;
        self.unused.push(place);
        let error = match u32::try_from(result) {
            Err(_) => Some(-result),
            // Direct I/O inside a device completes in whole: a short transfer is a failure.
            Ok(done) if done < flight.wanted_bytes => Some(libc::EIO),
            Ok(_) => None,
        };
        Some((flight.what, error))
    }
}

/// The devices of the heads.
pub(crate) struct Direct {
    uring: IoUring,
    files: Vec<File>,
    block_bytes: u32,
}

/// Opens a target for direct I/O; the error states the problem and the remedy.
pub(crate) fn open_target(path: &Path, need_bytes: u64) -> Result<(File, u32), String> {
    let text = path.display();
    let open =
        |flags| OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT | flags).open(path);
    let meta = std::fs::metadata(path).map_err(|error| format!("{text}: {error}"))?;
    let is_device = meta.file_type().is_block_device();
    if !is_device && !meta.is_file() {
        return Err(format!("{text} is neither a file nor a block device. Name one of them"));
    }
    // On a block device O_EXCL fails while the device is mounted or part of another device.
    let file =
        open(if is_device { libc::O_EXCL } else { 0 }).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => format!("{text} is in use. Unmount it, or name another one"),
            Some(libc::EINVAL) => {
                format!("{text}: its file system has no direct I/O. Name a file on one with direct I/O")
            }
            _ => format!("{text}: {error}"),
        })?;
    // Two servers of one file would corrupt each other's data.
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(format!(
            "{text} is locked by another process, such as a block server. End that process, or name another target"
        ));
    }
    let sizes = if is_device { device_size(&file) } else { file_size(&file, meta.len()) };
    let (size_bytes, block_bytes) = sizes.map_err(|error| format!("{text}: {error}"))?;
    if size_bytes < need_bytes {
        return Err(format!(
            "{text} is too small (found {size_bytes} bytes, expected {need_bytes} for each head). Lower size_mib, or enlarge it"
        ));
    }
    Ok((file, block_bytes))
}

fn device_size(file: &File) -> io::Result<(u64, u32)> {
    let block_bytes = ioctl_blksszget(file)?;
    let size_bytes = io::Seek::seek(&mut &*file, io::SeekFrom::End(0))?;
    Ok((size_bytes, block_bytes.max(512)))
}

/// Size of a file, and its smallest direct I/O, found by probing.
fn file_size(file: &File, size_bytes: u64) -> io::Result<(u64, u32)> {
    let mut buffer = Buffer::new(4096)?;
    let reads =
        |buffer: &mut Buffer, length: usize| file.read_at(&mut buffer.bytes_mut()[..length], 0).is_ok();
    let block_bytes = if reads(&mut buffer, 512) { 512 } else { 4096 };
    Ok((size_bytes, block_bytes))
}

impl Direct {
    /// One head for each target, which holds at least `need_bytes`.
    ///
    /// # Errors
    /// A problem of a target, and the remedy.
    pub fn open(targets: &[PathBuf], need_bytes: u64) -> Result<Self, String> {
        let mut files = Vec::new();
        let mut block_bytes = 512;
        for target in targets {
            let (file, block) = open_target(target, need_bytes)?;
            files.push(file);
            block_bytes = block_bytes.max(block);
        }
        let uring = IoUring::builder()
            .setup_cqsize(SUBMISSIONS * 8)
            .build(SUBMISSIONS)
            .map_err(|error| format!("io_uring is not available: {error}"))?;
        Ok(Direct { uring, files, block_bytes })
    }

    /// Alignment of offsets and sizes, in bytes.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Begins a part: `pieces` (first byte in the buffer, bytes) lie one behind the other from the part's offset on.
    /// The caller holds the server's lock, and keeps `buffer` until the part was taken from `flights`.
    pub fn begin(
        &self,
        flights: &mut Flights,
        part: Part,
        buffer: &Buffer,
        pieces: impl Iterator<Item = (u32, u32)>,
    ) {
        let Part { what, op, is_fua, head, offset_bytes } = part;
        let (mut vectors, mut end) = (Vec::<libc::iovec>::new(), u32::MAX);
        for (first, length) in pieces {
            // SAFETY: the pieces lie inside the buffer, which is as long as the request.
            let start = unsafe { buffer.start().add(first as usize) };
            match vectors.last_mut() {
                Some(last) if first == end => last.iov_len += length as usize,
                _ => vectors.push(libc::iovec { iov_base: start.cast(), iov_len: length as usize }),
            }
            end = first + length;
        }
        let wanted_bytes = vectors.iter().map(|vector| vector.iov_len as u32).sum();
        let (start, count) = (vectors.as_ptr(), vectors.len() as u32);
        let fd = Fd(self.files[head].as_raw_fd());
        let entry = match op {
            Op::Read => opcode::Readv::new(fd, start, count).offset(offset_bytes).build(),
            Op::Write => opcode::Writev::new(fd, start, count)
                .offset(offset_bytes)
                .rw_flags(if is_fua { RWF_DSYNC } else { 0 })
                .build(),
        };
        let number = flights.put(Flight { what, wanted_bytes, _vectors: vectors });
        self.submit(&entry.user_data(number as u64));
    }

    /// Makes the completed writes of a head durable. The lock is held.
    pub fn flush(&self, flights: &mut Flights, what: CompletionKind, head: usize) {
        let fd = Fd(self.files[head].as_raw_fd());
        let entry = opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build();
        let number = flights.put(Flight { what, wanted_bytes: 0, _vectors: Vec::new() });
        self.submit(&entry.user_data(number as u64));
    }

    /// Makes bytes of a head zero. The lock is held.
    pub fn discard(&self, flights: &mut Flights, what: CompletionKind, head: usize, at: (u64, u64)) {
        let fd = Fd(self.files[head].as_raw_fd());
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let entry = opcode::Fallocate::new(fd, at.1).offset(at.0).mode(mode).build();
        let number = flights.put(Flight { what, wanted_bytes: 0, _vectors: Vec::new() });
        self.submit(&entry.user_data(number as u64));
    }

    fn submit(&self, entry: &squeue::Entry) {
        // SAFETY: only the holder of the server's lock submits; the entry's memory is kept in `Flights` and the request's
        // buffer until its completion has been taken.
        let mut result = unsafe { self.uring.submission_shared().push(entry) }.map_err(io::Error::other);
        while result.is_ok() {
            match self.uring.submit() {
                Ok(_) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel is short of memory, or of completion entries, which the other thread frees.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                    std::thread::yield_now();
                }
                Err(error) => result = Err(error),
            }
        }
        // The kernel may use the entry's memory later. Acknowledged data are on the device.
        eprintln!("the io_uring refuses submissions: {result:?}");
        std::process::abort();
    }

    /// Waits for completions and appends their numbers and results; false when [`stop`](Self::stop) was called. For one
    /// thread only.
    pub fn wait(&self, completed: &mut Vec<(u64, i32)>) -> bool {
        /// From <linux/io_uring.h>: wait, rather than only submit.
        const ENTER_GETEVENTS: u32 = 1;
        // SAFETY: nothing is submitted, and no argument is passed.
        let _ = unsafe { self.uring.submitter().enter::<libc::sigset_t>(0, 1, ENTER_GETEVENTS, None) };
        let mut goes_on = true;
        // SAFETY: only this thread takes completions.
        for entry in unsafe { self.uring.completion_shared() } {
            match entry.user_data() {
                STOP => goes_on = false,
                number => completed.push((number, entry.result())),
            }
        }
        goes_on
    }

    /// Ends [`wait`](Self::wait). The lock is held.
    pub fn stop(&self) {
        self.submit(&opcode::Nop::new().build().user_data(STOP));
    }
}
