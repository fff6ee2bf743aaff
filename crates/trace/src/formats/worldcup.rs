//! The log of the 1998 World Cup's web site (Arlitt and Jin, HP Labs 1999), as its own tools store it.
//!
//! 20 bytes, big endian: seconds since 1970 (u32), client (u32), object (u32), bytes of the response (u32, `0xffffffff`
//! if unknown: 0 here), method (u8: GET, HEAD, POST, PUT, DELETE, TRACE, OPTIONS, CONNECT, other), HTTP version and
//! status (u8), file type (u8), region and server (u8). A device is a server, a process is a client.

use super::format::Format;
use crate::binary::{RecordFormat, u32_be};
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};

pub(super) const FORMAT: Format = Format::of_records::<WorldCup, RECORD_BYTES>(
    "worldcup",
    "1998 World Cup web site, requests for objects; since 1970, in whole seconds",
    detect,
);

const RECORD_BYTES: usize = 20;
const DETECTED: usize = 32;
const UNKNOWN: u32 = u32::MAX;
const METHODS: u8 = 9;
/// The weeks in which the log was kept, April 26 to August 1 1998, as seconds.
const KEPT_S: std::ops::Range<u32> = 893_500_000..902_000_000;

/// No mark, but times in 1998 that do not go back.
fn detect(head: &[u8]) -> bool {
    let records = || head.chunks_exact(RECORD_BYTES).take(DETECTED);
    let mut last_s = 0;
    records().next().is_some()
        && records().all(|record| {
            let time_s = u32_be(record, 0);
            let ahead = time_s >= last_s;
            last_s = time_s;
            ahead && KEPT_S.contains(&time_s) && record[16] < METHODS
        })
}

#[derive(Default)]
struct WorldCup;

impl RecordFormat<RECORD_BYTES> for WorldCup {
    fn parse(
        &mut self,
        record: &[u8; RECORD_BYTES],
        devices: &mut Devices,
    ) -> Result<Option<TraceRequest>, Bad> {
        let method = record[16];
        let op = match method {
            0 => TraceOp::Read,
            2 | 3 => TraceOp::Write,
            1 | 4..METHODS => TraceOp::Other,
            _ => return Err(Bad::number("method", method, "one below 9")),
        };
        let size = u32_be(record, 12);
        // Region and number as two digits each, without a formatter.
        let (region, server) = (record[19] >> 5, record[19] & 31);
        let name = [b'0' + region, b'.', b'0' + server / 10, b'0' + server % 10];
        Ok(Some(TraceRequest {
            arrival_ns: i64::from(u32_be(record, 0)) * 1_000_000_000,
            device: devices.number(&name),
            op,
            size_bytes: if size == UNKNOWN { 0 } else { u64::from(size) },
            object: Some(u64::from(u32_be(record, 8))),
            pid: Some(u32_be(record, 4)),
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 20] =
        [0x35, 0x84, 0x46, 0x67, 0, 1, 0x37, 0x6f, 0, 0, 0x35, 0x97, 0, 0, 5, 15, 0, 0x42, 1, 0x46];

    #[test]
    fn an_image_that_was_fetched() {
        let mut devices = Devices::default();
        let request = WorldCup.parse(&ONE, &mut devices).unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.op), (897_861_223_000_000_000, TraceOp::Read));
        assert_eq!((request.object, request.size_bytes), (Some(13_719), 1295));
        assert_eq!((request.pid, devices.name(request.device).as_str()), (Some(79_727), "2.06"));
        assert!(detect(&ONE));
    }

    #[test]
    fn a_size_that_is_unknown_is_none() {
        let mut record = ONE;
        record[12..16].fill(0xff);
        assert_eq!(WorldCup.parse(&record, &mut Devices::default()).unwrap().unwrap().size_bytes, 0);
        record[16] = 9;
        assert_eq!(WorldCup.parse(&record, &mut Devices::default()).unwrap_err().field, "method");
    }
}
