//! fio's latency logs (`write_lat_log`): `NAME_lat.N.log`, `NAME_clat.N.log` and `NAME_slat.N.log`.
//!
//! `time, latency, direction, size[, offset], priority[, ...]`, no header: ms since the start of the job at which the
//! request completed, ns, 0 (read), 1 (write) or 2 (trim), bytes, bytes (with `log_offset=1`), a number. Which of the three
//! latencies it is, only the file's name says. The request was submitted the latency before its completion; this time has
//! fio's resolution of 1 ms, the latency 1 ns. Lines are in the order of completions. With `log_avg_msec` a line is an
//! average of an interval and its size is 0: such logs are refused, since they have no requests. Logs of bandwidth and IOPS
//! look the same: do not read these.

use super::format::Format;
use crate::error::Bad;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, hexadecimal, split, whole, whole_ns};

pub(super) const FORMAT: Format =
    Format::of_lines::<FioLog>("fio-log", "fio latency log, NAME_lat.N.log, _clat or _slat; since the start");

const MS_NS: i64 = 1_000_000;

#[derive(Default)]
struct FioLog;

impl LineFormat for FioLog {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        let mut fields = split(line, b',');
        let mut need = |field, expected| match fields.need(field, expected)? {
            // The space tells these lines apart from tables of other programs.
            [b' ', rest @ ..] => Ok(rest),
            other if field == "time" => Ok(other),
            other => Err(Bad::text(field, other, "a space before it")),
        };
        let completed_ns = whole_ns("time", need("time", "ms")?, MS_NS)?;
        let response_ns = whole_ns("latency", need("latency", "ns")?, 1)?;
        let op = match need("direction", "0, 1 or 2")? {
            b"0" => TraceOp::Read,
            b"1" => TraceOp::Write,
            b"2" => TraceOp::Discard,
            other => return Err(Bad::text("direction", other, "0 (read), 1 (write) or 2 (trim)")),
        };
        let size = need("size", "bytes")?;
        let size_bytes = whole("size", size)?;
        if size_bytes == 0 {
            let expected = "bytes of a request: a log with log_avg_msec has averages only, log without it";
            return Err(Bad::text("size", size, expected));
        }
        let fifth = need("offset or priority", "a number")?;
        let offset_bytes = match fields.next() {
            Some(_) => whole("offset", fifth)?,
            None => {
                let digits = fifth.strip_prefix(b"0x");
                digits.map_or_else(|| whole("priority", fifth), |digits| hexadecimal("priority", digits))?;
                0
            }
        };
        Ok(Some(TraceRequest {
            arrival_ns: completed_ns - response_ns,
            response_ns: Some(response_ns),
            device: devices.number(b"0"),
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
    fn a_request_was_submitted_its_latency_before_its_completion() {
        // fio 3.33 with log_offset=1.
        let request = parse_line::<FioLog>("10, 202581, 1, 4096, 7069696, 0").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.response_ns), (10_000_000 - 202_581, Some(202_581)));
        assert_eq!((request.op, request.offset_bytes, request.size_bytes), (TraceOp::Write, 7_069_696, 4096));
        // Without; its priority is hexadecimal with log_prio=1.
        let request = parse_line::<FioLog>("0, 196322, 0, 512, 0x4001").unwrap().unwrap();
        assert_eq!((request.arrival_ns, request.offset_bytes, request.size_bytes), (-196_322, 0, 512));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |line| parse_line::<FioLog>(line).unwrap_err().field;
        assert_eq!(wrong("100, 292927, 0, 0, 0"), "size");
        assert_eq!(wrong("100, 292927, 3, 512, 0"), "direction");
        assert_eq!(wrong("100, -1, 0, 512, 0"), "latency");
        assert_eq!(wrong("100,292927,0,512,0"), "latency");
        assert_eq!(wrong("18446744073709551615, 1, 0, 512, 0"), "time");
        assert_eq!(wrong("1, 18446744073709551615, 0, 512, 0"), "latency");
        assert_eq!(wrong("100, 1, 0, 512"), "offset or priority");
        assert_eq!(wrong("100, 1, 0, 512, high"), "priority");
        assert_eq!(wrong("100, 1, 0, 512, 0x4001, 0"), "offset");
    }
}
