//! Queue thread of a ublk device: fetches requests from the driver and returns completions.
//!
//! The driver accepts completions only from the fetching thread. Other threads put theirs into a [`Mailbox`], and wake it.
//! Data of a write are copied on arrival, data of a read by the thread that completes it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::abi::{self, Descriptor, QueueCommand};
use crate::engine::scheduled::{BorrowedPayload, Buffer, Caller, Export, Reply, Written};
use crate::exports::fuse::MAX_REQUEST_BYTES;

/// Maximum outstanding requests.
pub(super) const DEPTH: u16 = 128;
/// User data of the wait for the mailbox; all other values are tags.
const WOKEN: u64 = u64::MAX;

/// Completions for the fetching thread: tag, and bytes done or a negated errno.
struct Mailbox {
    answers: Mutex<Vec<(u16, i32)>>,
    sleeps: AtomicBool,
    event: File,
}

impl Mailbox {
    fn new() -> io::Result<Self> {
        let event = File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Mailbox { answers: Mutex::default(), sleeps: AtomicBool::new(false), event })
    }

    fn post(&self, tag: u16, result: i32) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push((tag, result));
        if self.sleeps.swap(false, Ordering::SeqCst) {
            // It fails only if the counter is at its maximum: the thread wakes anyway.
            let _ = io::Write::write(&mut &self.event, &1_u64.to_ne_bytes());
        }
    }

    fn take(&self, into: &mut Vec<(u16, i32)>) {
        into.append(&mut self.answers.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Announces that the thread will sleep; false if completions are waiting.
    fn may_sleep(&self) -> bool {
        self.sleeps.store(true, Ordering::SeqCst);
        let is_empty = self.answers.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if !is_empty {
            self.sleeps.store(false, Ordering::SeqCst);
        }
        is_empty
    }
}

/// The requests of all tags, as the kernel writes them.
struct Descriptors {
    start: NonNull<Descriptor>,
    length: usize,
}

// SAFETY: memory that is only read, and belongs to the value.
unsafe impl Send for Descriptors {}

impl Descriptors {
    fn map(file: &File) -> io::Result<Self> {
        let length = (usize::from(DEPTH) * size_of::<Descriptor>()).next_multiple_of(4096);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            let flags = MapFlags::SHARED | MapFlags::POPULATE;
            mmap(std::ptr::null_mut(), length, ProtFlags::READ, flags, file, 0)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Descriptors { start, length })
    }

    fn of(&self, tag: u16) -> Descriptor {
        assert!(tag < DEPTH, "a tag of the driver's");
        // SAFETY: inside the mapping; the kernel writes it before the completion that names the tag.
        unsafe { self.start.as_ptr().add(usize::from(tag)).read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is of that length, and nothing points into it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A device's queue; made by the thread that runs it.
pub(super) struct Queue {
    /// The device's own file: `/dev/ublkcN`.
    file: Arc<File>,
    descriptors: Descriptors,
    uring: IoUring,
    mailbox: Arc<Mailbox>,
    export: Export,
    /// Data of a write, during its arrival.
    written: Buffer,
    /// Number of tags that the driver has not ended.
    open: u16,
}

impl Queue {
    /// A queue that fetches on all tags, for [`run`](Self::run).
    pub fn new(file: File, export: Export) -> io::Result<Self> {
        let descriptors = Descriptors::map(&file)?;
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(u32::from(DEPTH).next_power_of_two() * 2)?;
        let mut queue = Queue {
            file: Arc::new(file),
            descriptors,
            uring,
            mailbox: Arc::new(Mailbox::new()?),
            export,
            written: Buffer::new(MAX_REQUEST_BYTES as usize)?,
            open: DEPTH,
        };
        for tag in 0..DEPTH {
            let fetch = queue.command(abi::FETCH, tag, 0);
            queue.push(&fetch)?;
        }
        queue.wait_for_mail()?;
        queue.uring.submit()?;
        Ok(queue)
    }

    /// Serves until the driver has ended every tag.
    pub fn run(mut self) -> io::Result<()> {
        self.export.engine.enter_reader();
        let (mut answers, mut completed) = (Vec::new(), Vec::new());
        while self.open > 0 {
            self.mailbox.take(&mut answers);
            for (tag, result) in answers.drain(..) {
                let answer = self.command(abi::COMMIT_AND_FETCH, tag, result);
                self.push(&answer)?;
            }
            let wanted = usize::from(self.mailbox.may_sleep());
            match self.uring.submit_and_wait(wanted) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => drop(other?),
            }
            self.mailbox.sleeps.store(false, Ordering::SeqCst);
            completed.extend(self.uring.completion().map(|entry| (entry.user_data(), entry.result())));
            for (what, result) in completed.drain(..) {
                match (what, result) {
                    (WOKEN, _) => self.wait_for_mail()?,
                    (tag, 0) => self.carry_out(tag as u16),
                    // The device is being stopped, or the driver has ended the tag.
                    _ => self.open -= 1,
                }
            }
        }
        Ok(())
    }

    /// Passes the next request of a tag to the engine.
    fn carry_out(&mut self, tag: u16) {
        let Descriptor { op_flags, sectors, first_sector, .. } = self.descriptors.of(tag);
        let Export { engine, first_byte, .. } = &self.export;
        let offset = first_byte + first_sector * abi::SECTOR_BYTES;
        let size = u64::from(sectors) * abi::SECTOR_BYTES;
        let caller = Caller::default();
        match op_flags & 0xff {
            abi::OP_READ => engine.read(offset, size as u32, &caller, self.read_reply(tag, sectors)),
            abi::OP_WRITE => {
                let reply = self.reply(tag, size as i32);
                let data = self.written.bytes_mut().get_mut(..size as usize);
                match data.map(|data| self.file.read_exact_at(data, abi::data_offset(tag)).map(|()| &*data)) {
                    Some(Ok(data)) => {
                        let is_fua = op_flags & abi::IO_FUA != 0;
                        engine.write(offset, Written::Borrowed(data), is_fua, &caller, reply);
                    }
                    _ => reply.send(Err(libc::EIO)),
                }
            }
            abi::OP_FLUSH => engine.flush(self.reply(tag, 0)),
            abi::OP_DISCARD | abi::OP_WRITE_ZEROES => engine.discard(offset, size, self.reply(tag, 0)),
            _ => self.mailbox.post(tag, -libc::EOPNOTSUPP),
        }
    }

    /// Reply of a request without data, on any thread; `done` is the result for the driver.
    fn reply(&self, tag: u16, done: i32) -> Reply {
        let mailbox = Arc::clone(&self.mailbox);
        Reply::new(move |outcome| mailbox.post(tag, outcome.map_or_else(|errno| -errno, |_| done)))
    }

    /// Reply of a read, on any thread.
    fn read_reply(&self, tag: u16, sectors: u32) -> Reply {
        let (file, mailbox) = (Arc::clone(&self.file), Arc::clone(&self.mailbox));
        Reply::new(move |outcome| {
            let copied =
                |payload| copy_out(&file, tag, &payload, sectors as usize * abi::SECTOR_BYTES as usize);
            mailbox.post(tag, outcome.map_or_else(|errno| -errno, copied));
        })
    }

    fn command(&self, number: u32, tag: u16, result: i32) -> squeue::Entry {
        let command = QueueCommand { queue: 0, tag, result, address: 0 };
        opcode::UringCmd16::new(Fd(self.file.as_raw_fd()), number)
            .cmd(command.to_bytes())
            .build()
            .user_data(u64::from(tag))
    }

    /// Requests a wake-up for the event descriptor.
    fn wait_for_mail(&mut self) -> io::Result<()> {
        // Resets the event descriptor; without an event there is nothing to read.
        let _ = io::Read::read(&mut &self.mailbox.event, &mut [0; 8]);
        let event = Fd(self.mailbox.event.as_raw_fd());
        self.push(&opcode::PollAdd::new(event, libc::POLLIN as u32).build().user_data(WOKEN))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the commands' objects, the device's file and the event descriptor, live as long as the ring.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            self.uring.submit()?;
        }
        Ok(())
    }
}

/// Copies the data of a read to the kernel: bytes done, or a negated errno.
fn copy_out(file: &File, tag: u16, payload: &BorrowedPayload, wanted_bytes: usize) -> i32 {
    let bytes = payload.bytes();
    if bytes.len() != wanted_bytes {
        return -libc::EIO;
    }
    file.write_all_at(bytes, abi::data_offset(tag)).map_or(-libc::EIO, |()| wanted_bytes as i32)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;
    use std::thread;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn a_sleeper_is_woken_for_every_answer() {
        const ANSWERS: i32 = 20_000;
        let mailbox = Mailbox::new().unwrap();
        let taken = AtomicI32::new(0);
        let mut answers = Vec::new();
        thread::scope(|scope| {
            // As a client with one request at a time: the next answer is ready only when this one was handed over.
            scope.spawn(|| {
                for number in 0..ANSWERS {
                    mailbox.post(3, number);
                    while taken.load(Ordering::Acquire) == number {
                        thread::yield_now();
                    }
                }
            });
            while taken.load(Ordering::Acquire) < ANSWERS {
                mailbox.take(&mut answers);
                taken.fetch_max(answers.len() as i32, Ordering::AcqRel);
                if answers.len() == ANSWERS as usize || !mailbox.may_sleep() {
                    continue;
                }
                let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
                if poll(&mut [PollFd::new(&mailbox.event, PollFlags::IN)], Some(&limit)) != Ok(1) {
                    // Ends the other thread.
                    taken.store(ANSWERS, Ordering::Release);
                }
                mailbox.sleeps.store(false, Ordering::SeqCst);
                let _ = io::Read::read(&mut &mailbox.event, &mut [0; 8]);
            }
        });
        assert!(answers.into_iter().eq((0..ANSWERS).map(|number| (3, number))), "not woken for one");
    }
}
