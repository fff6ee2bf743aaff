//! Registry of trace formats: one line for each format, in the order in which they are tried.

use std::path::Path;

use super::format::Format;
use super::options::Options;
use crate::input::{HEAD_BYTES, Input};
use crate::{Error, Reader};

/// All formats, the most distinct marks first.
pub const FORMATS: &[Format] = &[
    super::weir::FORMAT,
    super::srt::FORMAT,
    super::blktrace::FORMAT,
    super::iolog::FORMAT,
    super::systor::FORMAT,
    super::libcachesim_csv::FORMAT,
    super::nfsdump::FORMAT,
    super::auspex::FORMAT,
    super::msr::FORMAT,
    super::alibaba::FORMAT,
    super::spc::FORMAT,
    super::disksim_validate::FORMAT,
    super::disksim::FORMAT,
    super::mqsim::FORMAT,
    super::tencent::FORMAT,
    super::lirs::FORMAT,
    super::frames::FORMAT,
    super::worldcup::FORMAT,
    super::vscsi::FORMAT_1,
    super::vscsi::FORMAT_2,
    super::oracle_general::FORMAT,
    super::oracle_general::FORMAT_OP,
    super::cache2k::FORMAT,
    super::csv::FORMAT,
    super::fio_log::FORMAT,
    super::blkparse::FORMAT,
    super::biosnoop::FORMAT,
];

/// Opens a trace. If there is no file of this name but `NAME.blktrace.0` and so on, these are merged.
///
/// # Errors
/// The file cannot be read, or its format is unknown.
pub fn open(path: &Path, options: &Options) -> Result<(&'static Format, Box<dyn Reader>), Error> {
    if !path.exists()
        && let Some(reader) = super::blktrace::open_per_cpu(path, options)?
    {
        return Ok((&super::blktrace::FORMAT, reader));
    }
    open_input(Input::open(path)?, options)
}

/// Detects the format of an opened input and returns its reader.
///
/// # Errors
/// Same as [`open`].
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
