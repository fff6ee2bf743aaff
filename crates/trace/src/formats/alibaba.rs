//! Alibaba cloud block storage (Li et al., IISWC 2020).
//!
//! `device_id,opcode,offset,length,timestamp`, no header: a number, `R` or `W`, bytes, bytes, us since 1970.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, split, whole, whole_ns};

pub(super) const FORMAT: Format =
    Format::of_lines::<Alibaba>("alibaba", "Alibaba cloud block storage; since 1970");

#[derive(Default)]
struct Alibaba;

impl LineFormat for Alibaba {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = split(line, b',');
        let mut need = |field, expected| fields.need(field, expected);
        let device = need("device_id", "a whole number")?;
        whole("device_id", device)?;
        let op = match need("opcode", "R or W")? {
            b"R" => TraceOp::Read,
            b"W" => TraceOp::Write,
            other => return Err(Bad::text("opcode", other, "R or W")),
        };
        let offset_bytes = whole("offset", need("offset", "bytes")?)?;
        let size_bytes = whole("length", need("length", "bytes")?)?;
        let arrival_ns = whole_ns("timestamp", need("timestamp", "us")?, 1000)?;
        fields.end()?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(device),
            op,
            offset_bytes,
            size_bytes,
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_line;

    #[test]
    fn times_are_in_us() {
        let request = parse_line::<Alibaba>("419,W,8792731648,16384,1577808144360767").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (1_577_808_144_360_767_000, TraceOp::Write));
        assert_eq!((request.offset_bytes, request.size_bytes), (8_792_731_648, 16_384));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse_line::<Alibaba>("419,X,0,16384,1577808144360767").unwrap_err().field, "opcode");
        assert_eq!(
            parse_line::<Alibaba>("419,R,0,16384,18446744073709551615").unwrap_err().field,
            "timestamp"
        );
        assert_eq!(parse_line::<Alibaba>("419,R,0").unwrap_err().field, "length");
    }
}
