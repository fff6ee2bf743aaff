//! Tencent cloud block storage (Zhang et al., USENIX ATC 2020).
//!
//! `timestamp,offset,size,iotype,volume`: seconds since 1970 without a fraction, sectors of 512 bytes, sectors, **0 for a
//! read and 1 for a write** (the reverse of DiskSim and MQSim), a number. Lines are not in the order of their times.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, SECTOR_BYTES, split, times, whole, whole_ns};

pub(super) const FORMAT: Format =
    Format::of_lines::<Tencent>("tencent", "Tencent cloud block storage; since 1970, in whole seconds");

#[derive(Default)]
struct Tencent;

impl LineFormat for Tencent {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = split(line, b',');
        let mut need = |field, expected| fields.need(field, expected);
        let arrival_ns = whole_ns("timestamp", need("timestamp", "whole seconds")?, 1_000_000_000)?;
        let offset = whole("offset", need("offset", "sectors")?)?;
        let size = whole("size", need("size", "sectors")?)?;
        let op = match need("iotype", "0 (read) or 1 (write)")? {
            b"0" => TraceOp::Read,
            b"1" => TraceOp::Write,
            other => return Err(Bad::text("iotype", other, "0 (read) or 1 (write)")),
        };
        let volume = need("volume", "a whole number")?;
        whole("volume", volume)?;
        fields.end()?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(volume),
            op,
            offset_bytes: times("offset", offset, SECTOR_BYTES)?,
            size_bytes: times("size", size, SECTOR_BYTES)?,
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_line;

    #[test]
    fn one_writes() {
        let request = parse_line::<Tencent>("1538323200,4247200,128,1,1058").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (1_538_323_200_000_000_000, TraceOp::Write));
        assert_eq!((request.offset_bytes, request.size_bytes), (4_247_200 * 512, 65_536));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse_line::<Tencent>("1538323200,4247200,128,2,1058").unwrap_err().field, "iotype");
        assert_eq!(
            parse_line::<Tencent>("1538323200,36028797018963968,128,0,1").unwrap_err().field,
            "offset"
        );
        assert_eq!(parse_line::<Tencent>("9223372037,0,128,0,1").unwrap_err().field, "timestamp");
        assert_eq!(parse_line::<Tencent>("1538323200,0,128,0").unwrap_err().field, "volume");
    }
}
