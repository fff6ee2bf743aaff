//! The binary stream of blktrace(8) and of the ftrace `blk` tracer: one `struct blk_io_trace` of 48 bytes per event, each
//! followed by its payload (`include/uapi/linux/blktrace_api.h`).
//!
//! Both byte orders are read; the host's own is written. Times are ns of the recorder's clock, sectors are 512 bytes.

mod stream;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use stream::{Reader, write_per_cpu};

/// Bytes of a record without its payload.
pub const RECORD_BYTES: usize = 48;

/// The upper 24 bits of the first word; the lowest 8 are the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Event of a record: the low 16 bits of its action (`enum blktrace_act`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `Q`: a bio arrived.
    Queue,
    /// `M`: a bio or request was merged behind a request.
    BackMerge,
    /// `F`: a bio was merged in front of a request.
    FrontMerge,
    /// `G`: a request was made for a bio.
    GetRequest,
    /// `R`: the driver returned a request (requeue).
    Requeue,
    /// `D`: a request was handed to the driver.
    Issue,
    /// `C`: a request was completed.
    Complete,
    /// `I`: a request entered the I/O scheduler.
    Insert,
    /// `X`: a bio was split; the payload is the sector at which the rest begins.
    Split,
    /// Plugging, remapping, sleeping and whatever a later kernel adds.
    Other(u16),
    /// Not about a request: process names, times, messages.
    Notify(u16),
}

impl Event {
    /// The event that blkparse(1) names by this letter; others are about no request.
    pub fn from_letter(letter: &[u8]) -> Option<Event> {
        Some(match letter {
            b"Q" => Event::Queue,
            b"M" => Event::BackMerge,
            b"F" => Event::FrontMerge,
            b"G" => Event::GetRequest,
            b"R" => Event::Requeue,
            b"D" => Event::Issue,
            b"C" => Event::Complete,
            b"I" => Event::Insert,
            b"X" => Event::Split,
            _ => return None,
        })
    }

    /// The low 16 bits of an action.
    pub fn code(self) -> u16 {
        match self {
            Event::Queue => 1,
            Event::BackMerge => 2,
            Event::FrontMerge => 3,
            Event::GetRequest => 4,
            Event::Requeue => 6,
            Event::Issue => 7,
            Event::Complete => 8,
            Event::Insert => 12,
            Event::Split => 13,
            Event::Other(code) | Event::Notify(code) => code,
        }
    }
}

/// Categories: the high 16 bits of an action (`enum blktrace_cat`).
pub mod category {
    /// Data are read from the device.
    pub const READ: u16 = 1;
    /// Data go to the device.
    pub const WRITE: u16 = 1 << 1;
    /// A flush of the device's cache, alone or before the data.
    pub const FLUSH: u16 = 1 << 2;
    /// Someone waits for it.
    pub const SYNC: u16 = 1 << 3;
    /// Queueing and merging.
    pub const QUEUE: u16 = 1 << 4;
    /// Requeueing.
    pub const REQUEUE: u16 = 1 << 5;
    /// Issuing.
    pub const ISSUE: u16 = 1 << 6;
    /// Completing.
    pub const COMPLETE: u16 = 1 << 7;
    /// From a file system or another user of bios.
    pub const FS: u16 = 1 << 8;
    /// Passed through from a driver's user.
    pub const PASS_THROUGH: u16 = 1 << 9;
    /// Not about a request.
    pub const NOTIFY: u16 = 1 << 10;
    /// Read ahead of a reader.
    pub const READ_AHEAD: u16 = 1 << 11;
    /// Metadata.
    pub const META: u16 = 1 << 12;
    /// The sectors are not needed any more.
    pub const DISCARD: u16 = 1 << 13;
    /// Force unit access: durable when complete.
    pub const FUA: u16 = 1 << 15;
}

/// Bit of the low 16: the payload begins with a cgroup id.
const CGROUP: u16 = 1 << 8;
/// Notification with the name of a process.
const NOTE_PROCESS: u16 = 0;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Number of the record among all of the trace; 0 from ftrace.
    pub sequence: u32,
    /// Ns of the recorder's clock.
    pub time_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Bytes of the bio or request.
    pub bytes: u32,
    /// Event in the low, categories in the high 16 bits.
    pub action: u32,
    /// The task.
    pub pid: u32,
    /// The disk: `major << 20 | minor`.
    pub device: u32,
    /// The CPU that it happened on.
    pub cpu: u32,
    /// 0, or the `errno` of a completion.
    pub error: u16,
    /// What follows the record.
    pub payload: Box<[u8]>,
}

/// A stream that cannot be read, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// What should begin a record does not.
    #[error(
        "byte {offset}: no blktrace record begins here (found {found:#010x}, expected {MAGIC:#010x} | {VERSION} in either byte order)"
    )]
    Magic {
        /// Bytes before it.
        offset: u64,
        /// The value at this position, in the host's byte order.
        found: u32,
    },
    /// The stream ends inside a record.
    #[error("byte {offset}: the record that begins here is cut short: {have} of {need} bytes")]
    Truncated {
        /// Bytes before it.
        offset: u64,
        /// Bytes that there are.
        have: usize,
        /// Length of the payload in bytes.
        need: usize,
    },
}

impl Record {
    /// What happened.
    pub fn event(&self) -> Event {
        if self.categories() & category::NOTIFY != 0 {
            return Event::Notify(self.code());
        }
        match self.code() {
            1 => Event::Queue,
            2 => Event::BackMerge,
            3 => Event::FrontMerge,
            4 => Event::GetRequest,
            6 => Event::Requeue,
            7 => Event::Issue,
            8 => Event::Complete,
            12 => Event::Insert,
            13 => Event::Split,
            other => Event::Other(other),
        }
    }

    /// The bits of [`category`].
    pub fn categories(&self) -> u16 {
        (self.action >> 16) as u16
    }

    fn code(&self) -> u16 {
        self.action as u16 & !CGROUP
    }

    /// The payload after the cgroup's id, if there is one.
    pub fn data(&self) -> &[u8] {
        if self.action as u16 & CGROUP != 0 { self.payload.get(8..).unwrap_or(&[]) } else { &self.payload }
    }

    /// Id of the cgroup that is charged, if the recorder was set to record it.
    pub fn cgroup(&self) -> Option<u64> {
        let id = self.payload.first_chunk::<8>().filter(|_| self.action as u16 & CGROUP != 0)?;
        Some(u64::from_ne_bytes(*id))
    }

    /// Removes the cgroup id: blkparse before 1.3 and fio cannot read records with one.
    pub fn forget_cgroup(&mut self) {
        if self.cgroup().is_some() {
            self.payload = self.data().into();
            self.action &= !u32::from(CGROUP);
        }
    }

    /// The sector of a split: where the rest begins. Big endian on every host.
    pub fn split_at(&self) -> Option<u64> {
        let bytes = self.data().get(..8)?;
        (self.event() == Event::Split)
            .then(|| bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Name of [`Record::pid`] in a process notification.
    pub fn process_name(&self) -> Option<String> {
        if self.event() != Event::Notify(NOTE_PROCESS) {
            return None;
        }
        let name = self.data();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// A notification that names a process, as blktrace(8) writes one before a process's first event.
    pub fn naming(pid: u32, name: &str, time_ns: u64) -> Self {
        let mut payload = [0; 16];
        let length = name.len().min(15);
        payload[..length].copy_from_slice(&name.as_bytes()[..length]);
        Record {
            sequence: 0,
            time_ns,
            sector: 0,
            bytes: 0,
            action: u32::from(category::NOTIFY) << 16 | u32::from(NOTE_PROCESS),
            pid,
            device: 0,
            cpu: 0,
            error: 0,
            payload: Box::new(payload),
        }
    }

    /// Takes one record from the start of `bytes`, which are `offset` bytes into the stream.
    ///
    /// Returns the record and its length, or `None` if there are fewer bytes than it has.
    ///
    /// # Errors
    /// No record begins here.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Option<(Record, usize)>, Error> {
        let Some(first) = bytes.first_chunk::<4>() else { return Ok(None) };
        let found = u32::from_ne_bytes(*first);
        let swapped = match (found, found.swap_bytes()) {
            (MAGIC_AND_VERSION, _) => false,
            (_, MAGIC_AND_VERSION) => true,
            _ => return Err(Error::Magic { offset, found }),
        };
        let Some(fixed) = bytes.first_chunk::<RECORD_BYTES>() else { return Ok(None) };
        let u16_at = |at: usize| {
            let value = u16::from_ne_bytes([fixed[at], fixed[at + 1]]);
            if swapped { value.swap_bytes() } else { value }
        };
        let u32_at = |at: usize| {
            let value = u32::from_ne_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
            if swapped { value.swap_bytes() } else { value }
        };
        let u64_at = |at: usize| {
            let (first, second) = (u64::from(u32_at(at)), u64::from(u32_at(at + 4)));
            // The host's order, or, swapped twice by halves, the other one.
            if cfg!(target_endian = "little") == swapped {
                first << 32 | second
            } else {
                second << 32 | first
            }
        };
        let length = RECORD_BYTES + usize::from(u16_at(46));
        let Some(payload) = bytes.get(RECORD_BYTES..length) else { return Ok(None) };
        let record = Record {
            sequence: u32_at(4),
            time_ns: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            pid: u32_at(32),
            device: u32_at(36),
            cpu: u32_at(40),
            error: u16_at(44),
            payload: payload.into(),
        };
        Ok(Some((record, length)))
    }

    /// The record's bytes in the host's order; a payload beyond 65535 bytes is cut off.
    pub fn encode(&self) -> Vec<u8> {
        let payload_bytes = u16::try_from(self.payload.len()).unwrap_or(u16::MAX);
        let mut bytes = Vec::with_capacity(RECORD_BYTES + usize::from(payload_bytes));
        bytes.extend_from_slice(&MAGIC_AND_VERSION.to_ne_bytes());
        bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        bytes.extend_from_slice(&self.time_ns.to_ne_bytes());
        bytes.extend_from_slice(&self.sector.to_ne_bytes());
        for value in [self.bytes, self.action, self.pid, self.device, self.cpu] {
            bytes.extend_from_slice(&value.to_ne_bytes());
        }
        bytes.extend_from_slice(&self.error.to_ne_bytes());
        bytes.extend_from_slice(&payload_bytes.to_ne_bytes());
        bytes.extend_from_slice(&self.payload[..usize::from(payload_bytes)]);
        bytes
    }
}

const MAGIC_AND_VERSION: u32 = MAGIC | VERSION;
