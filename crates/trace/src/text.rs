//! Common reader of text formats: fields, numbers, lines.

use memchr::memchr;

use crate::error::{Bad, Error, Place};
use crate::input::{HEAD_BYTES, Input};
use crate::reader::{Reader, Skipping};
use crate::request::{Devices, TraceRequest};

/// Maximum length of a line.
const LINE_BYTES: usize = 1 << 20;

/// Unit of addresses and sizes in many formats.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// A format of one request a line, or a part of one.
pub(crate) trait LineFormat: Send {
    /// Parses a non-empty line without its end. `None`: a valid line that is no request.
    ///
    /// # Errors
    /// The line is invalid.
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<TraceRequest>, Bad>;
}

/// The lines of a trace, one after another.
pub(crate) struct Lines {
    input: Input,
    line: u64,
    /// Bytes of the last returned line with its end, not yet consumed.
    given: usize,
}

impl Lines {
    pub(crate) fn new(input: Input) -> Self {
        Lines { input, line: 0, given: 0 }
    }

    /// Next non-empty line, without trailing white space.
    ///
    /// # Errors
    /// The file cannot be read, or the line is too long (once; then the rest of the line is skipped).
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        let end = loop {
            self.input.consume(std::mem::take(&mut self.given));
            let Some(end) = self.find()? else { return Ok(None) };
            let line = &self.input.available()[..end];
            if line.last().is_some_and(|byte| *byte > b' ') || !line.trim_ascii_end().is_empty() {
                break end;
            }
        };
        Ok(Some(self.input.available()[..end].trim_ascii_end()))
    }

    /// Length of the next line without its end; sets [`Lines::given`].
    fn find(&mut self) -> Result<Option<usize>, Error> {
        let mut searched = 0;
        loop {
            let available = self.input.available();
            if let Some(at) = memchr(b'\n', &available[searched..]) {
                self.line += 1;
                self.given = searched + at + 1;
                return Ok(Some(searched + at));
            }
            searched = available.len();
            if searched > LINE_BYTES {
                self.line += 1;
                let bad = Bad::text("line", available, "a line of text");
                self.pass_over_line()?;
                return Err(self.bad(bad));
            }
            if !self.input.fill()? {
                self.line += u64::from(searched > 0);
                self.given = searched;
                return Ok((searched > 0).then_some(searched));
            }
        }
    }

    fn pass_over_line(&mut self) -> Result<(), Error> {
        loop {
            let available = self.input.available();
            match memchr(b'\n', available) {
                Some(at) => {
                    self.input.consume(at + 1);
                    return Ok(());
                }
                None => self.input.consume(available.len()),
            }
            if !self.input.fill()? {
                return Ok(());
            }
        }
    }

    /// The next thing that `parse` makes of a line; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is invalid and damage is not to be skipped.
    pub(crate) fn parsed<T>(
        &mut self,
        skipping: &mut Skipping,
        mut parse: impl FnMut(&[u8]) -> Result<Option<T>, Bad>,
    ) -> Result<Option<T>, Error> {
        loop {
            let parsed = match self.next() {
                Ok(Some(line)) => parse(line),
                Ok(None) => return Ok(None),
                Err(error) => {
                    skipping.over_bad(error)?;
                    continue;
                }
            };
            match parsed {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(bad) => skipping.over(self.bad(bad))?,
            }
        }
    }

    /// Error in the last returned line, with its place.
    pub(crate) fn bad(&self, bad: Bad) -> Error {
        Error::Bad { path: self.input.path().to_owned(), place: Place::Line(self.line), bad }
    }
}

/// Reader of a line format.
pub(crate) struct TextReader<F> {
    lines: Lines,
    format: F,
    devices: Devices,
    skipping: Skipping,
}

impl<F: LineFormat> TextReader<F> {
    pub(crate) fn new(input: Input, format: F, skip_bad: bool) -> Self {
        let devices = Devices::default();
        TextReader { lines: Lines::new(input), format, devices, skipping: Skipping::new(skip_bad) }
    }
}

impl<F: LineFormat> Reader for TextReader<F> {
    fn next_request(&mut self) -> Result<Option<TraceRequest>, Error> {
        self.lines.parsed(&mut self.skipping, |line| self.format.parse(line, &mut self.devices))
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn skipped(&self) -> &Skipping {
        &self.skipping
    }
}

/// Number of lines used to detect a format.
const DETECTED: usize = 16;

/// Whether most of the first lines are requests of a format; a damaged trace is still detected.
pub(crate) fn detect_lines<F: LineFormat + Default>(head: &[u8]) -> bool {
    let mut format = F::default();
    let (mut requests, mut others) = (0, 0);
    for line in head_lines(head).take(DETECTED) {
        match format.parse(line, &mut Devices::default()) {
            Ok(Some(_)) => requests += 1,
            Ok(None) => {}
            Err(_) => others += 1,
        }
    }
    requests > others
}

/// Non-empty lines of a file's beginning; the last one only if complete or the only one.
pub(crate) fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match head.iter().rposition(|byte| *byte == b'\n') {
        Some(at) if head.len() >= HEAD_BYTES => &head[..at],
        _ => head,
    };
    whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty())
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
    /// Checks that no field follows.
    pub(crate) fn end(&mut self) -> Result<(), Bad> {
        match self.next() {
            None => Ok(()),
            Some(more) => Err(Bad::text("the end of the line", more, "no further field")),
        }
    }

    /// The next field; an error if there is none.
    pub(crate) fn need(&mut self, field: &'static str, expected: &'static str) -> Result<&'a [u8], Bad> {
        self.next().ok_or_else(|| Bad::text(field, b"", expected))
    }
}

/// The fields of a line between white space.
pub(crate) fn words(line: &[u8]) -> Words<'_> {
    Words { rest: line }
}

/// See [`words`].
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.rest[start..];
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }
}

impl<'a> Words<'a> {
    /// The next field; an error if there is none.
    pub(crate) fn need(&mut self, field: &'static str, expected: &'static str) -> Result<&'a [u8], Bad> {
        self.next().ok_or_else(|| Bad::text(field, b"", expected))
    }

    /// Checks that no field follows.
    pub(crate) fn end(&mut self) -> Result<(), Bad> {
        match self.next() {
            None => Ok(()),
            Some(more) => Err(Bad::text("the end of the line", more, "no further field")),
        }
    }
}

/// A product that must be below 2^64, such as of blocks and block size.
pub(crate) fn times(field: &'static str, count: u64, unit: u64) -> Result<u64, Bad> {
    count.checked_mul(unit).ok_or_else(|| Bad::number(field, count, "a number whose bytes are below 2^64"))
}

/// A whole number of `unit_ns` in ns.
pub(crate) fn whole_ns(field: &'static str, text: &[u8], unit_ns: i64) -> Result<i64, Bad> {
    let value = i64::try_from(whole(field, text)?).ok().and_then(|count| count.checked_mul(unit_ns));
    value.ok_or_else(|| Bad::text(field, text, "a time of less than 292 years"))
}

/// A hexadecimal whole number without a prefix; nothing else in the field.
pub(crate) fn hexadecimal(field: &'static str, text: &[u8]) -> Result<u64, Bad> {
    let bad = || Bad::text(field, text, "a hexadecimal number below 2^64");
    if text.is_empty() || text.len() > 16 {
        return Err(bad());
    }
    text.iter().try_fold(0, |value, byte| {
        let digit = char::from(*byte).to_digit(16).ok_or_else(bad)?;
        Ok(value << 4 | u64::from(digit))
    })
}

/// Number of decimal digits that always fit into 64 bits.
const SAFE_DIGITS: usize = 19;

/// The number that at most [`SAFE_DIGITS`] digits make, 0 if there are none; `None` if there is anything else.
fn safe(digits: &[u8]) -> Option<u64> {
    let mut value = 0;
    let mut wrong = false;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        wrong |= digit > 9;
        value = value * 10 + u64::from(digit & 15);
    }
    (!wrong).then_some(value)
}

/// A decimal whole number; nothing else in the field.
pub(crate) fn whole(field: &'static str, text: &[u8]) -> Result<u64, Bad> {
    let value = match text.len() {
        0 => None,
        1..=SAFE_DIGITS => safe(text),
        _ if text.iter().all(u8::is_ascii_digit) => {
            let (first, last) = text.split_at(SAFE_DIGITS);
            // At most one digit more can fit.
            let value = match (safe(first), last) {
                (Some(value), [digit]) => {
                    value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')))
                }
                _ => None,
            };
            return value.ok_or_else(|| Bad::text(field, text, "a whole number below 2^64"));
        }
        _ => None,
    };
    value.ok_or_else(|| Bad::text(field, text, "a whole number"))
}

/// A decimal number, such as `13.191135`, times `unit_ns`; exact, rounded down to 1 ns.
///
/// `unit_ns` is a power of ten: 1 for ns, 1_000_000_000 for seconds.
pub(crate) fn decimal_ns(field: &'static str, text: &[u8], unit_ns: u64) -> Result<i64, Bad> {
    let bad = || Bad::text(field, text, "a decimal number, in range");
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (before, after) = match digits.iter().position(|byte| *byte == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    if before.is_empty() && after.is_empty() {
        return Err(bad());
    }
    let value = if before.is_empty() { 0 } else { whole(field, before).map_err(|_| bad())? };
    let places = unit_ns.ilog10();
    let (counts, rest) = after.split_at(after.len().min(places as usize));
    if !rest.iter().all(u8::is_ascii_digit) {
        return Err(bad());
    }
    let fraction = safe(counts).ok_or_else(bad)? * 10_u64.pow(places - counts.len() as u32);
    let value = value.checked_mul(unit_ns).and_then(|value| value.checked_add(fraction)).ok_or_else(bad)?;
    let value = i64::try_from(value).map_err(|_| bad())?;
    Ok(if negative { -value } else { value })
}

/// Parses one line with a new parser of a format.
#[cfg(test)]
pub(crate) fn parse_line<F: LineFormat + Default>(line: &str) -> Result<Option<TraceRequest>, Bad> {
    F::default().parse(line.as_bytes(), &mut Devices::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_refused() {
        assert_eq!(whole("n", b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole("n", b"9999999999999999999"), Ok(9_999_999_999_999_999_999));
        assert!(whole("n", b"100000000000000000000").unwrap_err().expected.contains("2^64"));
        for text in [&b""[..], b"-1", b"1.0", b"18446744073709551616", b" 1", b"0x1", b"1/", b"1:", b"/"] {
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
        for text in [&b""[..], b".", b"1e3", b"1.2.3", b"99999999999999999999", b"-", b"1.0000000000x"] {
            assert!(decimal_ns("t", text, 1_000_000_000).is_err(), "{text:?}");
        }
    }

    #[test]
    fn whole_times_are_exact_or_refused() {
        assert_eq!(whole_ns("t", b"9223372036854775", 1000), Ok(9_223_372_036_854_775_000));
        assert!(whole_ns("t", b"9223372036854776", 1000).unwrap_err().expected.contains("292 years"));
        assert!(whole_ns("t", b"18446744073709551615", 1).unwrap_err().expected.contains("292 years"));
        assert_eq!(whole_ns("t", b"1.5", 1).unwrap_err().expected, "a whole number");
    }

    #[test]
    fn hexadecimal_numbers_are_exact_or_refused() {
        assert_eq!(hexadecimal("n", b"fFffffffffffffff"), Ok(u64::MAX));
        for text in [&b""[..], b"0x1", b"g", b"10000000000000000", b"-1"] {
            assert!(hexadecimal("n", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn words_are_between_any_white_space() {
        assert_eq!(words(b" a \t b  ").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(words(b"  ").next(), None);
    }

    #[test]
    fn lines_are_numbered_and_the_last_needs_no_end() {
        let input = Input::from_reader(std::path::Path::new("x"), &b"a\n\n  \r\nb \r\nc"[..]).unwrap();
        let mut lines = Lines::new(input);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let line = line.to_vec();
            seen.push((line, lines.line));
        }
        assert_eq!(seen, [(b"a".to_vec(), 1), (b"b".to_vec(), 4), (b"c".to_vec(), 5)]);
    }

    #[test]
    fn what_is_too_long_for_a_line_is_passed_over_as_one() {
        let mut text = vec![b'x'; 3 * LINE_BYTES];
        text.extend(b"\nafter\n");
        let input = Input::from_reader(std::path::Path::new("x"), std::io::Cursor::new(text)).unwrap();
        let mut lines = Lines::new(input);
        assert!(matches!(lines.next(), Err(Error::Bad { place: Place::Line(1), .. })));
        assert_eq!(lines.next().unwrap(), Some(&b"after"[..]));
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn fields_may_be_empty() {
        assert_eq!(split(b"a,,b", b',').collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
    }
}
