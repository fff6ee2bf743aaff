//! Errors of traces.

use std::path::PathBuf;

/// Error in reading or converting a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Error of the operating system or of decompression.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Invalid content.
    #[error("{}:{place}: {bad}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Place in the file.
        place: Place,
        /// Invalid field.
        bad: Bad,
    },
    /// Unknown format.
    #[error("{}: unknown trace format. Name it with --format ({})", path.display(), known.join(", "))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Known formats.
        known: Vec<&'static str>,
    },
    /// Missing option of a format.
    #[error("{}: {what}", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// Missing option and remedy.
        what: String,
    },
    /// A request is earlier than the one before it.
    #[error(
        "{}: request {number} (from 0) is {early_ns} ns earlier than the one before it; sort the trace with --sort",
        path.display()
    )]
    Unordered {
        /// The file.
        path: PathBuf,
        /// Number of the request, from 0.
        number: u64,
        /// Difference in ns.
        early_ns: u64,
    },
    /// A computed number of a request is out of range.
    #[error("{}: request {number} (from 0): {what} is out of range. Use a smaller factor", path.display())]
    OutOfRange {
        /// The file.
        path: PathBuf,
        /// Number of the request, from 0.
        number: u64,
        /// Name of the number.
        what: &'static str,
    },
    /// A table of requests could not be read or written.
    #[error(transparent)]
    Table(#[from] weir_records::Error),
}

/// Place in a decompressed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Line, from 1.
    Line(u64),
    /// Offset in bytes.
    Byte(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Line(line) => write!(f, "{line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// An invalid field or record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found:?}, expected {expected}")]
pub struct Bad {
    /// Name of the field.
    pub field: &'static str,
    /// Content, shortened.
    pub found: String,
    /// Valid content.
    pub expected: &'static str,
}

impl Bad {
    /// Maximum length of quoted content.
    const QUOTED: usize = 48;

    /// A field of text.
    pub fn text(field: &'static str, found: &[u8], expected: &'static str) -> Self {
        let found = String::from_utf8_lossy(&found[..found.len().min(Self::QUOTED)]).into_owned();
        Bad { field, found, expected }
    }

    /// A field of a binary record.
    pub fn number(field: &'static str, found: impl std::fmt::LowerHex, expected: &'static str) -> Self {
        Bad { field, found: format!("{found:#x}"), expected }
    }
}
