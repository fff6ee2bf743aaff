//! Ring (io_uring) of a replay.

use std::io;
use std::os::fd::RawFd;

use io_uring::types::{CancelBuilder, Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use weir_host::clock::monotonic_ns;
use weir_host::thread;
use weir_records::Op;

use crate::Error;
use crate::targets::Transfer;

/// Entries of the submission queue.
const SUBMISSIONS: u32 = 4096;
/// Entries of the completion queue, the most that the kernel grants. More may be in flight: the
/// kernel keeps what does not fit.
const COMPLETIONS: u32 = 65_536;
/// Maximum kernel worker threads for blocked requests. The kernel's default of 4 per CPU would let only this number of
/// requests reach a full device's queue, and hide the others from its scheduler.
const WORKERS: u32 = 512;
/// Time after which an idle kernel thread that polls for submissions sleeps.
const POLLER_IDLE_MS: u32 = 1000;
/// `BLOCK_URING_CMD_DISCARD` of `linux/blkdev.h`: `addr` is the first byte, the first 8 bytes of the command the length.
const BLOCK_DISCARD: u32 = 0x12 << 8;
/// Longest time of polling without a return: a real-time thread must sleep now and then.
const POLL_NS: i64 = 500_000;
/// `IORING_ENTER_GETEVENTS` of `linux/io_uring.h`.
const GET_EVENTS: u32 = 1;
/// Index of the arena among registered buffers, the only one.
const ARENA: u16 = 0;

/// The entry of a transfer of a file, which is an [`Fd`] or a [`Fixed`]: the crate's trait of both is not public.
macro_rules! entry {
    ($file:expr, $transfer:expr, $data:expr, $fixed:expr) => {{
        let (length, offset, priority) = ($transfer.length, $transfer.offset, $transfer.priority);
        let durable = if $transfer.op == Op::WriteFua { libc::RWF_DSYNC } else { 0 };
        match ($transfer.op, $fixed) {
            (Op::Read, false) => {
                opcode::Read::new($file, $data, length).offset(offset).ioprio(priority).build()
            }
            (Op::Write | Op::WriteFua, false) => opcode::Write::new($file, $data, length)
                .offset(offset)
                .ioprio(priority)
                .rw_flags(durable)
                .build(),
            (Op::Read, true) => {
                opcode::ReadFixed::new($file, $data, length, ARENA).offset(offset).ioprio(priority).build()
            }
            (Op::Write | Op::WriteFua, true) => opcode::WriteFixed::new($file, $data, length, ARENA)
                .offset(offset)
                .ioprio(priority)
                .rw_flags(durable)
                .build(),
            (Op::Flush, _) => opcode::Fsync::new($file).flags(FsyncFlags::DATASYNC).build(),
            (Op::Discard, _) if $transfer.to_device => {
                let mut length = [0; 16];
                length[..8].copy_from_slice(&$transfer.range_bytes.to_ne_bytes());
                opcode::UringCmd16::new($file, BLOCK_DISCARD).addr(Some(offset)).cmd(length).build()
            }
            (Op::Discard | Op::WriteZeroes, _) => {
                let mode = match $transfer.op {
                    Op::Discard => libc::FALLOC_FL_PUNCH_HOLE,
                    _ => libc::FALLOC_FL_ZERO_RANGE,
                };
                let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new($file, $transfer.range_bytes).offset(offset).mode(mode).build()
            }
        }
    }};
}

pub(crate) struct Ring {
    uring: IoUring,
    ways: Ways,
    /// Requests that were queued and whose completions were not taken.
    in_flight: u64,
    /// Number of times that the completion queue was full.
    pub overflows: u64,
}

/// How a ring works, as far as the kernel granted it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    /// A kernel thread polls for submissions.
    pub polled: bool,
    /// Completions are polled for: no interrupt reports them.
    pub poll_completions: bool,
    /// Completions are posted when the thread enters the kernel or asks: no interrupt of its CPU for each.
    pub cooperative: bool,
    /// Files are registered.
    pub fixed_files: bool,
    /// The arena is registered.
    pub fixed_buffers: bool,
}

/// One completion: the slot it belongs to, and bytes transferred or a negated `errno`.
pub(crate) struct Completion {
    pub slot: u64,
    pub result: i32,
}

impl Ring {
    /// A ring for the calling thread only. `polled`: a kernel thread polls for submissions. `poll_completions`: completions are
    /// polled for, by that thread or by the calling one; only reads and writes of files that were opened for direct transfers, on
    /// devices with polling queues, succeed then.
    pub fn new(polled: bool, poll_completions: bool) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Ring {
            doing: "cannot be set up",
            hint: match source.raw_os_error() {
                Some(libc::EPERM) => ". It may be disabled: see sysctl kernel.io_uring_disabled",
                Some(libc::ENOSYS) => ". The kernel has no io_uring. Use Linux 5.15 or later",
                Some(libc::ENOMEM) => ". Raise the limit on locked memory (ulimit -l)",
                _ => "",
            },
            source,
        };
        let (uring, cooperative) = match (polled, set_up(polled, poll_completions, true)) {
            (false, Ok(uring)) => (uring, true),
            // Before Linux 6.0 the kernel knows no cooperative ring.
            (false, Err(error)) if error.raw_os_error() == Some(libc::EINVAL) => {
                (set_up(polled, poll_completions, false).map_err(failed)?, false)
            }
            (true, _) => (set_up(polled, poll_completions, false).map_err(failed)?, false),
            (false, Err(error)) => return Err(failed(error)),
        };
        let failed = |source| Error::Ring {
            doing: "cannot raise its number of workers",
            hint: ". Use Linux 5.15 or later",
            source,
        };
        uring.submitter().register_iowq_max_workers(&mut [WORKERS, 0]).map_err(failed)?;
        let ways = Ways { polled, poll_completions, cooperative, ..Ways::default() };
        Ok(Ring { uring, ways, in_flight: 0, overflows: 0 })
    }

    /// Registers files, at the places of [`Transfer::file`], and memory for data: the kernel then looks up no file and pins
    /// no page for a request. Where it refuses, all works without.
    ///
    /// # Safety
    /// The memory must stay mapped until the ring is dropped or [`Ring::unregister`] is called.
    pub unsafe fn register(&mut self, files: &[RawFd], memory: Option<(*mut u8, usize)>) {
        let submitter = self.uring.submitter();
        self.ways.fixed_files = submitter.register_files(files).is_ok();
        if let Some((start, bytes)) = memory {
            let all = [libc::iovec { iov_base: start.cast(), iov_len: bytes }];
            // SAFETY: the caller keeps the memory mapped.
            self.ways.fixed_buffers = unsafe { submitter.register_buffers(&all) }.is_ok();
        }
    }

    /// Lets go of files and memory: a ring that is dropped does so a moment later, and a device would be in use until then.
    pub fn unregister(&mut self) {
        let submitter = self.uring.submitter();
        // An error means that there is nothing to let go of.
        if self.ways.fixed_files {
            let _ = submitter.unregister_files();
        }
        if self.ways.fixed_buffers {
            let _ = submitter.unregister_buffers();
        }
        (self.ways.fixed_files, self.ways.fixed_buffers) = (false, false);
    }

    /// How the ring works.
    pub fn ways(&self) -> Ways {
        self.ways
    }

    /// Queues a transfer; [`Ring::submit`] sends it.
    ///
    /// # Safety
    /// `data` must be valid for `transfer.length` bytes, writable for a read, until the completion
    /// for `slot` was seen; `transfer.fd` must stay open that long. `in_arena` says that it is in the memory that was registered.
    ///
    /// # Errors
    /// The queue is full, which a submission beforehand prevents.
    pub unsafe fn push(
        &mut self,
        transfer: &Transfer,
        data: *mut u8,
        in_arena: bool,
        slot: u64,
        by_worker: bool,
    ) -> Result<(), Error> {
        let fixed = self.ways.fixed_buffers && in_arena;
        let entry = if self.ways.fixed_files {
            entry!(Fixed(transfer.file), transfer, data, fixed)
        } else {
            entry!(Fd(transfer.fd), transfer, data, fixed)
        };
        let flags = if by_worker { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
        let entry = entry.flags(flags).user_data(slot);
        if self.ways.polled && self.uring.submission().is_full() {
            self.uring.submitter().squeue_wait().map_err(refused)?;
        }
        // SAFETY: the caller keeps the data and the descriptor valid until completion.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.map_err(|_| Error::Ring {
            doing: "its submission queue is full",
            source: io::Error::from_raw_os_error(libc::EAGAIN),
            hint: "",
        })?;
        self.in_flight += 1;
        Ok(())
    }

    /// Queues a request that does nothing.
    pub fn push_nothing(&mut self, slot: u64) -> Result<(), Error> {
        // SAFETY: there is no data and no descriptor.
        let pushed = unsafe { self.uring.submission().push(&opcode::Nop::new().build().user_data(slot)) };
        pushed.map_err(|_| refused(io::Error::from_raw_os_error(libc::EAGAIN)))?;
        self.in_flight += 1;
        Ok(())
    }

    /// Whether [`Ring::wait`] polls devices for completions, and does not sleep.
    pub fn polls(&self) -> bool {
        self.by_caller() && self.in_flight > 0
    }

    /// Whether completions are polled for by the calling thread, not by that of the kernel.
    fn by_caller(&self) -> bool {
        self.ways.poll_completions && !self.ways.polled
    }

    /// Polls the devices once.
    fn poll(&self) -> Result<(), Error> {
        // SAFETY: no argument is passed by address.
        match unsafe { self.uring.submitter().enter::<libc::sigset_t>(0, 0, GET_EVENTS, None) } {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(source) => Err(Error::Ring { doing: "cannot poll for completions", source, hint: "" }),
        }
    }

    /// Submits queued requests. `false` if some are still queued because the kernel is short of memory, or has too many
    /// completions that were not taken.
    pub fn submit(&mut self) -> Result<bool, Error> {
        match self.uring.submit() {
            // A thread that polls takes them by itself.
            Ok(_) => Ok(self.ways.polled || self.uring.submission().is_empty()),
            Err(error) if is_transient(&error) => Ok(false),
            Err(source) => Err(refused(source)),
        }
    }

    /// Sleeps until a completion arrives or `timeout_ns` has passed; `true` at a timeout. A ring that polls returns earlier.
    pub fn wait(&mut self, timeout_ns: i64) -> Result<bool, Error> {
        if self.polls() {
            return self.poll_until(monotonic_ns() + timeout_ns);
        }
        if self.by_caller() {
            // The kernel would not wait for what nobody polls for.
            thread::sleep_ns(timeout_ns);
            return Ok(true);
        }
        let nanoseconds = u64::try_from(timeout_ns).unwrap_or(0);
        let timeout =
            Timespec::new().sec(nanoseconds / 1_000_000_000).nsec((nanoseconds % 1_000_000_000) as u32);
        match self.uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout)) {
            Ok(_) => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(true),
            Err(error) if is_transient(&error) => Ok(false),
            Err(source) => Err(Error::Ring { doing: "cannot wait", source, hint: "" }),
        }
    }

    /// Polls the devices until a completion arrives, for [`POLL_NS`] at most; `true` at a timeout.
    fn poll_until(&mut self, until_ns: i64) -> Result<bool, Error> {
        let pause_ns = monotonic_ns() + POLL_NS;
        loop {
            self.poll()?;
            let now = monotonic_ns();
            if now >= until_ns || now >= pause_ns || !self.uring.completion().is_empty() {
                return Ok(now >= until_ns);
            }
        }
    }

    /// Whether completions can be taken. Does not enter the kernel, unless it is to be polled.
    pub fn has_completions(&mut self) -> bool {
        // What the poll refuses shows when the thread waits.
        if self.polls() && self.uring.completion().is_empty() {
            let _ = self.poll();
        }
        !self.uring.completion().is_empty() || self.ways.cooperative && self.uring.submission().taskrun()
    }

    /// Takes the completions that have arrived; `now` is read once they have been counted, so no
    /// stamp is earlier than its completion.
    pub fn take(&mut self, now: impl Fn() -> i64, into: &mut Vec<Completion>) -> i64 {
        let (overflow, pending) = {
            let queue = self.uring.submission();
            (queue.cq_overflow(), self.ways.cooperative && queue.taskrun())
        };
        self.overflows += u64::from(overflow);
        if pending {
            // Posts what is pending. Without it they are posted at the next submission.
            let _ = self.uring.submit();
        }
        let queue = self.uring.completion();
        let stamp = now();
        self.in_flight = self.in_flight.saturating_sub(queue.len() as u64);
        into.extend(queue.map(|entry| Completion { slot: entry.user_data(), result: entry.result() }));
        stamp
    }

    /// Cancels outstanding requests. A transfer that a device has begun cannot be cancelled.
    pub fn cancel_all(&self) {
        let until = Timespec::new().sec(1);
        // An error means that nothing was outstanding, or could not be cancelled: the completions show which.
        let _ = self.uring.submitter().register_sync_cancel(Some(until), CancelBuilder::any());
    }
}

fn set_up(polled: bool, poll_completions: bool, cooperative: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(COMPLETIONS);
    if polled {
        builder.setup_sqpoll(POLLER_IDLE_MS);
    }
    if poll_completions {
        builder.setup_iopoll();
    }
    if cooperative {
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_single_issuer();
    }
    builder.build(SUBMISSIONS)
}

fn refused(source: io::Error) -> Error {
    Error::Ring { doing: "refuses requests", source, hint: "" }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
