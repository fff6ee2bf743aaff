//! CSV of libCacheSim's sample trace.
//!
//! A header, `version,time,op,size,lbn`, then lines of: a whole number, whole seconds since an origin of the recorder's,
//! a SCSI operation code in hexadecimal, bytes, 512-byte block. For other columns that libCacheSim can read, use format
//! `csv`.

use super::format::Format;
use super::scsi;
use crate::error::Bad;
use crate::request::{Devices, TraceRequest};
use crate::text::{LineFormat, SECTOR_BYTES, decimal_ns, head_lines, hexadecimal, split, times, whole};

pub(super) const FORMAT: Format = Format {
    detect,
    ..Format::of_lines::<LibcachesimCsv>(
        "libcachesim-csv",
        "libCacheSim's CSV of SCSI commands; since an origin of the recorder's, in whole seconds",
    )
};

const HEADER: &[u8] = b"version,time,op,size,lbn";

fn detect(head: &[u8]) -> bool {
    head_lines(head).next() == Some(HEADER)
}

#[derive(Default)]
struct LibcachesimCsv;

impl LineFormat for LibcachesimCsv {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        if line == HEADER {
            return Ok(None);
        }
        let mut fields = split(line, b',');
        let mut need = |field, expected| fields.need(field, expected);
        whole("version", need("version", "a whole number")?)?;
        let arrival_ns = decimal_ns("time", need("time", "seconds")?, 1_000_000_000)?;
        let code = hexadecimal("op", need("op", "a SCSI operation code")?)?;
        let size_bytes = whole("size", need("size", "bytes")?)?;
        let block = whole("lbn", need("lbn", "a whole number")?)?;
        fields.end()?;
        let code = u16::try_from(code).map_err(|_| Bad::number("op", code, "a SCSI operation code"))?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(b"0"),
            op: scsi::op(code),
            offset_bytes: times("lbn", block, SECTOR_BYTES)?,
            size_bytes,
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceOp;
    use crate::text::parse_line;

    #[test]
    fn operations_are_hexadecimal() {
        let request = parse_line::<LibcachesimCsv>("1,33898,2a,512,42932745").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (33_898_000_000_000, TraceOp::Write));
        assert_eq!((request.offset_bytes, request.size_bytes), (42_932_745 * 512, 512));
        assert_eq!(parse_line::<LibcachesimCsv>("1,33898,28,512,1").unwrap().unwrap().op, TraceOp::Read);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse_line::<LibcachesimCsv>("1,33898,zz,512,42932745").unwrap_err().field, "op");
        assert_eq!(parse_line::<LibcachesimCsv>("1,33898,12345,512,42932745").unwrap_err().field, "op");
        assert_eq!(parse_line::<LibcachesimCsv>("1,33898,2a,512").unwrap_err().field, "lbn");
    }
}
