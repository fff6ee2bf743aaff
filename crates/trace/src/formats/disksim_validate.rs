//! The validation traces of DiskSim: requests measured on real SCSI disks, one at a time.
//!
//! `R|W action blkno bcount service gap` between white space: action of the disk's cache (such as `Hit`, `Miss`),
//! 512-byte block, blocks, us with a fraction, us with a fraction. DiskSim's iodriver issues the next request a gap after
//! the **completion** of this one, although the field is called an interarrival time; so does this reader. Times count
//! from the first request. Fractions of ns are summed, and each time is rounded down to ns.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, SECTOR_BYTES, decimal_ns, times, whole, words};

pub(super) const FORMAT: Format = Format::of_lines::<Validate>(
    "disksim-validate",
    "DiskSim validation traces of real disks; since the first request",
);

/// Times are added up in units of 10^-15 s, as long as one gap is below 2.5 hours.
const US_FS: u64 = 1_000_000_000;
const NS_FS: i128 = 1_000_000;

#[derive(Default)]
struct Validate {
    next_fs: i128,
}

impl LineFormat for Validate {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = words(line);
        let mut need = |field, expected| fields.need(field, expected);
        let op = match need("operation", "R or W")? {
            b"R" => TraceOp::Read,
            b"W" => TraceOp::Write,
            other => return Err(Bad::text("operation", other, "R or W")),
        };
        let action = need("cache action", "a word such as Hit")?;
        if !action.iter().all(u8::is_ascii_alphabetic) {
            return Err(Bad::text("cache action", action, "a word such as Hit"));
        }
        let block = whole("blkno", need("blkno", "a whole number")?)?;
        let blocks = whole("bcount", need("bcount", "a whole number")?)?;
        let service_fs = decimal_ns("service time", need("service time", "us")?, US_FS)?;
        let gap_fs = decimal_ns("gap", need("gap", "us")?, US_FS)?;
        fields.end()?;
        let request = TraceRequest {
            arrival_ns: i64::try_from(self.next_fs / NS_FS)
                .map_err(|_| Bad::number("sum of times", self.next_fs, "less than 292 years"))?,
            response_ns: Some(service_fs / NS_FS as i64),
            device: devices.number(b"0"),
            op,
            offset_bytes: times("blkno", block, SECTOR_BYTES)?,
            size_bytes: times("bcount", blocks, SECTOR_BYTES)?,
            ..TraceRequest::default()
        };
        self.next_fs += i128::from(service_fs) + i128::from(gap_fs);
        Ok(Some(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_request_comes_a_gap_after_the_completion() {
        let mut format = Validate::default();
        let mut parse = |line: &str| format.parse(line.as_bytes(), &mut Devices::default()).unwrap().unwrap();
        let first = parse("R Miss  564347     2     14095.370     13876.270");
        assert_eq!((first.arrival_ns, first.response_ns, first.op), (0, Some(14_095_370), TraceOp::Read));
        let second = parse("W Hit 25805 43 28803.000000 20296.7867385");
        assert_eq!(second.arrival_ns, 14_095_370 + 13_876_270);
        assert_eq!((second.offset_bytes, second.size_bytes), (25_805 * 512, 43 * 512));
        // 28803.0 + 20296.7867385 us: the half ns is kept for the next.
        let third = parse("W Hit 1 1 0.0005 0.0000");
        assert_eq!(third.arrival_ns, 27_971_640 + 49_099_786);
        assert_eq!(parse("R Doub 1 1 1 1").arrival_ns, 27_971_640 + 49_099_787);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut format = Validate::default();
        let mut field =
            |line: &str| format.parse(line.as_bytes(), &mut Devices::default()).unwrap_err().field;
        assert_eq!(field("X Hit 1 1 1 1"), "operation");
        assert_eq!(field("R 7 1 1 1 1"), "cache action");
        assert_eq!(field("R Hit 1 1 1"), "gap");
    }
}
