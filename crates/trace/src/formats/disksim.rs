//! The default (ascii) trace format of DiskSim 2 to 4.
//!
//! `time devno blkno bcount flags` between white space: ms with a fraction since the start, a number, 512-byte block,
//! blocks, hexadecimal. The lowest flag is set for a **read**.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{
    LineFormat, SECTOR_BYTES, decimal_ns, detect_lines, head_lines, hexadecimal, times, whole, words,
};

pub(super) const FORMAT: Format =
    Format { detect, ..Format::of_lines::<Disksim>("disksim", "DiskSim ascii; since the start") };

const READ: u64 = 1;

/// MQSim's lines are the same except for times in whole ns.
fn detect(head: &[u8]) -> bool {
    let fraction = |line| words(line).next().is_some_and(|time| time.contains(&b'.'));
    head_lines(head).take(2).any(fraction) && detect_lines::<Disksim>(head)
}

#[derive(Default)]
struct Disksim;

impl LineFormat for Disksim {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = words(line);
        let mut need = |field, expected| fields.need(field, expected);
        let arrival_ns = decimal_ns("time", need("time", "ms")?, 1_000_000)?;
        let device = need("devno", "a whole number")?;
        whole("devno", device)?;
        let block = whole("blkno", need("blkno", "a whole number")?)?;
        let blocks = whole("bcount", need("bcount", "a whole number")?)?;
        let flags = hexadecimal("flags", need("flags", "a hexadecimal number")?)?;
        fields.end()?;
        Ok(Some(TraceRequest {
            arrival_ns,
            device: devices.number(device),
            op: if flags & READ == 0 { TraceOp::Write } else { TraceOp::Read },
            offset_bytes: times("blkno", block, SECTOR_BYTES)?,
            size_bytes: times("bcount", blocks, SECTOR_BYTES)?,
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_line;

    #[test]
    fn one_reads() {
        let request = parse_line::<Disksim>("17.829285\t20\t576560\t6\t1").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (17_829_285, TraceOp::Read));
        assert_eq!((request.offset_bytes, request.size_bytes), (576_560 * 512, 3072));
        // Flags are hexadecimal: 1a has the lowest bit clear.
        assert_eq!(parse_line::<Disksim>("17.8 20 576560 6 1a").unwrap().unwrap().op, TraceOp::Write);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse_line::<Disksim>("17.8 20 576560 6 x").unwrap_err().field, "flags");
        assert_eq!(parse_line::<Disksim>("17.8 20 576560").unwrap_err().field, "bcount");
        assert_eq!(parse_line::<Disksim>("17.8 20 576560 6 1 1").unwrap_err().field, "the end of the line");
    }
}
