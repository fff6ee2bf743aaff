//! SRT: HP-UX disk traces (`TR_IOREC`), as of cello, snake and hplajw (Ruemmler and Wilkes, USENIX winter 1993).
//!
//! A header in ASCII, a form feed, then consecutive records of big-endian u32. A record begins with its size in bytes,
//! its id (version in the upper, type in the lower 16 bits), and the seconds and us at which the request entered the
//! driver. The **record's** version counts; the header's can differ. Then, in versions 1 to 6:
//!
//! | word | versions | what |
//! | --- | --- | --- |
//! | 4, 5 | 1- | us to the start of service, and to completion |
//! | 6 | 1- | bytes |
//! | 7 | 1- | sector on the disk (not within the section), of the size that the header gives for the disk: often 256 bytes |
//! | 8 | 1- | device: major in the upper 8 bits, section in the lower 8, the disk between |
//! | 9 to 12 | 1- | driver type, cylinder, flags (1 reads), buffer type |
//! | 13, 14, 15 | 4-, 5-, 6- | requests in the queue; process; logical volume |
//!
//! and of version 7: start, completion, bytes, machine, device, driver type, thread, flags, buffer type, queue, process,
//! logical volume (words 4 to 15), and the byte on the disk (words 16 and 17, the upper half first).
//!
//! Types: 1 to 3 are requests, 4 are requests whose times are suspect, 5 and above belong to the file system; the last
//! two are skipped and counted. Times of versions 1 to 6 count from the header's `tracedate`, of version 7 from 1970. A
//! device is a disk; raw and block device are the same.

mod header;
#[cfg(test)]
mod tests;

use self::header::Header;
use super::format::Format;
use super::options::Options;
use super::under_way::Table;
use crate::binary::{u32_be, u64_be};
use crate::error::{Bad, Error, Place};
use crate::input::Input;
use crate::reader::{Reader, Skipping};
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::times;

pub(super) const FORMAT: Format = Format {
    name: "srt",
    about: "HP-UX SRT disk traces (hplajw, cello, snake); since the header's tracedate, or 1970 (version 7)",
    detect: |head| head.starts_with(header::MARK),
    open,
};

/// Bytes of size, id and time.
const HEAD_BYTES: usize = 16;
/// Largest record that is believed to be one.
const LARGEST_BYTES: usize = 4096;
/// Highest type that is believed to be one.
const LARGEST_TYPE: u16 = 64;
const VERSIONS: std::ops::RangeInclusive<u16> = 1..=7;
const SUSPECT: u16 = 4;
const READ: u32 = 1;
const US_NS: i64 = 1000;

const NOTE_SUSPECT: &str = "suspect records (left out: their times are unreliable)";
const NOTE_FILE_SYSTEM: &str = "file-system records (left out: they are no disk requests)";

fn open(mut input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    let header = Header::read(&mut input)?;
    Ok(Box::new(Srt {
        input,
        header,
        names: Table::default(),
        devices: Devices::default(),
        skipping: Skipping::new(options.skip_bad),
    }))
}

struct Srt {
    input: Input,
    header: Header,
    /// Numbers of the devices, by machine and disk.
    names: Table<(u32, u32), u32>,
    devices: Devices,
    skipping: Skipping,
}

/// Fields of a record's first words.
#[derive(Debug, Clone, Copy)]
struct Head {
    bytes: usize,
    version: u16,
    kind: u16,
    time_ns: i64,
}

impl Head {
    /// # Errors
    /// No record begins here.
    fn read(bytes: &[u8; HEAD_BYTES]) -> Result<Self, Bad> {
        let (size, id, us) = (u32_be(bytes, 0), u32_be(bytes, 4), u32_be(bytes, 12));
        let head = Head {
            bytes: size as usize,
            version: (id >> 16) as u16,
            kind: id as u16,
            time_ns: i64::from(u32_be(bytes, 8)) * 1_000_000_000 + i64::from(us) * US_NS,
        };
        if !VERSIONS.contains(&head.version) || head.kind == 0 || head.kind > LARGEST_TYPE {
            return Err(Bad::number("record id", id, "a version from 1 to 7, and a type"));
        }
        if head.kind != SUSPECT && us >= 1_000_000 {
            return Err(Bad::number("record time", us, "less than 1,000,000 us"));
        }
        let smallest = if head.is_request() { head.smallest_bytes() } else { HEAD_BYTES };
        if !(smallest..=LARGEST_BYTES).contains(&head.bytes) {
            return Err(Bad::number("record size", size, "the bytes of a record of its version"));
        }
        Ok(head)
    }

    fn is_request(&self) -> bool {
        self.kind < SUSPECT
    }

    /// Bytes of a request, up to the last field that is known.
    fn smallest_bytes(&self) -> usize {
        4 * match self.version {
            0..=3 => 13,
            4 => 14,
            5 => 15,
            6 => 16,
            _ => 18,
        }
    }
}

impl Srt {
    fn request(&mut self, head: Head, bytes: usize) -> Result<TraceRequest, Bad> {
        let record = &self.input.available()[..bytes];
        let word = |number: usize| u32_be(record, 4 * number);
        let after_ns = |number: usize| Some(i64::from(word(number)) * US_NS);
        // The bits between major and section.
        let disk = word(8) >> 8 & 0xffff;
        let (machine, offset_bytes) = if head.version == 7 {
            (word(7), u64_be(record, 64))
        } else {
            let sector_bytes = self
                .header
                .sector_bytes(disk)
                .ok_or_else(|| Bad::number("device", word(8), "a disk whose sectorsize is in the header"))?;
            (0, times("sector", u64::from(word(7)), u64::from(sector_bytes))?)
        };
        let queue = (head.version >= 4).then(|| word(13));
        let pid = (head.version >= 5).then(|| word(14));
        let device = *self.names.entry((machine, disk)).or_insert_with(|| {
            let name = if head.version == 7 { format!("{machine}:{disk}") } else { disk.to_string() };
            self.devices.number(name.as_bytes())
        });
        Ok(TraceRequest {
            arrival_ns: head.time_ns,
            queueing_ns: after_ns(4),
            response_ns: after_ns(5),
            device,
            op: if word(11) & READ == 0 { TraceOp::Write } else { TraceOp::Read },
            offset_bytes,
            size_bytes: u64::from(word(6)),
            object: None,
            queue_length: queue,
            pid,
        })
    }

    fn bad(&self, bad: Bad) -> Error {
        let place = Place::Byte(self.input.consumed());
        Error::Bad { path: self.input.path().to_owned(), place, bad }
    }

    /// Passes over bytes until something that may begin a record.
    fn pass_over(&mut self) -> Result<(), Error> {
        self.input.consume(1);
        loop {
            let available = self.input.need(HEAD_BYTES)?;
            // The two bytes of the version first: they reject most positions.
            let plausible = |window: &[u8]| {
                matches!(window, [_, _, _, _, 0, 1..=7, ..])
                    && window.first_chunk().is_some_and(|head| Head::read(head).is_ok())
            };
            match available.windows(HEAD_BYTES).position(plausible) {
                Some(at) => {
                    self.input.consume(at);
                    return Ok(());
                }
                None if available.len() < HEAD_BYTES => {
                    let rest = available.len();
                    self.input.consume(rest);
                    return Ok(());
                }
                None => {
                    let looked_at = available.len() - HEAD_BYTES + 1;
                    self.input.consume(looked_at);
                }
            }
        }
    }
}

impl Reader for Srt {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        loop {
            let available = match self.input.available() {
                enough if enough.len() >= HEAD_BYTES => enough,
                _ => self.input.need(HEAD_BYTES)?,
            };
            if available.is_empty() {
                return Ok(None);
            }
            let read = match available.first_chunk() {
                Some(head) => Head::read(head),
                None => {
                    let found = format!("{} bytes", available.len());
                    Err(Bad { field: "the last record", found, expected: "a whole record" })
                }
            };
            let head = match read {
                Ok(head) => head,
                Err(bad) => {
                    let error = self.bad(bad);
                    self.skipping.over(error)?;
                    self.pass_over()?;
                    continue;
                }
            };
            let have = self.input.need(head.bytes)?.len();
            if have < head.bytes {
                let found = format!("{have} of {} bytes", head.bytes);
                let error = self.bad(Bad { field: "the last record", found, expected: "a whole record" });
                self.skipping.over(error)?;
                self.pass_over()?;
                continue;
            }
            if !head.is_request() {
                self.skipping.note(if head.kind == SUSPECT { NOTE_SUSPECT } else { NOTE_FILE_SYSTEM });
                self.input.consume(head.bytes);
                continue;
            }
            let request = self.request(head, head.bytes);
            match request {
                Ok(request) => {
                    self.input.consume(head.bytes);
                    return Ok(Some(request));
                }
                Err(bad) => {
                    let error = self.bad(bad);
                    self.input.consume(head.bytes);
                    self.skipping.over(error)?;
                }
            }
        }
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }

    fn header(&self) -> &[(String, String)] {
        self.header.fields()
    }
}
