//! The binary stream of blktrace(8) and of the ftrace `blk` tracer: one `struct blk_io_trace` of 48 bytes per event,
//! each followed by as many bytes of payload as it says (`include/uapi/linux/blktrace_api.h`).
//!
//! Both byte orders are read; the host's own is written. Times are ns of whatever clock the recorder used, sectors
//! are 512 bytes.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a record without its payload.
pub const RECORD_BYTES: usize = 48;

/// The upper 24 bits of the first word; the lowest 8 are the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// What a record says happened: the low 16 bits of its action (`enum blktrace_act`).
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
    /// `R`: the driver gave a request back.
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

/// Categories: the high 16 bits of an action (`enum blktrace_cat`).
pub mod category {
    /// Data come from the device.
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

/// The bit of the low 16 that says that the payload begins with a cgroup's id.
const CGROUP: u16 = 1 << 8;
/// The notification that carries a process's name.
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
        /// What stands there, in the host's byte order.
        found: u32,
    },
    /// The stream ends inside a record.
    #[error("byte {offset}: the record that begins here is cut short: {have} of {need} bytes")]
    Truncated {
        /// Bytes before it.
        offset: u64,
        /// Bytes that there are.
        have: usize,
        /// Bytes that it says it has.
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

    /// Id of the cgroup that it is charged to, if the recorder was asked for it.
    pub fn cgroup(&self) -> Option<u64> {
        let id = self.payload.first_chunk::<8>().filter(|_| self.action as u16 & CGROUP != 0)?;
        Some(u64::from_ne_bytes(*id))
    }

    /// Leaves the cgroup's id out: blkparse before 1.3 and fio know no records with one.
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

    /// The name that a process notification gives to [`Record::pid`].
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

/// Bytes asked of the source at once.
const READ_BYTES: usize = 1 << 18;

/// Reads the records of a stream.
pub struct Reader<R> {
    path: PathBuf,
    source: R,
    buffer: Vec<u8>,
    used: usize,
    offset: u64,
    ended: bool,
}

impl Reader<File> {
    /// Opens a file of one CPU, such as `loop0.blktrace.0`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Ok(Reader::new(file, path))
    }
}

impl<R: Read> Reader<R> {
    /// Reads from `source`; `path` is its name in errors.
    pub fn new(source: R, path: &Path) -> Self {
        Reader { path: path.to_owned(), source, buffer: Vec::new(), used: 0, offset: 0, ended: false }
    }

    fn fill(&mut self) -> Result<usize, Error> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + READ_BYTES, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(held + read.as_ref().copied().unwrap_or(0));
        read.map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    fn advance(&mut self) -> Result<Option<Record>, Error> {
        loop {
            if let Some((record, length)) = Record::decode(&self.buffer[self.used..], self.offset)? {
                self.used += length;
                self.offset += length as u64;
                return Ok(Some(record));
            }
            if self.fill()? == 0 {
                let rest = &self.buffer[self.used..];
                if rest.is_empty() {
                    return Ok(None);
                }
                let payload = if rest.len() < RECORD_BYTES {
                    0
                } else {
                    let bytes = [rest[46], rest[47]];
                    let little = rest[0] == VERSION as u8;
                    usize::from(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
                };
                return Err(Error::Truncated {
                    offset: self.offset,
                    have: rest.len(),
                    need: RECORD_BYTES + payload,
                });
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Writes `PREFIX.blktrace.CPU` for every CPU up to the highest that has a record, as blktrace(8) does, so that
/// blkparse, btt and fio read them: records are numbered and in the order of time, and have no cgroup ids.
/// Returns the files.
///
/// # Errors
/// A file cannot be written.
pub fn write_per_cpu(prefix: &Path, records: &mut [Record]) -> Result<Vec<PathBuf>, Error> {
    records.sort_by_key(|record| record.time_ns);
    let highest = records.iter().map(|record| record.cpu).max().unwrap_or(0);
    let mut files = Vec::new();
    for cpu in 0..=highest {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!(".blktrace.{cpu}"));
        let path = PathBuf::from(name);
        let io = |source| Error::Io { path: path.clone(), source };
        let mut file = BufWriter::new(File::create(&path).map_err(io)?);
        for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| record.cpu == cpu) {
            record.sequence = u32::try_from(index + 1).unwrap_or(u32::MAX);
            record.forget_cgroup();
            file.write_all(&record.encode()).map_err(io)?;
        }
        file.flush().map_err(io)?;
        files.push(path);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> Record {
        Record {
            sequence: 1,
            time_ns: 0x0102_0304_0506_0708,
            sector: 0x1112_1314_1516_1718,
            bytes: 4096,
            action: u32::from(category::ISSUE | category::WRITE) << 16 | 7,
            pid: 42,
            device: 7 << 20 | 3,
            cpu: 1,
            error: 0,
            payload: Box::new([]),
        }
    }

    /// The same record as the other byte order would have it.
    fn swapped(record: &Record) -> Vec<u8> {
        let mut bytes = record.encode();
        for (at, width) in
            [(0, 4), (4, 4), (8, 8), (16, 8), (24, 4), (28, 4), (32, 4), (36, 4), (40, 4), (44, 2), (46, 2)]
        {
            bytes[at..at + width].reverse();
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, Error> {
        Reader::new(bytes, Path::new("test")).collect()
    }

    #[test]
    fn the_layout_is_the_kernels() {
        let bytes = record().encode();
        assert_eq!(bytes.len(), 48);
        assert_eq!(u32::from_ne_bytes(bytes[0..4].try_into().unwrap()), 0x6561_7407);
        assert_eq!(u64::from_ne_bytes(bytes[16..24].try_into().unwrap()), record().sector);
        assert_eq!(u32::from_ne_bytes(bytes[36..40].try_into().unwrap()), 7 << 20 | 3);
    }

    #[test]
    fn both_byte_orders_are_read() {
        let mut stream = record().encode();
        stream.extend(swapped(&record()));
        assert_eq!(read(&stream).unwrap(), [record(), record()]);
    }

    #[test]
    fn damage_is_located() {
        let mut stream = record().encode();
        stream.extend(b"what is this");
        let error = read(&stream).unwrap_err().to_string();
        assert!(error.starts_with("byte 48: no blktrace record begins here"), "{error}");
        stream.truncate(40);
        assert!(matches!(read(&stream), Err(Error::Truncated { offset: 0, have: 40, need: 48 })));
    }

    #[test]
    fn names_splits_and_cgroups_are_in_the_payload() {
        assert_eq!(Record::naming(7, "fio", 0).process_name().as_deref(), Some("fio"));
        let payload: Box<[u8]> = [1_u64.to_ne_bytes(), 4096_u64.to_be_bytes()].concat().into();
        let split = Record { action: 13 | u32::from(CGROUP), payload, ..record() };
        assert_eq!((split.event(), split.split_at()), (Event::Split, Some(4096)));
    }

    #[test]
    fn files_are_per_cpu_in_order_and_numbered() {
        let directory = tempfile::tempdir().unwrap();
        let at = |time_ns, cpu| Record { time_ns, cpu, ..record() };
        let mut records = [at(30, 0), at(10, 1), at(20, 0)];
        let files = write_per_cpu(&directory.path().join("x"), &mut records).unwrap();
        assert_eq!(files.len(), 2);
        let first: Vec<_> = Reader::open(&files[0]).unwrap().map(Result::unwrap).collect();
        let numbers: Vec<_> = first.iter().map(|record| (record.sequence, record.time_ns)).collect();
        assert_eq!(numbers, [(2, 20), (3, 30)]);
    }

    proptest! {
        #[test]
        fn any_record_survives(
            time_ns: u64, sector: u64, bytes: u32, action: u32, pid: u32, error: u16,
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let record = Record { time_ns, sector, bytes, action, pid, error, payload: payload.into(), ..record() };
            prop_assert_eq!(read(&record.encode()).unwrap(), [record]);
        }

        #[test]
        fn any_bytes_end_in_records_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let _ = read(&bytes);
        }

        #[test]
        fn any_damage_ends_in_records_or_an_error(at in 0_usize..96, value: u8, keep in 0_usize..97) {
            let mut stream = record().encode();
            stream.extend(record().encode());
            stream[at] = value;
            stream.truncate(keep);
            for record in Reader::new(&stream[..], Path::new("test")).flatten() {
                let _ = (record.event(), record.split_at(), record.process_name(), record.data().len());
            }
        }
    }
}
