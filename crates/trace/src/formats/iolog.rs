//! fio's I/O log (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! The first line is `fio version N iolog`. Version 2: `FILE add|open|close`, `FILE read|write|trim|sync|datasync OFFSET
//! LENGTH` in bytes, and `FILE wait US`: the time to the next request, since the last wait; fio drops waits below 100 us.
//! Version 3 (fio 3.31 and later) has no waits; each line begins with the time since the start, in us (the manual states
//! no unit; fio 3.33 writes and reads us).

use super::format::Format;
use super::options::Options;
use crate::error::Bad;
use crate::input::Input;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, TextReader, decimal_ns, head_lines, whole, words};
use crate::{Error, Reader};

pub(super) const FORMAT: Format =
    Format { name: "iolog", about: "fio I/O log, version 2 or 3; since the start", detect, open };

const US_NS: u64 = 1000;

fn detect(head: &[u8]) -> bool {
    head_lines(head).next().is_some_and(|line| version(line).is_some())
}

/// Version in a first line.
fn version(line: &[u8]) -> Option<u8> {
    match line {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

fn open(input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    let first = head_lines(input.available()).next().unwrap_or_default();
    let Some(version) = version(first) else {
        let what = format!(
            "its first line is {:?}, expected fio version 2 iolog or fio version 3 iolog; other versions are not read",
            String::from_utf8_lossy(&first[..first.len().min(40)])
        );
        return Err(Error::Incomplete { path: input.path().to_owned(), what });
    };
    let format = Iolog { absolute: version == 3, started: false, waited_ns: 0 };
    Ok(Box::new(TextReader::new(input, format, options.skip_bad)))
}

struct Iolog {
    absolute: bool,
    /// Whether the first line has been passed.
    started: bool,
    /// Sum of the waits.
    waited_ns: i64,
}

impl LineFormat for Iolog {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        if !self.started {
            self.started = true;
            return Ok(None);
        }
        let mut fields = words(line);
        let mut need = |field, expected| fields.need(field, expected);
        let arrival_ns =
            if self.absolute { decimal_ns("time", need("time", "us")?, US_NS)? } else { self.waited_ns };
        let file = need("file", "a file's name")?;
        let op = match need("action", "such as read, write or trim")? {
            b"read" => TraceOp::Read,
            b"write" => TraceOp::Write,
            b"trim" => TraceOp::Discard,
            b"sync" | b"datasync" => TraceOp::Flush,
            b"add" | b"open" | b"close" => return fields.end().map(|()| None),
            b"wait" if !self.absolute => {
                let wait_ns = decimal_ns("wait", need("wait", "us")?, US_NS)?;
                let sum_ns = self.waited_ns.checked_add(wait_ns);
                self.waited_ns =
                    sum_ns.ok_or_else(|| Bad::number("wait", wait_ns, "less than 292 years in all"))?;
                return Ok(None);
            }
            other => return Err(Bad::text("action", other, "such as read, write or trim")),
        };
        // fio writes both for a sync too, but reads it without.
        let (offset_bytes, size_bytes) = match (op, fields.next()) {
            (TraceOp::Flush, None) => (0, 0),
            (_, offset) => (
                whole("offset", offset.unwrap_or_default())?,
                whole("length", fields.need("length", "bytes")?)?,
            ),
        };
        fields.end()?;
        let device = devices.number(file);
        Ok(Some(TraceRequest { arrival_ns, device, op, offset_bytes, size_bytes, ..TraceRequest::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Vec<(i64, TraceOp, u64, u64)> {
        let input = Input::from_reader(std::path::Path::new("log"), text.as_bytes()).unwrap();
        let mut reader = open(input, &Options::default()).unwrap();
        let mut requests = Vec::new();
        while let Some(request) = reader.next_request().unwrap() {
            requests.push((request.arrival_ns, request.op, request.offset_bytes, request.size_bytes));
        }
        requests
    }

    #[test]
    fn waits_of_version_2_add_up() {
        let text = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 500\nf write 8192 512\nf wait 1000\n\
                    f sync 0 0\nf close\n";
        assert_eq!(
            read(text),
            [
                (0, TraceOp::Read, 0, 4096),
                (500_000, TraceOp::Write, 8192, 512),
                (1_500_000, TraceOp::Flush, 0, 0)
            ]
        );
    }

    #[test]
    fn times_of_version_3_are_us_since_the_start() {
        let text =
            "fio version 3 iolog\n0 f add\n0 f open\n7 f read 0 4096\n200007 f trim 4096 512\n9 f datasync\n";
        assert_eq!(
            read(text),
            [
                (7_000, TraceOp::Read, 0, 4096),
                (200_007_000, TraceOp::Discard, 4096, 512),
                (9_000, TraceOp::Flush, 0, 0)
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let input =
            |text: &'static str| Input::from_reader(std::path::Path::new("log"), text.as_bytes()).unwrap();
        let error = open(input("fio version 1 iolog\n"), &Options::default()).err().unwrap();
        assert!(error.to_string().contains("expected fio version 2"), "{error}");
        let mut reader = open(input("fio version 3 iolog\n1 f wait 100\n"), &Options::default()).unwrap();
        let error = reader.next_request().unwrap_err().to_string();
        assert!(error.starts_with("log:2: action is \"wait\""), "{error}");
    }
}
