//! Frame sizes of a video, in display order and the file's unit.
//!
//! All layouts of the trace format `frames` are read, compressed or not. Unit and frame rate may be missing from a file;
//! then the caller must supply them.

use std::path::{Path, PathBuf};

use crate::formats::frames::{FrameOptions, FrameRate, FrameReader, SizeUnit};
use crate::{Input, Place, Reader};

/// Error in a frame-size file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Error of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A line does not begin with a whole number.
    #[error("{}:{line}: invalid frame size (found {found:?}, expected {expected})", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Content of the line.
        found: String,
        /// Valid content.
        expected: &'static str,
    },
    /// The file has no frames.
    #[error("{}: no frames (expected at least one line with a frame size)", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is no trace of frames.
    #[error(transparent)]
    Trace(crate::Error),
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::Io { path, source } => Error::Io { path, source },
            crate::Error::Bad { path, place: Place::Line(line), bad } => {
                Error::Line { path, line, found: bad.found, expected: bad.expected }
            }
            other => Error::Trace(other),
        }
    }
}

/// Reads all frame sizes, in the file's own unit.
///
/// # Errors
/// The file cannot be read, a line is no number, or there is none.
pub fn read(path: &Path) -> Result<Vec<u64>, Error> {
    // Reading in bytes keeps the sizes unchanged; times are not used.
    let own_unit = FrameOptions {
        unit: Some(SizeUnit::Bytes),
        rate: Some(FrameRate { frames: 1000, seconds: 1 }),
        ..FrameOptions::default()
    };
    let mut reader = FrameReader::new(Input::open(path)?, &own_unit, false)?;
    let mut sizes = Vec::new();
    while let Some(frame) = reader.next_request()? {
        sizes.push(frame.size_bytes);
    }
    if sizes.is_empty() { Err(Error::Empty { path: path.to_owned() }) } else { Ok(sizes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<u64>, Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    #[test]
    fn comments_blank_lines_and_further_columns_are_passed_over() {
        assert_eq!(read_text("# bits\n\n536\t98.19\n152\n").unwrap(), [536, 152]);
    }

    #[test]
    fn verbose_files_give_their_sizes_in_display_order() {
        assert_eq!(read_text("0 0.0 I 801\n2 80.0 P 20\n1 40.0 B 3\n").unwrap(), [801, 3, 20]);
    }

    #[test]
    fn a_line_that_is_no_number_is_named() {
        let error = read_text("12\nI\n").unwrap_err().to_string();
        assert!(error.contains(":2: invalid frame size (found \"I\", expected a whole number"), "{error}");
    }

    #[test]
    fn an_empty_file_is_an_error() {
        assert!(matches!(read_text("# nothing\n"), Err(Error::Empty { .. })));
    }
}
