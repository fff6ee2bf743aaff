//! Ring (io_uring) of a replay.

use std::io;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
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

pub(crate) struct Ring {
    uring: IoUring,
    /// Number of times that the completion queue was full.
    pub overflows: u64,
}

/// One completion: the slot it belongs to, and bytes transferred or a negated `errno`.
pub(crate) struct Completion {
    pub slot: u64,
    pub result: i32,
}

impl Ring {
    pub fn new() -> Result<Self, Error> {
        let uring = IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS).map_err(|source| {
            Error::Ring {
                doing: "cannot be set up",
                hint: match source.raw_os_error() {
                    Some(libc::EPERM) => ". It may be disabled: see sysctl kernel.io_uring_disabled",
                    Some(libc::ENOSYS) => ". The kernel has no io_uring. Use Linux 5.15 or later",
                    Some(libc::ENOMEM) => ". Raise the limit on locked memory (ulimit -l)",
                    _ => "",
                },
                source,
            }
        })?;
        let failed = |source| Error::Ring {
            doing: "cannot raise its number of workers",
            hint: ". Use Linux 5.15 or later",
            source,
        };
        uring.submitter().register_iowq_max_workers(&mut [WORKERS, 0]).map_err(failed)?;
        Ok(Ring { uring, overflows: 0 })
    }

    /// Queues a transfer; [`Ring::submit`] sends it.
    ///
    /// # Safety
    /// `data` must be valid for `transfer.length` bytes, writable for a read, until the completion
    /// for `slot` was seen; `transfer.fd` must stay open that long.
    ///
    /// # Errors
    /// The queue is full, which a submission beforehand prevents.
    pub unsafe fn push(
        &mut self,
        transfer: &Transfer,
        data: *mut u8,
        slot: u64,
        by_worker: bool,
    ) -> Result<(), Error> {
        let fd = Fd(transfer.fd);
        let entry = match transfer.op {
            Op::Read => opcode::Read::new(fd, data, transfer.length)
                .offset(transfer.offset)
                .ioprio(transfer.priority)
                .build(),
            Op::Write => opcode::Write::new(fd, data, transfer.length)
                .offset(transfer.offset)
                .ioprio(transfer.priority)
                .build(),
        };
        let flags = if by_worker { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
        // SAFETY: the caller keeps the data and the descriptor valid until completion.
        let pushed = unsafe { self.uring.submission().push(&entry.flags(flags).user_data(slot)) };
        pushed.map_err(|_| Error::Ring {
            doing: "its submission queue is full",
            source: io::Error::from_raw_os_error(libc::EAGAIN),
            hint: "",
        })
    }

    /// Submits queued requests. `false` if some are still queued because the kernel is short of memory, or has too many
    /// completions that were not taken.
    pub fn submit(&mut self) -> Result<bool, Error> {
        match self.uring.submit() {
            Ok(_) => Ok(self.uring.submission().is_empty()),
            Err(error) if is_transient(&error) => Ok(false),
            Err(source) => Err(Error::Ring { doing: "refuses requests", source, hint: "" }),
        }
    }

    /// Sleeps until a completion arrives or `timeout_ns` has passed; `true` at a timeout.
    pub fn wait(&mut self, timeout_ns: i64) -> Result<bool, Error> {
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

    /// Whether completions can be taken. Does not enter the kernel.
    pub fn has_completions(&mut self) -> bool {
        !self.uring.completion().is_empty()
    }

    /// Takes the completions that have arrived; `now` is read once they have been counted, so no
    /// stamp is earlier than its completion.
    pub fn take(&mut self, now: impl Fn() -> i64, into: &mut Vec<Completion>) -> i64 {
        if self.uring.submission().cq_overflow() {
            self.overflows += 1;
        }
        let queue = self.uring.completion();
        let stamp = now();
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

fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
