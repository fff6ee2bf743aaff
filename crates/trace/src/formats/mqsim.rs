//! The trace format of MQSim (Tavakkol et al., FAST 2018).
//!
//! `time device address size type` between blanks: **ns** since the start, a number, 512-byte sector, sectors, **1 for a
//! read and 0 for a write**.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, SECTOR_BYTES, times, whole, words};

pub(super) const FORMAT: Format = Format::of_lines::<Mqsim>("mqsim", "MQSim; since the start");

#[derive(Default)]
struct Mqsim;

impl LineFormat for Mqsim {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = words(line);
        let mut need = |field, expected| fields.need(field, expected);
        let time = need("time", "ns")?;
        let arrival_ns = i64::try_from(whole("time", time)?)
            .map_err(|_| Bad::text("time", time, "ns, less than 292 years of them"))?;
        let device = need("device", "a whole number")?;
        whole("device", device)?;
        let sector = whole("address", need("address", "a whole number")?)?;
        let sectors = whole("size", need("size", "a whole number")?)?;
        let op = match need("type", "1 (read) or 0 (write)")? {
            b"1" => TraceOp::Read,
            b"0" => TraceOp::Write,
            other => return Err(Bad::text("type", other, "1 (read) or 0 (write)")),
        };
        fields.end()?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(device),
            op,
            offset_bytes: times("address", sector, SECTOR_BYTES)?,
            size_bytes: times("size", sectors, SECTOR_BYTES)?,
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_line;

    #[test]
    fn times_are_in_ns_and_zero_writes() {
        let request = parse_line::<Mqsim>("938513000 4 264719034 16 0").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (938_513_000, TraceOp::Write));
        assert_eq!((request.offset_bytes, request.size_bytes), (264_719_034 * 512, 8192));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse_line::<Mqsim>("938513000 4 264719034 16 2").unwrap_err().field, "type");
        assert_eq!(parse_line::<Mqsim>("938513000 4 264719034 16").unwrap_err().field, "type");
    }
}
