//! Records of one or several streams, merged by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Error;
use crate::blktrace::{self, RECORD_BYTES, Record};
use crate::error::{Bad, Place};
use crate::input::Input;
use crate::reader::Skipping;

/// Magic number and version, in either byte order.
const MARKS: [[u8; 4]; 2] = [0x6561_7407_u32.to_le_bytes(), 0x6561_7407_u32.to_be_bytes()];
/// The longest record: its payload's length has 16 bits.
const LONGEST_BYTES: usize = RECORD_BYTES + u16::MAX as usize;

/// Whether a record begins here.
pub(super) fn begins(head: &[u8]) -> bool {
    MARKS.iter().any(|mark| head.starts_with(mark))
}

pub(super) struct Events {
    streams: Vec<Input>,
    /// The next record of every stream that has not ended, the earliest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    records: Vec<Option<Record>>,
    started: bool,
}

impl Events {
    pub(super) fn new(streams: Vec<Input>) -> Self {
        let records = streams.iter().map(|_| None).collect();
        Events { streams, next: BinaryHeap::new(), records, started: false }
    }

    fn advance(&mut self, stream: usize, skipping: &mut Skipping) -> Result<(), Error> {
        if let Some(record) = read(&mut self.streams[stream], skipping)? {
            self.next.push(Reverse((record.time_ns, stream)));
            self.records[stream] = Some(record);
        }
        Ok(())
    }
}

impl super::Source for Events {
    fn next(&mut self, skipping: &mut Skipping) -> Result<Option<Record>, Error> {
        if let [stream] = &mut self.streams[..] {
            return read(stream, skipping);
        }
        if !self.started {
            self.started = true;
            for stream in 0..self.streams.len() {
                self.advance(stream, skipping)?;
            }
        }
        let Some(Reverse((_, stream))) = self.next.pop() else { return Ok(None) };
        let record = self.records[stream].take();
        self.advance(stream, skipping)?;
        Ok(record)
    }
}

/// Reads the next record of a stream.
fn read(input: &mut Input, skipping: &mut Skipping) -> Result<Option<Record>, Error> {
    loop {
        let decoded = match Record::decode(input.available(), input.consumed()) {
            // There may be more to come.
            Ok(None) => Record::decode(input.need(LONGEST_BYTES)?, 0),
            decoded => decoded,
        };
        let bad = match decoded {
            Ok(Some((record, length))) => {
                input.consume(length);
                return Ok(Some(record));
            }
            Ok(None) if input.available().is_empty() => return Ok(None),
            Ok(None) => {
                let found = format!("{} bytes", input.available().len());
                Bad { field: "the last record", found, expected: "a whole record" }
            }
            Err(blktrace::Error::Magic { found, .. }) => {
                Bad::number("magic number", found, "0x65617407 in either byte order")
            }
            Err(other) => Bad { field: "record", found: other.to_string(), expected: "a blktrace record" },
        };
        let place = Place::Byte(input.consumed());
        skipping.over(Error::Bad { path: input.path().to_owned(), place, bad })?;
        pass_over(input)?;
    }
}

/// Passes over bytes until what may begin a record.
fn pass_over(input: &mut Input) -> Result<(), Error> {
    input.consume(1);
    loop {
        let available = input.need(4)?;
        let (length, found) = match available.windows(4).position(begins) {
            Some(at) => (at, true),
            None if available.len() < 4 => (available.len(), true),
            None => (available.len() - 3, false),
        };
        input.consume(length);
        if found {
            return Ok(());
        }
    }
}
