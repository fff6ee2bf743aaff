//! Frame sizes of a video: one whole number a line, in display order.
//!
//! The common denominator of published MPEG traces (Rose 1995; Garrett and Willinger 1994; the terse files of
//! Fitzek and Reisslein 2001). Only the first column counts; lines that are empty or begin with `#` are
//! passed over. The file does not say whether it counts bits or bytes, nor at what frame rate: whoever reads
//! it has to know.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A frame-size file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A line does not begin with a whole number.
    #[error("{}:{line}: {found:?} is no frame size (a whole number was expected)", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// There is no frame in it.
    #[error("{}: has no frames", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads all frame sizes, in the file's own unit.
///
/// # Errors
/// The file cannot be read, a line is no number, or there is none.
pub fn read(path: &Path) -> Result<Vec<u64>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut sizes = Vec::new();
    for (index, line) in BufReader::new(File::open(path).map_err(io)?).lines().enumerate() {
        let line = line.map_err(io)?;
        let Some(first) = line.split_ascii_whitespace().next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        sizes.push(first.parse().map_err(|_| Error::Line {
            path: path.to_owned(),
            line: index + 1,
            found: first.chars().take(40).collect(),
        })?);
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
    fn a_line_that_is_no_number_is_named() {
        let error = read_text("12\nI\n").unwrap_err().to_string();
        assert!(error.contains(":2: \"I\" is no frame size"), "{error}");
    }

    #[test]
    fn an_empty_file_is_an_error() {
        assert!(matches!(read_text("# nothing\n"), Err(Error::Empty { .. })));
    }
}
