//! Auspex: a week of NFS in Berkeley in 1993, captured by Mather (tracehost.cs.berkeley.edu/auspex.html).
//!
//! `TIME TYPE ACTION FID: FILE OFF: OFFSET SIZE: BYTES HOST: CLIENT`: seconds with a fraction; `Attr`, `Block`, `Dir`,
//! `Delete`, `Open` or `Close`; `READ` or `WRITE`; 16 hexadecimal digits; bytes within the file; bytes; the client's
//! number. Only `Block` and `Dir` carry data and are reads or writes. All others are [`TraceOp::Other`] without bytes;
//! the offset of an `Open` or `Close` (about the size of the file) is kept as an offset. The recorder inferred opens and
//! closes from the captured packets. The device is the server, the object a file, the process the client.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, decimal_ns, hexadecimal, whole, words};

pub(super) const FORMAT: Format =
    Format::of_lines::<Auspex>("auspex", "Auspex NFS traces of Berkeley; times as recorded");

const SECOND_NS: u64 = 1_000_000_000;

#[derive(Default)]
struct Auspex;

impl LineFormat for Auspex {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = words(line);
        let mut need = |field, expected| fields.need(field, expected);
        let arrival_ns = decimal_ns("timestamp", need("timestamp", "seconds")?, SECOND_NS)?;
        let kind = need("type", "such as Block")?;
        let carries_data = match kind {
            b"Block" | b"Dir" => true,
            b"Attr" | b"Delete" | b"Open" | b"Close" => false,
            other => return Err(Bad::text("type", other, "Attr, Block, Dir, Delete, Open or Close")),
        };
        let reads = match need("action", "READ or WRITE")? {
            b"READ" => true,
            b"WRITE" => false,
            other => return Err(Bad::text("action", other, "READ or WRITE")),
        };
        let mut after = |label: &'static str, field| match need(field, "its label")? {
            found if found == label.as_bytes() => need(field, "a value"),
            other => Err(Bad::text(field, other, "its label, such as FID:")),
        };
        let file = hexadecimal("FID", after("FID:", "FID")?)?;
        let offset_bytes = whole("OFF", after("OFF:", "OFF")?)?;
        let size_bytes = whole("SIZE", after("SIZE:", "SIZE")?)?;
        let host = after("HOST:", "HOST")?;
        fields.end()?;
        let host = whole("HOST", host)?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(b"auspex"),
            op: match (carries_data, reads) {
                (false, _) => TraceOp::Other,
                (true, true) => TraceOp::Read,
                (true, false) => TraceOp::Write,
            },
            offset_bytes,
            size_bytes: if carries_data { size_bytes } else { 0 },
            object: Some(file),
            pid: Some(u32::try_from(host).map_err(|_| Bad::number("HOST", host, "a client below 2^32"))?),
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_line;

    #[test]
    fn blocks_carry_data_and_opens_do_not() {
        let line = "754521601.250001 Block READ FID: 00a1b2c3d4e5f607 OFF: 16384 SIZE: 8192 HOST: 17";
        let request = parse_line::<Auspex>(line).unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (754_521_601_250_001_000, TraceOp::Read));
        assert_eq!((request.object, request.pid), (Some(0x00a1_b2c3_d4e5_f607), Some(17)));
        assert_eq!((request.offset_bytes, request.size_bytes), (16_384, 8192));
        let open = parse_line::<Auspex>(&line.replace("Block READ", "Open WRITE")).unwrap().unwrap();
        assert_eq!((open.op, open.offset_bytes, open.size_bytes), (TraceOp::Other, 16_384, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let line = "1.5 Dir WRITE FID: 0 OFF: 0 SIZE: 512 HOST: 1";
        assert_eq!(parse_line::<Auspex>(line).unwrap().unwrap().op, TraceOp::Write);
        for (from, to, field) in [
            ("Dir", "Blob", "type"),
            ("WRITE", "write", "action"),
            ("FID:", "FIT:", "FID"),
            ("512", "-1", "SIZE"),
            (" HOST: 1", "", "HOST"),
        ] {
            assert_eq!(parse_line::<Auspex>(&line.replace(from, to)).unwrap_err().field, field);
        }
    }
}
