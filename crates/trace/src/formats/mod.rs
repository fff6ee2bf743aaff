//! Trace formats: one file each, one line in [`FORMATS`].

mod alibaba;
mod auspex;
mod blktrace;
mod cache2k;
pub mod csv;
mod disksim;
mod disksim_validate;
pub mod frames;
mod iolog;
mod libcachesim_csv;
mod lirs;
mod mqsim;
mod msr;
mod nfsdump;
mod options;
mod oracle_general;
mod scsi;
mod spc;
mod srt;
mod systor;
mod tencent;
mod under_way;
mod vscsi;
mod worldcup;

use std::path::Path;

pub use options::Options;

use crate::input::{HEAD_BYTES, Input};
use crate::{Error, Reader};

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
pub const FORMATS: &[Format] = &[
    srt::FORMAT,
    blktrace::FORMAT,
    iolog::FORMAT,
    systor::FORMAT,
    libcachesim_csv::FORMAT,
    nfsdump::FORMAT,
    auspex::FORMAT,
    msr::FORMAT,
    alibaba::FORMAT,
    spc::FORMAT,
    disksim_validate::FORMAT,
    disksim::FORMAT,
    mqsim::FORMAT,
    tencent::FORMAT,
    lirs::FORMAT,
    frames::FORMAT,
    worldcup::FORMAT,
    vscsi::FORMAT_1,
    vscsi::FORMAT_2,
    oracle_general::FORMAT,
    oracle_general::FORMAT_OP,
    cache2k::FORMAT,
    csv::FORMAT,
];

/// Opens a trace. Where there is no file of that name but `NAME.blktrace.0` and so on, those are read as one.
///
/// # Errors
/// It cannot be read, or no format is known that it is of.
pub fn open(path: &Path, options: &Options) -> Result<(&'static Format, Box<dyn Reader>), Error> {
    if !path.exists()
        && let Some(reader) = blktrace::open_per_cpu(path, options)?
    {
        return Ok((&blktrace::FORMAT, reader));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FORMATS.len());
    }

    #[test]
    fn an_empty_file_and_noise_are_of_no_format() {
        for head in [&b""[..], b"\n\n", b"what is this?\nno trace\n", &[0xff; 400]] {
            let taken: Vec<_> = FORMATS.iter().filter(|format| (format.detect)(head)).collect();
            assert!(taken.is_empty(), "{:?} for {head:?}", taken[0].name);
        }
    }
}
