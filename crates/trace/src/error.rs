//! Errors of traces.

use std::path::PathBuf;

/// A trace that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system, or the decompressor, refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Something in it is not as its format has it.
    #[error("{}:{place}: {bad}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What.
        bad: Bad,
    },
    /// Nothing that is known reads it.
    #[error("{}: of no format that is known here; name one with --format ({})", path.display(), known.join(", "))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A format that has to be told something was not.
    #[error("{}: {what}", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What is missing, and how to say it.
        what: String,
    },
    /// A request is earlier than the one before it, where the order of times is needed.
    #[error(
        "{}: request {number} (from 0) is {early_ns} ns earlier than the one before it; sort the trace with --sort",
        path.display()
    )]
    Unordered {
        /// The file.
        path: PathBuf,
        /// Number of the request, from 0.
        number: u64,
        /// By how much.
        early_ns: u64,
    },
    /// A number that a request would have does not fit.
    #[error("{}: request {number} (from 0): {what} is out of range; leave it out, or use a smaller factor", path.display())]
    OutOfRange {
        /// The file.
        path: PathBuf,
        /// Number of the request, from 0.
        number: u64,
        /// Which number.
        what: &'static str,
    },
    /// A table of requests could not be read or written.
    #[error(transparent)]
    Table(#[from] weir_records::Error),
}

/// Where in a file, decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Line, from 1.
    Line(u64),
    /// Bytes before it.
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

/// A field, or a whole record, that is not as its format has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found:?}, expected {expected}")]
pub struct Bad {
    /// The field's name.
    pub field: &'static str,
    /// What stands there, cut off after some characters.
    pub found: String,
    /// What could stand there.
    pub expected: &'static str,
}

impl Bad {
    /// Longest text that an error quotes.
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
