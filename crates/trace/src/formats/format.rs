//! Entry of a trace format in the registry.

use super::options::Options;
use crate::input::Input;
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
