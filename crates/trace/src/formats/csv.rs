//! CSV with one request a line and a map of columns.
//!
//! Options name the columns and units (see [`Options::KEYS`](super::Options::KEYS)). The format has no mark and is not
//! detected: name it. Times are unchanged. Quotes around a cell are removed; separators within quotes are not supported.

pub use super::csv_options::{Column, CsvOptions, Delimiter, TimeUnit};
use super::format::Format;
use super::msr::filetime_ns;
use super::options::Options;
use crate::error::Bad;
use crate::input::Input;
use crate::request::{Devices, TraceOp, TraceRequest};
use crate::text::{LineFormat, TextReader, decimal_ns, head_lines, split, times, whole, words};
use crate::{Error, Reader};

pub(super) const FORMAT: Format = Format {
    name: "csv",
    about: "a table with columns named by options; times as in the table; not detected",
    detect: |_| false,
    open,
};

fn open(input: Input, options: &Options) -> Result<Box<dyn Reader>, Error> {
    let first = head_lines(input.available()).next().unwrap_or_default();
    match Table::new(&options.csv, first) {
        Ok(table) => Ok(Box::new(TextReader::new(input, table, options.skip_bad))),
        Err(what) => Err(Error::Incomplete { path: input.path().to_owned(), what }),
    }
}

/// Numbers of the columns, from 0.
struct Table {
    options: CsvOptions,
    time: usize,
    response: Option<usize>,
    op: Option<usize>,
    offset: Option<usize>,
    size: Option<usize>,
    device: Option<usize>,
    object: Option<usize>,
    /// Whether the next line names the columns.
    at_header: bool,
    /// Positions of the cells within the line.
    cells: Vec<(usize, usize)>,
}

impl Table {
    fn new(options: &CsvOptions, first: &[u8]) -> Result<Self, String> {
        let columns = [
            &options.time,
            &options.response,
            &options.op,
            &options.offset,
            &options.size,
            &options.device,
            &options.object,
        ];
        let by_name = columns.into_iter().any(|column| matches!(column, Some(Column::Name(_))));
        let mut names = Vec::new();
        cut(options.delimiter, first, &mut names);
        let find = |column: &Option<Column>| match column {
            None => Ok(None),
            Some(Column::Number(number)) => Ok(Some(number - 1)),
            Some(Column::Name(name)) => {
                let place = names.iter().position(|(start, end)| first[*start..*end] == *name.as_bytes());
                place.map(Some).ok_or_else(|| {
                    let first = String::from_utf8_lossy(&first[..first.len().min(200)]);
                    format!("has no column {name:?} (found first line {first:?})")
                })
            }
        };
        let time = find(&options.time)?
            .ok_or("the column of times is missing. Set --option time=NAME (or NUMBER, from 1), time_unit=s|ms|us|ns, and so on")?;
        let (offset, object) = (find(&options.offset)?, find(&options.object)?);
        if offset.is_none() && object.is_none() {
            return Err(
                "the column of offsets or objects is missing. Set --option offset=NAME or object=NAME".into(),
            );
        }
        if options.header == Some(false) && by_name {
            return Err("columns have names, but header=no. Name them by number, from 1".into());
        }
        Ok(Table {
            time,
            response: find(&options.response)?,
            op: find(&options.op)?,
            offset,
            size: find(&options.size)?,
            device: find(&options.device)?,
            object,
            at_header: options.header.unwrap_or(by_name),
            cells: names,
            options: options.clone(),
        })
    }

    fn time_ns(&self, field: &'static str, text: &[u8]) -> Result<i64, Bad> {
        match self.options.time_unit {
            TimeUnit::Ns(unit_ns) => decimal_ns(field, text, unit_ns),
            TimeUnit::Filetime => filetime_ns(field, whole(field, text)?),
        }
    }

    fn op(&self, text: &[u8]) -> Result<TraceOp, Bad> {
        if let Some(reads) = &self.options.reads {
            return Ok(if text == reads.as_bytes() { TraceOp::Read } else { TraceOp::Write });
        }
        let is = |words: &[&str]| words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(text));
        Ok(if is(&["r", "read"]) {
            TraceOp::Read
        } else if is(&["w", "write"]) {
            TraceOp::Write
        } else if is(&["f", "flush", "sync"]) {
            TraceOp::Flush
        } else if is(&["d", "t", "discard", "trim", "unmap"]) {
            TraceOp::Discard
        } else if is(&["write_fua", "fua"]) {
            TraceOp::WriteFua
        } else if is(&["z", "write_zeroes"]) {
            TraceOp::WriteZeroes
        } else {
            let expected =
                "read, write, flush or trim, or their first letters, or the word of --option reads=";
            return Err(Bad::text("operation", text, expected));
        })
    }
}

/// Finds the positions of a line's cells, without their quotes.
fn cut(delimiter: Delimiter, line: &[u8], cells: &mut Vec<(usize, usize)>) {
    cells.clear();
    let mut add = |cell: &[u8]| {
        // A cell is a part of the line.
        let start = cell.as_ptr().addr() - line.as_ptr().addr();
        cells.push(match cell {
            [b'"', inner @ .., b'"'] => (start + 1, start + 1 + inner.len()),
            _ => (start, start + cell.len()),
        });
    };
    match delimiter {
        Delimiter::Byte(byte) => split(line, byte).for_each(&mut add),
        Delimiter::Space => words(line).for_each(&mut add),
    }
}

impl LineFormat for Table {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad> {
        if std::mem::take(&mut self.at_header) {
            return Ok(None);
        }
        let mut cells = std::mem::take(&mut self.cells);
        cut(self.options.delimiter, line, &mut cells);
        self.cells = cells;
        let cell = |field: &'static str, column: usize| match self.cells.get(column) {
            Some((start, end)) => Ok(&line[*start..*end]),
            None => Err(Bad::text(field, b"", "a cell")),
        };
        let bytes = |field, column: Option<usize>, unit| match column {
            Some(column) => times(field, whole(field, cell(field, column)?)?, unit),
            None => Ok(0),
        };
        let response_ns = match self.response.map(|column| cell("response", column)).transpose()? {
            None | Some(b"") => None,
            Some(text) => Some(match self.options.time_unit {
                TimeUnit::Ns(unit_ns) => decimal_ns("response", text, unit_ns)?,
                TimeUnit::Filetime => decimal_ns("response", text, 100)?,
            }),
        };
        let op = self.op.map(|column| self.op(cell("operation", column)?)).transpose()?;
        let object = self.object.map(|column| whole("object", cell("object", column)?)).transpose()?;
        Ok(Some(TraceRequest {
            arrival_ns: self.time_ns("time", cell("time", self.time)?)?,
            response_ns,
            op: op.unwrap_or_default(),
            offset_bytes: bytes("offset", self.offset, self.options.offset_unit_bytes)?,
            size_bytes: bytes("size", self.size, self.options.size_unit_bytes)?,
            object,
            device: devices.number(self.device.map_or(Ok(&b"0"[..]), |column| cell("device", column))?),
            ..TraceRequest::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, options: &[(&str, &str)]) -> Result<Vec<TraceRequest>, Error> {
        let mut all = Options::default();
        for (key, value) in options {
            all.set(key, value).unwrap();
        }
        let mut reader =
            open(Input::from_reader(std::path::Path::new("t.csv"), text.as_bytes()).unwrap(), &all)?;
        std::iter::from_fn(|| reader.next_request().transpose()).collect()
    }

    #[test]
    fn columns_by_name_in_any_order() {
        let text = "size,\"lba\",t,vol,kind\n8,100,1.5,b,\"read\"\n16,7,2.25,a,W\n";
        let options = [
            ("time", "t"),
            ("time_unit", "ms"),
            ("offset", "lba"),
            ("offset_unit", "512"),
            ("size", "size"),
            ("size_unit", "512"),
            ("op", "kind"),
            ("device", "vol"),
        ];
        let requests = read(text, &options).unwrap();
        let [first, second] = requests[..] else { panic!("{requests:?}") };
        assert_eq!((first.arrival_ns, first.op, first.device), (1_500_000, TraceOp::Read, 0));
        assert_eq!((first.offset_bytes, first.size_bytes), (51_200, 4096));
        assert_eq!((second.arrival_ns, second.op, second.device), (2_250_000, TraceOp::Write, 1));
    }

    #[test]
    fn columns_by_number_between_spaces() {
        let text = "116444736000000010  5 1 3\n116444736000000020 6 0 -\n";
        let options = [
            ("time", "1"),
            ("time_unit", "filetime"),
            ("object", "2"),
            ("op", "3"),
            ("reads", "0"),
            ("delimiter", "space"),
        ];
        let requests = read(text, &options).unwrap();
        assert_eq!((requests[0].arrival_ns, requests[0].op), (1000, TraceOp::Write));
        assert_eq!((requests[1].object, requests[1].op), (Some(6), TraceOp::Read));
    }

    #[test]
    fn what_is_not_said_is_asked_for_and_what_is_wrong_is_named() {
        let error = |text, options: &[_]| read(text, options).unwrap_err().to_string();
        assert!(error("1,2\n", &[]).contains("--option time="));
        assert!(error("1,2\n", &[("time", "1")]).contains("--option offset="));
        assert!(error("a,b\n", &[("time", "c")]).contains("has no column \"c\""));
        let options = [("time", "1"), ("offset", "2"), ("op", "3")];
        assert_eq!(
            error("1,2,R\n1,2,Q\n", &options).split(", expected").next(),
            Some("t.csv:2: operation is \"Q\"")
        );
        assert!(error("1,2\n", &options).starts_with("t.csv:1: operation is \"\""));
    }
}
