//! Common reader of formats with records of fixed size.

use crate::error::{Bad, Error, Place};
use crate::input::Input;
use crate::reader::{Reader, Skipping};
use crate::request::{Devices, TraceRequest};

/// A format of records of `N` bytes in sequence from the first byte.
pub(crate) trait RecordFormat<const N: usize>: Send {
    /// Parses a record. `None`: a valid record that is no request.
    ///
    /// # Errors
    /// The record is invalid.
    fn parse(&mut self, record: &[u8; N], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad>;
}

/// Reader of a format of fixed-size records.
pub(crate) struct RecordReader<F, const N: usize> {
    input: Input,
    format: F,
    devices: Devices,
    skipping: Skipping,
}

impl<F: RecordFormat<N>, const N: usize> RecordReader<F, N> {
    pub(crate) fn new(input: Input, format: F, skip_bad: bool) -> Self {
        RecordReader { input, format, devices: Devices::default(), skipping: Skipping::new(skip_bad) }
    }

    fn bad(&self, bad: Bad) -> Error {
        let place = Place::Byte(self.input.consumed());
        Error::Bad { path: self.input.path().to_owned(), place, bad }
    }
}

impl<F: RecordFormat<N>, const N: usize> Reader for RecordReader<F, N> {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        loop {
            let available = match self.input.available() {
                enough if enough.len() >= N => enough,
                _ => self.input.need(N)?,
            };
            let Some(record) = available.first_chunk::<N>() else {
                let left = available.len();
                if left > 0 {
                    let found = format!("{left} bytes");
                    let bad = Bad { field: "the last record", found, expected: "a whole record" };
                    let error = self.bad(bad);
                    self.input.consume(left);
                    self.skipping.over(error)?;
                }
                return Ok(None);
            };
            let parsed = self.format.parse(record, &mut self.devices);
            if let Err(bad) = parsed {
                let error = self.bad(bad);
                self.input.consume(N);
                self.skipping.over(error)?;
                continue;
            }
            self.input.consume(N);
            if let Ok(Some(request)) = parsed {
                return Ok(Some(request));
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

/// The little-endian number at a place within a record.
pub(crate) fn u16_le(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

/// As [`u16_le`].
pub(crate) fn u32_le(record: &[u8], at: usize) -> u32 {
    u32::from(u16_le(record, at)) | u32::from(u16_le(record, at + 2)) << 16
}

/// As [`u16_le`].
pub(crate) fn u64_le(record: &[u8], at: usize) -> u64 {
    u64::from(u32_le(record, at)) | u64::from(u32_le(record, at + 4)) << 32
}

/// The big-endian number at a place within a record.
pub(crate) fn u32_be(record: &[u8], at: usize) -> u32 {
    u32_le(record, at).swap_bytes()
}

/// As [`u32_be`].
pub(crate) fn u64_be(record: &[u8], at: usize) -> u64 {
    u64_le(record, at).swap_bytes()
}
