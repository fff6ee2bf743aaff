//! Frame sizes of videos: the common denominator of published MPEG and motion-JPEG traces.
//!
//! Three layouts, detected from the first line that is neither empty nor begins with `#`:
//!
//! * one whole number a line, in display order, in **bits** (Rose, Wuerzburg 1995) or **bytes** (Garrett and Willinger
//!   1994; the terse MPEG-4 files of Fitzek and Reisslein, TU Berlin 2001), at 24 or 25 frames a second: the file does
//!   not state which: [`FrameOptions::unit`] and [`FrameOptions::rate`] are required;
//! * `size psnr`, in display order, bits: the terse files of Arizona State University (Seeling and Reisslein 2012); the
//!   rate is required;
//! * `number time type size psnr...`, in **coding** order, with the display time in ms and bits: the verbose files of the
//!   same. Rows are sorted into display order unless coding order is selected.
//!
//! A frame arrives at its time of display, since the start; in coding order, at its position divided by the rate. Its
//! offset is the sum of the sizes before it in the file; its object is its number. Sizes in bits are rounded up to bytes.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::format::Format;
pub use super::frame_options::{FrameOptions, FrameOrder, FrameRate, SizeUnit};
use crate::error::Bad;
use crate::input::Input;
use crate::reader::Skipping;
use crate::request::{Devices, TraceRequest};
use crate::text::{Lines, decimal_ns, head_lines, whole, words};
use crate::{Error, Reader};

pub(super) const FORMAT: Format = Format {
    name: "frames",
    about: "frame sizes of a video (ASU, TU Berlin, Wuerzburg, Garrett); since the start",
    detect,
    open: |input, options| Ok(Box::new(FrameReader::new(input, &options.frames, options.skip_bad)?)),
};

/// Rows by which a frame may come too early or too late in coding order: twice the longest group of pictures known.
const REORDERED: usize = 64;
const DETECTED: usize = 16;
const ROW: &str = "a whole number, the size of a frame";

/// Layout, as detected from the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Plain,
    Terse,
    Verbose,
}

impl Layout {
    fn of(row: &[u8]) -> Option<Self> {
        let mut fields = words(row);
        whole("size", fields.next()?).ok()?;
        let Some(second) = fields.next() else { return Some(Layout::Plain) };
        decimal_ns("PSNR", second, 1_000_000).ok()?;
        match (fields.next(), fields.next()) {
            (Some(kind), Some(_)) if is_kind(kind) => Some(Layout::Verbose),
            (None, _) if second.contains(&b'.') => Some(Layout::Terse),
            _ => None,
        }
    }
}

/// Whether this is a type of frame.
fn is_kind(word: &[u8]) -> bool {
    matches!(word, b"I" | b"IDR" | b"P" | b"B")
}

fn rows(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head_lines(head).filter(|line| line[0] != b'#')
}

fn detect(head: &[u8]) -> bool {
    let mut layouts = rows(head).take(DETECTED).map(Layout::of);
    match layouts.next() {
        Some(first @ Some(_)) => layouts.all(|layout| layout == first),
        _ => false,
    }
}

/// A row of a file.
struct Row {
    number: u64,
    /// Display time, if the row has one.
    time_ns: Option<i64>,
    /// In the file's unit.
    size: u64,
}

/// Reads any of the layouts.
pub(crate) struct FrameReader {
    lines: Lines,
    layout: Layout,
    unit: SizeUnit,
    rate: Option<FrameRate>,
    order: FrameOrder,
    /// Rows read so far, and the sum of their sizes.
    row: u64,
    offset_bytes: u64,
    /// Frames that were read before earlier frames in display order.
    early: BTreeMap<u64, TraceRequest>,
    /// The frame to be shown next.
    next: u64,
    ended: bool,
    devices: Devices,
    skipping: Skipping,
}

impl FrameReader {
    /// Begins to read.
    ///
    /// # Errors
    /// Unit or rate is missing, or the file has no coding order.
    pub(crate) fn new(input: Input, options: &FrameOptions, skip_bad: bool) -> Result<Self, Error> {
        let incomplete =
            |what: &str| Error::Incomplete { path: input.path().to_owned(), what: what.to_owned() };
        // A file without rows needs no options.
        let layout = rows(input.available()).find_map(Layout::of).unwrap_or(Layout::Verbose);
        let unit = match (options.unit, layout) {
            (Some(unit), _) => unit,
            (None, Layout::Plain) => {
                return Err(incomplete(
                    "the unit of lines with one number is unknown. For frame sizes, set --option unit=bits or unit=bytes, and \
                     --option rate_hz=24; for block numbers, set --format lirs",
                ));
            }
            (None, _) => SizeUnit::Bits,
        };
        let has_times = layout == Layout::Verbose && options.order == FrameOrder::Display;
        if options.rate.is_none() && !has_times {
            return Err(incomplete("the frame rate is missing. Set --option rate_hz=24, or the actual rate"));
        }
        if options.order == FrameOrder::Coding && layout != Layout::Verbose {
            return Err(incomplete(
                "order=coding needs a verbose file (found rows without frame numbers). Set --option order=display",
            ));
        }
        let mut devices = Devices::default();
        devices.number(b"video");
        Ok(FrameReader {
            lines: Lines::new(input),
            layout,
            unit,
            rate: options.rate,
            order: options.order,
            row: 0,
            offset_bytes: 0,
            early: BTreeMap::new(),
            next: 0,
            ended: false,
            devices,
            skipping: Skipping::new(skip_bad),
        })
    }

    /// The request for a row, the next one in the file.
    fn request(&mut self, row: &Row) -> Result<TraceRequest, Bad> {
        let size_bytes = match self.unit {
            SizeUnit::Bytes => row.size,
            SizeUnit::Bits => row.size.div_ceil(8),
        };
        let place = if self.order == FrameOrder::Coding { self.row } else { row.number };
        let arrival_ns = match (self.rate, row.time_ns) {
            (Some(rate), _) => rate.time_ns(place),
            (None, time_ns) => time_ns,
        };
        let request = TraceRequest {
            arrival_ns: arrival_ns.ok_or_else(|| Bad {
                field: "frame",
                found: place.to_string(),
                expected: "one shown within 292 years",
            })?,
            offset_bytes: self.offset_bytes,
            size_bytes,
            object: Some(row.number),
            ..TraceRequest::default()
        };
        self.offset_bytes = self
            .offset_bytes
            .checked_add(size_bytes)
            .ok_or_else(|| Bad::number("size", size_bytes, "less than 2^64 bytes in all"))?;
        self.row += 1;
        Ok(request)
    }

    /// Reads a row; `None` at the end.
    fn read(&mut self) -> Result<Option<TraceRequest>, Error> {
        loop {
            let (layout, row) = (self.layout, self.row);
            let parsed = match self.lines.next() {
                Ok(Some(line)) => parse(line, layout, row),
                Ok(None) => return Ok(None),
                Err(error) => {
                    self.skipping.over_bad(error)?;
                    continue;
                }
            };
            let request = parsed.and_then(|row| row.map(|row| self.checked(&row)).transpose());
            match request {
                Ok(Some(request)) => return Ok(Some(request)),
                Ok(None) => {}
                Err(bad) => self.skipping.over(self.lines.bad(bad))?,
            }
        }
    }

    /// As [`FrameReader::request`], of a frame that can still be put into its place.
    fn checked(&mut self, row: &Row) -> Result<TraceRequest, Bad> {
        let reordered = self.layout == Layout::Verbose && self.order == FrameOrder::Display;
        if reordered && (row.number < self.next || self.early.contains_key(&row.number)) {
            let found = row.number.to_string();
            return Err(Bad {
                field: "frame",
                found,
                expected: "one that was not there, at most 64 rows late",
            });
        }
        self.request(row)
    }
}

fn parse(line: &[u8], layout: Layout, row: u64) -> Result<Option<Row>, Bad> {
    if line[0] == b'#' {
        return Ok(None);
    }
    let mut fields = words(line);
    if layout != Layout::Verbose {
        let size =
            whole("size", fields.next().unwrap_or_default()).map_err(|bad| Bad { expected: ROW, ..bad })?;
        return Ok(Some(Row { number: row, time_ns: None, size }));
    }
    let mut need = |field, expected| fields.need(field, expected);
    let number = whole("frame", need("frame", "a whole number")?)?;
    let time_ns = decimal_ns("time", need("time", "ms")?, 1_000_000)?;
    let kind = need("type", "I, IDR, P or B")?;
    if !is_kind(kind) {
        return Err(Bad::text("type", kind, "I, IDR, P or B"));
    }
    let size = whole("size", need("size", "a whole number")?)?;
    Ok(Some(Row { number, time_ns: Some(time_ns), size }))
}

impl Reader for FrameReader {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        if self.layout != Layout::Verbose || self.order == FrameOrder::Coding {
            return self.read();
        }
        loop {
            let full = self.early.len() > REORDERED;
            if let Some(first) = self.early.first_entry()
                && (*first.key() == self.next || full || self.ended)
            {
                let (number, request) = first.remove_entry();
                self.next = number.saturating_add(1);
                return Ok(Some(request));
            }
            if self.ended {
                return Ok(None);
            }
            match self.read()? {
                Some(request) => {
                    self.early.insert(request.object.unwrap_or_default(), request);
                }
                None => self.ended = true,
            }
        }
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}
