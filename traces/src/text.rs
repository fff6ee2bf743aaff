//! Formats of lines: splitting, numbers, and the reader that they share.

use memchr::memchr;

use crate::error::{Bad, Error, Place};
use crate::input::Input;
use crate::reader::{Reader, Skipping};
use crate::request::{Devices, TraceRequest};

/// Longest line that is believed to be one.
const LINE_BYTES: usize = 1 << 20;

/// A format of one request a line, or a part of one.
pub(crate) trait LineFormat: Send {
    /// Reads a line that is not empty, without its end. `None`: it belongs to the format, but is no request.
    ///
    /// # Errors
    /// It does not belong to the format.
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad>;
}

/// Reads a format of lines.
pub(crate) struct TextReader<F> {
    input: Input,
    format: F,
    devices: Devices,
    line: u64,
    skipping: Skipping,
}

impl<F: LineFormat> TextReader<F> {
    pub(crate) fn new(input: Input, format: F, skip_bad: bool) -> Self {
        TextReader { input, format, devices: Devices::default(), line: 0, skipping: Skipping::new(skip_bad) }
    }
}

impl<F: LineFormat> Reader for TextReader<F> {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        let mut searched = 0;
        loop {
            let available = self.input.available();
            let (end, length) = match memchr(b'\n', &available[searched..]) {
                Some(at) => (searched + at, searched + at + 1),
                None => {
                    searched = available.len();
                    if searched > LINE_BYTES {
                        let bad = Bad::text("line", available, "lines of text; this is none");
                        return Err(self.bad_at(self.line + 1, bad));
                    }
                    if self.input.fill()? {
                        continue;
                    }
                    if searched == 0 {
                        return Ok(None);
                    }
                    (searched, searched)
                }
            };
            searched = 0;
            self.line += 1;
            let line = self.input.available()[..end].trim_ascii_end();
            let parsed = if line.is_empty() { Ok(None) } else { self.format.parse(line, &mut self.devices) };
            self.input.consume(length);
            match parsed {
                Ok(Some(request)) => return Ok(Some(request)),
                Ok(None) => {}
                Err(bad) => {
                    let error = self.bad_at(self.line, bad);
                    self.skipping.over(error)?;
                }
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

impl<F> TextReader<F> {
    fn bad_at(&self, line: u64, bad: Bad) -> Error {
        Error::Bad { path: self.input.path().to_owned(), place: Place::Line(line), bad }
    }
}

/// The fields of a line between single separators.
pub(crate) fn split(line: &[u8], separator: u8) -> Fields<'_> {
    Fields { rest: Some(line), separator }
}

/// See [`split`] .
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match rest.iter().position(|byte| *byte == self.separator) {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Some(&rest[..at])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

impl<'a> Fields<'a> {
    /// The next field, which must be there.
    pub(crate) fn need(&mut self, field: &'static str, expected: &'static str) -> Result<&'a [u8], Bad> {
        self.next().ok_or_else(|| Bad::text(field, b"", expected))
    }
}

/// A decimal whole number; nothing else in the field.
pub(crate) fn whole(field: &'static str, text: &[u8]) -> Result<u64, Bad> {
    let mut value = 0_u64;
    let digits = |text: &[u8]| !text.is_empty() && text.len() <= 20;
    if !digits(text) {
        return Err(Bad::text(field, text, "a whole number"));
    }
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Bad::text(field, text, "a whole number"));
        }
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit)))
            .ok_or_else(|| Bad::text(field, text, "a whole number below 2^64"))?;
    }
    Ok(value)
}

/// A decimal number, such as `13.191135`, times `unit_ns`, exactly; what is below 1 ns is cut off.
///
/// `unit_ns` is a power of ten: 1 for ns, 1_000_000_000 for seconds.
pub(crate) fn decimal_ns(field: &'static str, text: &[u8], unit_ns: u64) -> Result<i64, Bad> {
    let bad = || Bad::text(field, text, "a decimal number, in range");
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (before, after) = match memchr(b'.', digits) {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    if before.is_empty() && after.is_empty() {
        return Err(bad());
    }
    let mut value = if before.is_empty() { 0 } else { whole(field, before).map_err(|_| bad())? };
    value = value.checked_mul(unit_ns).ok_or_else(bad)?;
    let mut unit = unit_ns;
    for byte in after {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(bad());
        }
        unit /= 10;
        value = value.checked_add(u64::from(digit) * unit).ok_or_else(bad)?;
    }
    let value = i64::try_from(value).map_err(|_| bad())?;
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_refused() {
        assert_eq!(whole("n", b"18446744073709551615"), Ok(u64::MAX));
        for text in [&b""[..], b"-1", b"1.0", b"18446744073709551616", b" 1", b"0x1"] {
            assert!(whole("n", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn decimals_are_exact_to_the_ns() {
        assert_eq!(decimal_ns("t", b"13.191135", 1_000_000), Ok(13_191_135));
        assert_eq!(decimal_ns("t", b"0.1", 1_000_000_000), Ok(100_000_000));
        assert_eq!(decimal_ns("t", b"-2.5", 1_000), Ok(-2_500));
        assert_eq!(decimal_ns("t", b".5", 1_000), Ok(500));
        assert_eq!(decimal_ns("t", b"1.23456789012345", 1_000_000_000), Ok(1_234_567_890));
        for text in [&b""[..], b".", b"1e3", b"1.2.3", b"99999999999999999999", b"-"] {
            assert!(decimal_ns("t", text, 1_000_000_000).is_err(), "{text:?}");
        }
    }

    #[test]
    fn fields_may_be_empty() {
        assert_eq!(split(b"a,,b", b',').collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
    }
}
