//! The formats: one file each, and a line in [`FORMATS`].

mod oracle_general;
mod spc;

use std::path::Path;

use crate::input::{HEAD_BYTES, Input};
use crate::{Error, Reader};

/// What a reader may have to be told.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the format; told from the content if absent.
    pub format: Option<String>,
    /// Pass over what is damaged, and count it.
    pub skip_bad: bool,
}

/// A format.
pub struct Format {
    /// Its name, for `--format`.
    pub name: &'static str,
    /// What it is, in a line: who writes it, and what its times count from.
    pub about: &'static str,
    /// Whether the first bytes, decompressed, may be of it. Asked in the order of [`FORMATS`]: the first that says
    /// yes is taken, so that a format without marks of its own comes late.
    pub detect: fn(&[u8]) -> bool,
    /// Begins to read.
    pub open: Open,
}

/// Begins to read a trace of a format.
pub type Open = fn(Input, &Options) -> Result<Box<dyn Reader>, Error>;

/// All formats, those with the surest marks first.
pub const FORMATS: &[Format] = &[spc::FORMAT, oracle_general::FORMAT];

/// Opens a trace.
///
/// # Errors
/// It cannot be read, or no format is known that it is of.
pub fn open(path: &Path, options: &Options) -> Result<(&'static Format, Box<dyn Reader>), Error> {
    open_input(Input::open(path)?, options)
}

/// Reads a trace that has been opened.
///
/// # Errors
/// As [`open`].
pub fn open_input(input: Input, options: &Options) -> Result<(&'static Format, Box<dyn Reader>), Error> {
    let head = &input.available()[..input.available().len().min(HEAD_BYTES)];
    let found = match &options.format {
        Some(name) => FORMATS.iter().find(|format| format.name == name),
        None => FORMATS.iter().find(|format| (format.detect)(head)),
    };
    let Some(format) = found else {
        let known = FORMATS.iter().map(|format| format.name).collect();
        return Err(Error::Unknown { path: input.path().to_owned(), known });
    };
    Ok((format, (format.open)(input, options)?))
}
