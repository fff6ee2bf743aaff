//! Options of formats: `key=value`.

use super::csv_options::CsvOptions;
use super::frame_options::FrameOptions;

/// Options of a reader.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the format; detected from the content if absent.
    pub format: Option<String>,
    /// Skip and count damaged records.
    pub skip_bad: bool,
    /// Options of format `frames`.
    pub frames: FrameOptions,
    /// Options of format `csv`.
    pub csv: CsvOptions,
}

impl Options {
    /// Keys of [`Options::set`] with format and meaning.
    pub const KEYS: &[(&str, &str)] = &[
        ("unit", "frames: unit of sizes, bits or bytes"),
        ("rate_hz", "frames: frames per second, such as 24, 29.97 or 30000/1001"),
        ("order", "frames: order of frames, display (default) or coding"),
        ("delimiter", "csv: comma (default), tab, space, semicolon, or one character"),
        ("header", "csv: yes or no, whether the first line names the columns"),
        ("time", "csv: the column of arrivals, by name or by number from 1"),
        ("time_unit", "csv: s (default), ms, us, ns, 100ns, or filetime (100 ns since 1601)"),
        ("response", "csv: the column of response times, in the unit of time"),
        ("op", "csv: the column of operations; all requests are reads if absent"),
        ("reads", "csv: word for a read in the column of operations; all other words are writes"),
        ("offset", "csv: the column of offsets"),
        ("offset_unit", "csv: unit of offsets in bytes; default 1, 512 for sectors"),
        ("size", "csv: the column of sizes"),
        ("size_unit", "csv: unit of sizes in bytes; default 1"),
        ("device", "csv: the column of devices"),
        ("object", "csv: the column of objects"),
    ];

    /// Sets an option from `key` and `value`.
    ///
    /// # Errors
    /// The key or value is invalid; the text names valid ones.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let (frames, csv) = (&mut self.frames, &mut self.csv);
        match key {
            "unit" => frames.unit = Some(value.parse()?),
            "rate_hz" => frames.rate = Some(value.parse()?),
            "order" => frames.order = value.parse()?,
            "delimiter" => csv.delimiter = value.parse()?,
            "header" => {
                csv.header = Some(match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(format!("header is {value:?}, expected yes or no")),
                });
            }
            "time" => csv.time = Some(value.parse()?),
            "time_unit" => csv.time_unit = value.parse()?,
            "response" => csv.response = Some(value.parse()?),
            "op" => csv.op = Some(value.parse()?),
            "reads" => csv.reads = Some(value.to_owned()),
            "offset" => csv.offset = Some(value.parse()?),
            "offset_unit" => csv.offset_unit_bytes = unit_bytes(key, value)?,
            "size" => csv.size = Some(value.parse()?),
            "size_unit" => csv.size_unit_bytes = unit_bytes(key, value)?,
            "device" => csv.device = Some(value.parse()?),
            "object" => csv.object = Some(value.parse()?),
            _ => {
                let known: Vec<_> = Self::KEYS.iter().map(|(key, _)| *key).collect();
                return Err(format!("unknown option {key:?}. Known options: {}", known.join(", ")));
            }
        }
        Ok(())
    }
}

fn unit_bytes(key: &str, value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("{key} is {value:?}, expected a whole number of bytes, at least 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::frame_options::{FrameOrder, FrameRate, SizeUnit};

    #[test]
    fn every_key_that_is_listed_can_be_set() {
        let mut options = Options::default();
        for (key, _) in Options::KEYS {
            let value = ["3", "yes", "bits", "display", "us"];
            assert!(value.into_iter().any(|value| options.set(key, value).is_ok()), "{key}");
        }
    }

    #[test]
    fn frames_are_described_in_words() {
        let mut options = Options::default();
        for (key, value) in [("unit", "bytes"), ("rate_hz", "29.97"), ("order", "coding")] {
            options.set(key, value).unwrap();
        }
        assert_eq!(options.frames.unit, Some(SizeUnit::Bytes));
        assert_eq!(options.frames.rate, Some(FrameRate { frames: 2997, seconds: 100 }));
        assert_eq!(options.frames.order, FrameOrder::Coding);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let mut options = Options::default();
        for (key, value, says) in [
            ("unit", "words", "bits or bytes"),
            ("rate_hz", "0", "frames per second"),
            ("order", "random", "display or coding"),
            ("offset_unit", "0", "at least 1"),
            ("header", "maybe", "yes or no"),
            ("time_unit", "h", "100ns"),
            ("delimiter", "::", "one character"),
            ("colour", "red", "time_unit"),
        ] {
            let error = options.set(key, value).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
