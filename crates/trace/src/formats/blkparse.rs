//! Text of blkparse(1) in its default format.
//!
//! `MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS [COMMAND]`, a line for each event, in the order of time;
//! a completion has the error in place of the command, a split `SECTOR / SECTOR`. Events become requests as those of
//! blktrace's binary stream do ([`super::blktrace`]). Lines without a position (plugging, messages, flushes without
//! data, summaries at the end) are no requests. Another output format (`-f`) cannot be read: convert the binary stream instead.

use super::blktrace::{Requests, Source};
use super::format::Format;
use super::options::Options;
use crate::blktrace::{Event, Record, category};
use crate::error::Bad;
use crate::input::Input;
use crate::reader::Skipping;
use crate::text::{Lines, SECTOR_BYTES, Words, decimal_ns, head_lines, times, whole, words};
use crate::{Error, Reader};

pub(super) const FORMAT: Format =
    Format { name: "blkparse", about: "blkparse(1), its default text; since the first event", detect, open };

fn detect(head: &[u8]) -> bool {
    let lines = head_lines(head).take(64);
    let (mut events, mut others) = (0, 0);
    for line in lines {
        match parse(line) {
            Ok(Some(_)) => events += 1,
            Ok(None) => {}
            Err(_) => others += 1,
        }
    }
    events > others
}

fn open(input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    Ok(Box::new(Requests::of(Events { lines: Lines::new(input) }, options.skip_bad)))
}

struct Events {
    lines: Lines,
}

impl Source for Events {
    fn next(&mut self, skipping: &mut Skipping) -> Result<Option<Record>, Error> {
        self.lines.parsed(skipping, parse)
    }
}

/// Parses a line. `None`: it is about no request.
fn parse(line: &[u8]) -> Result<Option<Record>, Bad> {
    let mut fields = words(line);
    let first = fields.need("device", "MAJOR,MINOR")?;
    // The summary at the end begins with a name, such as `CPU0 (8,0):` or `Total (8,0):`, or is indented.
    if line[0] != b' ' && !first[0].is_ascii_digit() || line.starts_with(b" ") && !first.contains(&b',') {
        return Ok(None);
    }
    let device = device(first)?;
    let cpu = whole("cpu", fields.need("cpu", "a whole number")?)?;
    let sequence = whole("sequence", fields.need("sequence", "a whole number")?)?;
    let time_ns = decimal_ns("time", fields.need("time", "seconds")?, 1_000_000_000)?;
    let pid = whole("pid", fields.need("pid", "a whole number")?)?;
    let Some(event) = Event::from_letter(fields.need("action", "a letter, such as Q, D or C")?) else {
        return Ok(None);
    };
    let categories = categories("RWBS", fields.need("RWBS", RWBS)?)?;
    // A flush without data has no position, only `[COMMAND]`.
    let Some(sector) = fields.next().filter(|sector| sector[0] != b'[') else { return Ok(None) };
    let sector = whole("sector", sector)?;
    let (sectors, payload) = place(&mut fields, event)?;
    let u32_of = |field, number: u64| {
        u32::try_from(number).map_err(|_| Bad::number(field, number, "a number below 2^32"))
    };
    Ok(Some(Record {
        // blkparse counts on; only the order matters here.
        sequence: sequence as u32,
        time_ns: u64::try_from(time_ns).map_err(|_| Bad::number("time", time_ns, "not negative"))?,
        sector,
        bytes: u32_of("sectors", times("sectors", sectors, SECTOR_BYTES)?)?,
        action: u32::from(categories) << 16 | u32::from(event.code()),
        pid: u32_of("pid", pid)?,
        device,
        cpu: u32_of("cpu", cpu)?,
        error: 0,
        payload,
    }))
}

/// The number after a position: of sectors, or the sector at which the rest of a split begins.
fn place(fields: &mut Words<'_>, event: Event) -> Result<(u64, Box<[u8]>), Bad> {
    match (fields.next(), event) {
        (Some(b"/"), Event::Split) => {
            let rest = whole("sector of the rest", fields.need("sector of the rest", "a whole number")?)?;
            Ok((0, Box::new(rest.to_be_bytes())))
        }
        (Some(b"+"), _) => Ok((whole("sectors", fields.need("sectors", "a whole number")?)?, Box::new([]))),
        (_, _) => Ok((0, Box::new([]))),
    }
}

fn device(text: &[u8]) -> Result<u32, Bad> {
    let bad = || Bad::text("device", text, "MAJOR,MINOR, such as 8,16");
    let comma = text.iter().position(|byte| *byte == b',').ok_or_else(bad)?;
    let number = |part: &[u8], most: u64| whole("device", part).ok().filter(|number| *number < most);
    let major = number(&text[..comma], 1 << 12).ok_or_else(bad)?;
    let minor = number(&text[comma + 1..], 1 << 20).ok_or_else(bad)?;
    Ok((major << 20 | minor) as u32)
}

const RWBS: &str = "letters of an operation, such as R, WS or FWFS";

/// Categories by the kernel's letters of an operation (RWBS): flush first, then the data, then how.
pub(super) fn categories(field: &'static str, text: &[u8]) -> Result<u16, Bad> {
    let mut found = category::QUEUE;
    for (place, letter) in text.iter().enumerate() {
        found |= match letter {
            b'F' if place == 0 => category::FLUSH,
            b'F' => category::FUA,
            b'R' => category::READ,
            b'W' => category::WRITE,
            b'D' => category::DISCARD,
            b'S' => category::SYNC,
            b'A' => category::READ_AHEAD,
            b'M' => category::META,
            // N: nothing of these; DE: a secure discard.
            b'N' | b'E' => 0,
            _ => return Err(Bad::text(field, text, RWBS)),
        };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::request::{TraceOp, TraceRequest};

    // From blkparse(1), with a merge, a split, a flush and a message.
    const TEXT: &str = "\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     0.000002197   697  P   N [kjournald]
  8,0    3        4     0.000004000   697  Q   W 223498 + 8 [kjournald]
  8,0    3        5     0.000004500   697  M   W 223498 + 8 [kjournald]
  8,0    3        6     0.000012000   697  D   W 223490 + 16 [kjournald]
  8,0    3        0     0.000013000     0  m   N cfq3 message
  8,0    1        7     0.000030000     0  C   W 223490 + 16 [0]
  8,0    1        8     0.000040000    12  Q   R 1000 + 16 [two words]
  8,0    1        9     0.000041000    12  X   R 1000 / 1008 [two words]
  8,0    1       10     0.000042000    12  D   R 1000 + 8 [two words]
  8,0    1       11     0.000052000    12  D   R 1008 + 8 [two words]
  8,0    1       12     0.000060000     0  C   R 1000 + 8 [0]
  8,0    1       13     0.000070000     0  C   R 1008 + 8 [0]
  8,0    1       14     0.000080000    12  D  FN [two words]
CPU0 (8,0):
 Reads Queued:           1,       8KiB\t Writes Queued:           2,        8KiB

Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,0): 14 entries
Skips: 0 forward (0 -   0.0%)
";

    fn read(text: &'static str) -> Result<Vec<TraceRequest>, Error> {
        let input = Input::from_reader(Path::new("t"), text.as_bytes()).unwrap();
        let mut reader = open(input, &Options::default()).unwrap();
        std::iter::from_fn(|| reader.next_request().transpose()).collect()
    }

    #[test]
    fn events_become_requests() {
        assert!(detect(TEXT.as_bytes()));
        let read = read(TEXT).unwrap();
        let kept: Vec<_> = read
            .iter()
            .map(|r| {
                (r.arrival_ns, r.queueing_ns, r.response_ns, r.op, r.offset_bytes / 512, r.size_bytes / 512)
            })
            .collect();
        assert_eq!(
            kept,
            [
                (0, Some(12_000), Some(30_000), TraceOp::Write, 223_490, 16),
                (40_000, Some(2_000), Some(20_000), TraceOp::Read, 1000, 8),
                (40_000, Some(12_000), Some(30_000), TraceOp::Read, 1008, 8),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |line: &[u8]| parse(line).unwrap_err().field;
        assert_eq!(wrong(b"  8,0 3 1 0.0 697 D W 12x + 8 [a]"), "sector");
        assert_eq!(wrong(b"  8,0 3 1 0.0 697 D Z 12 + 8 [a]"), "RWBS");
        assert_eq!(wrong(b"  8,0 3 1 0.0 697 D W 12 + 99999999 [a]"), "sectors");
        assert_eq!(wrong(b"  8,x 3 1 0.0 697 D W 12 + 8 [a]"), "device");
        assert_eq!(wrong(b"  8,0 3 1"), "time");
    }
}
