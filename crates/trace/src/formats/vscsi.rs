//! vSCSI: traces of virtual disks by CloudPhysics (Waldspurger et al., FAST 2015), versions 1 and 2.
//!
//! Little endian, no header. Version 1, 32 bytes: serial number (u32), bytes (u32), scatter-gather entries (u32), SCSI
//! operation code (u16), version (u16: 1 in the upper byte), 512-byte block (u64), us since an origin of the recorder's
//! (u64). Version 2, 40 bytes: operation code (u16), version (u16: 2 in the upper byte), serial number, bytes and entries
//! (u32 each), block, us, and a response time (u64 each); the unit of the last is undocumented; it is not used.

use super::format::Format;
use super::options::Options;
use super::scsi;
use crate::Reader;
use crate::binary::{RecordFormat, RecordReader, u16_le, u32_le, u64_le};
use crate::error::Bad;
use crate::input::Input;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::times;

pub(super) const FORMAT_1: Format = Format {
    name: "vscsi1",
    about: "CloudPhysics vSCSI 1, virtual disks; since an origin of the recorder's",
    detect: |head| detect(&V1, head),
    open: |input, options| Ok(open(input, V1, options)),
};
pub(super) const FORMAT_2: Format = Format {
    name: "vscsi2",
    about: "CloudPhysics vSCSI 2, virtual disks; since an origin of the recorder's",
    detect: |head| detect(&V2, head),
    open: |input, options| Ok(open(input, V2, options)),
};

const SECTOR_BYTES: u64 = 512;
const DETECTED: usize = 16;

/// Positions of the fields in a version.
struct Layout<const N: usize> {
    number: u16,
    version: usize,
    op: usize,
    bytes: usize,
    block: usize,
    time_us: usize,
}

const V1: Layout<32> = Layout { number: 1, version: 14, op: 12, bytes: 4, block: 16, time_us: 24 };
const V2: Layout<40> = Layout { number: 2, version: 2, op: 0, bytes: 8, block: 16, time_us: 24 };

/// All of the first records have the version, and most have disk commands.
fn detect<const N: usize>(layout: &Layout<N>, head: &[u8]) -> bool {
    let records: Vec<_> = head.chunks_exact(N).take(DETECTED).collect();
    let commands = records.iter().filter(|record| scsi::op(u16_le(record, layout.op)) != TraceOp::Other);
    commands.count() * 2 > records.len()
        && records.iter().all(|record| u16_le(record, layout.version) >> 8 == layout.number)
}

fn open<const N: usize>(input: Input, layout: Layout<N>, options: &Options) -> Box<dyn Reader> {
    Box::new(RecordReader::new(input, layout, options.skip_bad))
}

impl<const N: usize> RecordFormat<N> for Layout<N> {
    fn parse(&mut self, record: &[u8; N], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let version = u16_le(record, self.version);
        if version >> 8 != self.number {
            return Err(Bad::number("version", version, "1 or 2 in the upper byte, as the format says"));
        }
        let time_us = u64_le(record, self.time_us);
        let arrival_ns = i64::try_from(time_us).ok().and_then(|us| us.checked_mul(1000));
        Ok(Some(TraceRequest {
            arrival_ns: arrival_ns
                .ok_or_else(|| Bad::number("time", time_us, "us, less than 292 years of them"))?,
            device: devices.number(b"0"),
            op: scsi::op(u16_le(record, self.op)),
            offset_bytes: times("block", u64_le(record, self.block), SECTOR_BYTES)?,
            size_bytes: u64::from(u32_le(record, self.bytes)),
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serial 1, 4096 bytes, 1 entry, READ(10), version 1, block 0x1234, 5 s.
    const ONE: [u8; 32] = [
        1, 0, 0, 0, 0, 0x10, 0, 0, 1, 0, 0, 0, 0x28, 0, 0, 1, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0x40, 0x4b, 0x4c,
        0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_read_of_version_1() {
        let request = { V1 }.parse(&ONE, &mut Devices::default()).unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (5_000_000_000, TraceOp::Read));
        assert_eq!((request.offset_bytes, request.size_bytes), (0x1234 * 512, 4096));
        assert!((FORMAT_1.detect)(&ONE) && !(FORMAT_2.detect)(&[ONE, ONE, ONE].concat()));
    }

    #[test]
    fn a_write_of_version_2() {
        let mut record = [0; 40];
        record[..4].copy_from_slice(&[0x2a, 0, 0, 2]);
        record[8] = 0xff;
        record[16] = 2;
        record[24] = 3;
        let request = { V2 }.parse(&record, &mut Devices::default()).unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (3000, TraceOp::Write));
        assert_eq!((request.offset_bytes, request.size_bytes, request.response_ns), (1024, 255, None));
        assert!((FORMAT_2.detect)(&record) && !(FORMAT_1.detect)(&record));
    }

    #[test]
    fn another_version_is_damage() {
        let mut record = ONE;
        record[15] = 7;
        assert_eq!({ V1 }.parse(&record, &mut Devices::default()).unwrap_err().field, "version");
    }
}
