//! oracleGeneral: the cache traces of libCacheSim. 24 bytes, little endian: time in seconds (u32), object (u64), size in
//! bytes (u32), and the number of the request that asks for the object next, -1 if none (i64).

use super::{Format, Options};
use crate::binary::{RecordFormat, RecordReader, u32_le, u64_le};
use crate::error::Bad;
use crate::input::Input;
use crate::request::{Devices, TraceRequest};
use crate::{Error, Reader};

pub(super) const FORMAT: Format = Format {
    name: "oracle-general",
    about: "libCacheSim oracleGeneral, requests for objects; seconds since the start",
    detect,
    open,
};

const RECORD_BYTES: usize = 24;
/// Records that are looked at to tell the format.
const DETECTED: usize = 64;

/// No mark, but times that do not go back, and next requests that lie ahead of their own.
fn detect(head: &[u8]) -> bool {
    let mut last_s = 0;
    let mut records = 0;
    for (number, record) in head.chunks_exact(RECORD_BYTES).take(DETECTED).enumerate() {
        let (time_s, next) = (u32_le(record, 0), u64_le(record, 16).cast_signed());
        let ahead = next == -1 || next > number as i64 && next < 1 << 40;
        if time_s < last_s || u32_le(record, 12) == 0 || !ahead {
            return false;
        }
        last_s = time_s;
        records += 1;
    }
    records > 0
}

fn open(input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    Ok(Box::new(RecordReader::new(input, OracleGeneral, options.skip_bad)))
}

struct OracleGeneral;

impl RecordFormat<RECORD_BYTES> for OracleGeneral {
    fn parse(
        &mut self,
        record: &[u8; RECORD_BYTES],
        devices: &mut Devices,
    ) -> Result<Option<TraceRequest>, Bad> {
        let next = u64_le(record, 16).cast_signed();
        if next < -1 {
            return Err(Bad::number("next request", next, "-1 or the number of a request"));
        }
        Ok(Some(TraceRequest {
            arrival_ns: i64::from(u32_le(record, 0)) * 1_000_000_000,
            device: devices.number(b"0"),
            size_bytes: u64::from(u32_le(record, 12)),
            object: Some(u64_le(record, 4)),
            ..TraceRequest::default()
        }))
    }
}
