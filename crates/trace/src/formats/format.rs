//! Entry of a trace format in the registry.

use super::options::Options;
use crate::input::Input;
use crate::{Error, Reader};

/// A format.
pub struct Format {
    /// Its name, for `--format`.
    pub name: &'static str,
    /// What it is, in a line: who writes it, and what its times count from.
    pub about: &'static str,
    /// Whether the first bytes, decompressed, may be of it. Asked in the order of [`FORMATS`](crate::FORMATS): the first that says
    /// yes is taken, so that a format without marks of its own comes late.
    pub detect: fn(&[u8]) -> bool,
    /// Begins to read.
    pub open: Open,
}

/// Begins to read a trace of a format.
pub type Open = fn(Input, &Options) -> Result<Box<dyn Reader>, Error>;
