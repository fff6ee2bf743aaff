//! SYSTOR '17: block traces of a virtual desktop infrastructure (Lee et al., SYSTOR 2017).
//!
//! A header, `Timestamp,Response,IOType,LUN,Offset,Size`, then lines of: seconds since 1970 with nine decimals, seconds
//! (empty without a recorded completion), `R` or `W`, a whole number, bytes, bytes. Lines are not in the order of
//! their times.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, decimal_ns, head_lines, split, whole};

pub(super) const FORMAT: Format = Format {
    detect,
    ..Format::of_lines::<Systor>("systor", "SYSTOR '17 virtual desktops (LUN files); since 1970")
};

const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";
const SECOND_NS: u64 = 1_000_000_000;

fn detect(head: &[u8]) -> bool {
    head_lines(head).next() == Some(HEADER)
}

#[derive(Default)]
struct Systor;

impl LineFormat for Systor {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        if line == HEADER {
            return Ok(None);
        }
        let mut fields = split(line, b',');
        let mut need = |field, expected| fields.need(field, expected);
        let arrival_ns = decimal_ns("Timestamp", need("Timestamp", "seconds")?, SECOND_NS)?;
        let response = need("Response", "seconds, or nothing")?;
        let response_ns =
            if response.is_empty() { None } else { Some(decimal_ns("Response", response, SECOND_NS)?) };
        let op = match need("IOType", "R or W")? {
            b"R" => TraceOp::Read,
            b"W" => TraceOp::Write,
            other => return Err(Bad::text("IOType", other, "R or W")),
        };
        let unit = need("LUN", "a whole number")?;
        whole("LUN", unit)?;
        let offset_bytes = whole("Offset", need("Offset", "bytes")?)?;
        let size_bytes = whole("Size", need("Size", "bytes")?)?;
        fields.end()?;
        Ok(Some(TraceRequest {
            arrival_ns,
            response_ns,
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
    fn a_line_with_a_response_and_one_without() {
        let request = parse_line::<Systor>("1456095145.133076001,0.000806000,R,0,899056122368,131072")
            .unwrap()
            .unwrap();
        assert_eq!((request.arrival_ns, request.response_ns), (1_456_095_145_133_076_001, Some(806_000)));
        assert_eq!((request.op, request.size_bytes), (TraceOp::Read, 131_072));
        let request = parse_line::<Systor>("1456095145.133076001,,W,3,512,131072").unwrap().unwrap();
        assert_eq!((request.response_ns, request.op, request.offset_bytes), (None, TraceOp::Write, 512));
    }

    #[test]
    fn the_header_is_no_request_and_what_is_wrong_is_named() {
        assert_eq!(parse_line::<Systor>("Timestamp,Response,IOType,LUN,Offset,Size"), Ok(None));
        assert_eq!(parse_line::<Systor>("1.0,0.1,,0,0,512").unwrap_err().field, "IOType");
        assert_eq!(parse_line::<Systor>("1.0,0.1,R,0,0").unwrap_err().field, "Size");
    }
}
