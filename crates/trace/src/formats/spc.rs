//! SPC: the Storage Performance Council's trace format 1.0, as in the UMass repository's Financial and WebSearch.
//!
//! `ASU,LBA,size,opcode,timestamp`: application storage unit, 512-byte block, bytes, `R` or `W` in either case, seconds
//! since the start with a fraction. Further fields are optional and are not used.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, SECTOR_BYTES, decimal_ns, split, times, whole};

pub(super) const FORMAT: Format = Format::of_lines::<Spc>(
    "spc",
    "Storage Performance Council 1.0 (UMass Financial, WebSearch); seconds since the start",
);

#[derive(Default)]
struct Spc;

impl LineFormat for Spc {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = split(line, b',');
        let mut need = |field, expected| fields.need(field, expected);
        let unit = need("ASU", "a whole number")?;
        whole("ASU", unit)?;
        let block = whole("LBA", need("LBA", "a whole number")?)?;
        let size_bytes = whole("size", need("size", "a whole number")?)?;
        let op = match need("opcode", "R or W")? {
            b"R" | b"r" => TraceOp::Read,
            b"W" | b"w" => TraceOp::Write,
            other => return Err(Bad::text("opcode", other, "R or W")),
        };
        let arrival_ns = decimal_ns("timestamp", need("timestamp", "seconds")?, 1_000_000_000)?;
        let offset_bytes = times("LBA", block, SECTOR_BYTES)?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(unit),
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
    fn a_line_of_websearch() {
        let request = parse_line::<Spc>("0,20941264,8192,W,0.551706,Alpha/NT").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (551_706_000, TraceOp::Write));
        assert_eq!((request.offset_bytes, request.size_bytes), (20_941_264 * 512, 8192));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            parse_line::<Spc>("0,1,8192,X,0.5").unwrap_err().to_string(),
            "opcode is \"X\", expected R or W"
        );
        assert_eq!(parse_line::<Spc>("0,1,8192").unwrap_err().field, "opcode");
        assert_eq!(parse_line::<Spc>("0,36028797018963968,512,R,1").unwrap_err().field, "LBA");
    }
}
