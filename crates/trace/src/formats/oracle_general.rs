//! oracleGeneral: the cache traces of libCacheSim, little endian, without a header.
//!
//! 24 bytes: time in seconds (u32), object (u64), size in bytes (u32), and the number of the next request for the object,
//! -1 if none (i64). The variant with operations has 27 bytes: a code (u8, `req_op_e` of libCacheSim) and a namespace
//! (u16, here the device) precede the last field.

use super::format::Format;
use crate::binary::{RecordFormat, u16_le, u32_le, u64_le};
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};

pub(super) const FORMAT: Format = Format::of_records::<OracleGeneral, PLAIN_BYTES>(
    "oracle-general",
    "libCacheSim oracleGeneral, requests for objects; since the start, in whole seconds",
    detect::<PLAIN_BYTES>,
);
pub(super) const FORMAT_OP: Format = Format::of_records::<OracleGeneral, OP_BYTES>(
    "oracle-general-op",
    "libCacheSim oracleGeneral with operations; since the start, in whole seconds",
    detect::<OP_BYTES>,
);

const PLAIN_BYTES: usize = 24;
const OP_BYTES: usize = 27;
/// Records that are examined to detect the format.
const DETECTED: usize = 64;
/// No object of a cache is as large.
const LARGEST_BYTES: u32 = 1 << 31;

/// No mark, but times that do not go back, sizes that are possible, and next requests that lie ahead of their own.
fn detect<const N: usize>(head: &[u8]) -> bool {
    let mut last_s = 0;
    let mut records = 0;
    for (number, record) in head.chunks_exact(N).take(DETECTED).enumerate() {
        let (time_s, next) = (u32_le(record, 0), u64_le(record, N - 8).cast_signed());
        let ahead = next == -1 || next > number as i64 && next < 1 << 40;
        let possible = (1..LARGEST_BYTES).contains(&u32_le(record, 12));
        if time_s < last_s || !possible || !ahead || N == OP_BYTES && op(record[16]).is_err() {
            return false;
        }
        last_s = time_s;
        records += 1;
    }
    records > 0
}

/// Operation of a code: first the codes of key-value stores, then those of files and blocks.
fn op(code: u8) -> Result<TraceOp, Bad> {
    Ok(match code {
        // get, gets; read.
        1 | 2 | 12 => TraceOp::Read,
        // set, add, cas, replace, append, prepend; increment, decrement; write, update.
        3..=8 | 10 | 11 | 13 | 14 => TraceOp::Write,
        // delete.
        9 => TraceOp::Discard,
        // none, and what later versions add.
        0 | 15..=31 => TraceOp::Other,
        _ => return Err(Bad::number("operation", code, "a code below 32")),
    })
}

#[derive(Default)]
struct OracleGeneral;

impl<const N: usize> RecordFormat<N> for OracleGeneral {
    fn parse(&mut self, record: &[u8; N], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let next = u64_le(record, N - 8).cast_signed();
        if next < -1 {
            return Err(Bad::number("next request", next, "-1 or the number of a request"));
        }
        let (op, device) = if N == OP_BYTES {
            (op(record[16])?, devices.number(&digits(u16_le(record, 17))))
        } else {
            (TraceOp::Read, devices.number(b"0"))
        };
        Ok(Some(TraceRequest {
            arrival_ns: i64::from(u32_le(record, 0)) * 1_000_000_000,
            device,
            op,
            size_bytes: u64::from(u32_le(record, 12)),
            object: Some(u64_le(record, 4)),
            ..TraceRequest::default()
        }))
    }
}

/// A namespace's name, of five digits.
fn digits(number: u16) -> [u8; 5] {
    [10_000, 1000, 100, 10, 1].map(|place| b'0' + (number / place % 10) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_not_repeated() {
        let mut record = [0; 24];
        record[..4].copy_from_slice(&7_u32.to_le_bytes());
        record[4] = 9;
        record[13] = 2;
        record[16..].fill(0xff);
        let request = OracleGeneral.parse(&record, &mut Devices::default()).unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.object), (7_000_000_000, Some(9)));
        assert_eq!((request.size_bytes, request.op), (512, TraceOp::Read));
        assert!(detect::<24>(&record));
        record[16] = 0xfe;
        let wrong = OracleGeneral.parse(&record, &mut Devices::default());
        assert_eq!(wrong.unwrap_err().field, "next request");
    }

    #[test]
    fn a_set_in_a_namespace() {
        let mut record = [0; 27];
        record[12] = 1;
        record[16..19].copy_from_slice(&[3, 42, 1]);
        record[19] = 5;
        let mut devices = Devices::default();
        let request = OracleGeneral.parse(&record, &mut devices).unwrap().unwrap();
        assert_eq!((request.op, devices.name(request.device).as_str()), (TraceOp::Write, "00298"));
        assert!(detect::<27>(&record));
        record[16] = 32;
        assert_eq!(OracleGeneral.parse(&record, &mut devices).unwrap_err().field, "operation");
    }
}
