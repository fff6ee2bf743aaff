//! Text of biosnoop, the tool of bcc (biosnoop-bpfcc) and of libbpf-tools.
//!
//! A header, then a line for each completed request: `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`. The time is
//! that of the completion, in seconds since the first one. LAT is counted from the issue to the device with a resolution of
//! 10 us; with `-Q`, QUE is the time before, in the queue. A command may have spaces, so fields are taken from the end. `T` is
//! R or W, or letters of the operation (libbpf-tools). biosnoop.bt of bpftrace has neither operation, position nor size, and
//! is not read as a trace.

use super::blkparse::categories;
use super::blktrace;
use super::format::Format;
use super::options::Options;
use crate::error::Bad;
use crate::input::Input;
use crate::request::{Devices, TraceRequest};
use crate::text::{LineFormat, SECTOR_BYTES, TextReader, decimal_ns, head_lines, times, whole, words};
use crate::{Error, Reader};

pub(super) const FORMAT: Format = Format {
    name: "biosnoop",
    about: "biosnoop of bcc or libbpf-tools; since the first completion",
    detect,
    open,
};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

fn detect(head: &[u8]) -> bool {
    head_lines(head).take(16).any(|line| columns(line).is_some())
}

fn open(input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    Ok(Box::new(TextReader::new(input, Biosnoop { columns: None }, options.skip_bad)))
}

/// Columns of a table that may be left out.
#[derive(Clone, Copy)]
struct Columns {
    pattern: bool,
    queueing: bool,
}

/// The columns if a line is a header.
fn columns(line: &[u8]) -> Option<Columns> {
    let names: Vec<&[u8]> = words(line).collect();
    let [b"TIME(s)", b"COMM", b"PID", b"DISK", b"T", b"SECTOR", b"BYTES", rest @ ..] = names.as_slice()
    else {
        return None;
    };
    match rest {
        [b"LAT(ms)"] => Some(Columns { pattern: false, queueing: false }),
        [b"QUE(ms)", b"LAT(ms)"] => Some(Columns { pattern: false, queueing: true }),
        [b"P", b"LAT(ms)"] => Some(Columns { pattern: true, queueing: false }),
        [b"P", b"QUE(ms)", b"LAT(ms)"] => Some(Columns { pattern: true, queueing: true }),
        _ => None,
    }
}

struct Biosnoop {
    columns: Option<Columns>,
}

impl LineFormat for Biosnoop {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        if let Some(found) = columns(line) {
            self.columns = Some(found);
            return Ok(None);
        }
        // What a shell or the program says before the header.
        let Some(columns) = self.columns else { return Ok(None) };
        let mut fields: Vec<&[u8]> = words(line).collect();
        let first = fields.first().copied().unwrap_or_default();
        let mut last = |field, expected| fields.pop().ok_or_else(|| Bad::text(field, b"", expected));
        let latency_ns = not_negative("LAT(ms)", last("LAT(ms)", "ms")?)?;
        let queueing_ns = match columns.queueing {
            true => Some(not_negative("QUE(ms)", last("QUE(ms)", "ms")?)?),
            false => None,
        };
        if columns.pattern {
            last("P", "R or S")?;
        }
        let size_bytes = whole("BYTES", last("BYTES", "a whole number")?)?;
        let sector = match last("SECTOR", "a whole number")? {
            // Of a request without a position, such as a flush.
            b"-1" => 0,
            sector => whole("SECTOR", sector)?,
        };
        let op = blktrace::op(categories("T", last("T", "R or W")?)?, size_bytes);
        let device = last("DISK", "a disk")?;
        let pid = last("PID", "a whole number")?;
        last("COMM", "a command")?;
        if fields.is_empty() {
            return Err(Bad::text("line", line, "a time, a command and all columns of the header"));
        }
        let completed_ns = decimal_ns("TIME(s)", first, SECOND_NS)?;
        let response_ns = queueing_ns.unwrap_or(0).saturating_add(latency_ns);
        Ok(Some(TraceRequest {
            arrival_ns: completed_ns.saturating_sub(response_ns),
            queueing_ns,
            response_ns: Some(response_ns),
            device: devices.number(device),
            op,
            offset_bytes: times("SECTOR", sector, SECTOR_BYTES)?,
            size_bytes,
            pid: whole("PID", pid).ok().and_then(|pid| u32::try_from(pid).ok()),
            ..TraceRequest::default()
        }))
    }
}

fn not_negative(field: &'static str, text: &[u8]) -> Result<i64, Bad> {
    let value = decimal_ns(field, text, MS_NS)?;
    if value < 0 { Err(Bad::text(field, text, "ms, not negative")) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::request::TraceOp;

    fn read(text: &'static str) -> Result<Vec<TraceRequest>, Error> {
        let input = Input::from_reader(Path::new("t"), text.as_bytes()).unwrap();
        let mut reader = open(input, &Options::default()).unwrap();
        std::iter::from_fn(|| reader.next_request().transpose()).collect()
    }

    // From the documentation of bcc, with a command of two words.
    const QUEUED: &str = "\
some words before the header
TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    kworker/u72:1  13379  nvme1n1 W 1142400    4096      0.01    0.55
0.000771    my sync        22177  nvme1n1 R 41963894   3072      0.11    0.47
";

    #[test]
    fn a_request_arrived_before_its_queueing_and_service() {
        assert!(detect(QUEUED.as_bytes()));
        let read = read(QUEUED).unwrap();
        let kept: Vec<_> = read
            .iter()
            .map(|r| {
                (r.arrival_ns, r.queueing_ns, r.response_ns, r.op, r.offset_bytes / 512, r.size_bytes, r.pid)
            })
            .collect();
        assert_eq!(
            kept,
            [
                (-560_000, Some(10_000), Some(560_000), TraceOp::Write, 1_142_400, 4096, Some(13_379)),
                (191_000, Some(110_000), Some(580_000), TraceOp::Read, 41_963_894, 3072, Some(22_177)),
            ]
        );
    }

    #[test]
    fn letters_of_an_operation_are_those_of_the_kernel() {
        let text = "\
TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)
0.1 a 1 sda F -1 0 0.5
0.1 a 1 sda FWFS 8 512 0.5
0.1 a 1 sda FWS 8 512 0.5
0.1 a 1 sda RAM 8 512 0.5
0.1 a 1 sda DE 8 512 0.5
0.1 a 1 sda N 8 0 0.5
";
        let ops: Vec<_> = read(text).unwrap().iter().map(|request| request.op).collect();
        use TraceOp::{Discard, Flush, Other, Read, Write, WriteFua};
        assert_eq!(ops, [Flush, WriteFua, Write, Read, Discard, Other]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text| read(text).unwrap_err().to_string();
        let begin = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
        let with = |line: &str| error(Box::leak(format!("{begin}{line}\n").into_boxed_str()));
        assert!(with("0.1 a 1 sda Z 8 512 0.5").contains("T is \"Z\""));
        assert!(with("0.1 a 1 sda R 8 512 -0.5").contains("LAT(ms) is \"-0.5\""));
        assert!(with("x a 1 sda R 8 512 0.5").contains("TIME(s) is \"x\""));
        assert!(with("a 1 sda R 8 512 0.5").contains("line is"));
        assert!(!detect(b"TIME(ms)     DISK    COMM             PID    LAT(ms)\n"));
    }
}
