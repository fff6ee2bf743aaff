//! Entry of a trace format in the registry.

use super::options::Options;
use crate::binary::{RecordFormat, RecordReader};
use crate::input::Input;
use crate::text::{LineFormat, TextReader, detect_lines};
use crate::{Error, Reader};

/// A trace format.
pub struct Format {
    /// Its name, for `--format`.
    pub name: &'static str,
    /// Description in one line: origin of the format, and origin of its times.
    pub about: &'static str,
    /// Whether the first decompressed bytes may have this format. The first match in the order of [`FORMATS`](crate::FORMATS)
    /// is taken, so formats without a distinct mark come late.
    pub detect: fn(&[u8]) -> bool,
    /// Opens a trace.
    pub open: Open,
}

/// Function that opens a trace of a format.
pub type Open = fn(Input, &Options) -> Result<Box<dyn Reader>, Error>;

impl Format {
    /// A format of lines, detected by parsing the first ones.
    pub(super) const fn of_lines<F: LineFormat + Default + 'static>(
        name: &'static str,
        about: &'static str,
    ) -> Format {
        let open: Open =
            |input, options| Ok(Box::new(TextReader::new(input, F::default(), options.skip_bad)));
        Format { name, about, detect: detect_lines::<F>, open }
    }

    /// A format of records of `N` bytes.
    pub(super) const fn of_records<F: RecordFormat<N> + Default + 'static, const N: usize>(
        name: &'static str,
        about: &'static str,
        detect: fn(&[u8]) -> bool,
    ) -> Format {
        let open: Open =
            |input, options| Ok(Box::new(RecordReader::new(input, F::default(), options.skip_bad)));
        Format { name, about, detect, open }
    }
}
