//! The field `access` of a study: the cost of opening and reading files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files of each size.
const FILES: u32 = 10;
/// Cost of opening and reading a file on the file system of each run, by file size. The run does nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyAccess {
    /// File sizes, in bytes or with a unit. Each file is read whole.
    pub sizes: Vec<Size>,
    /// Repetitions of all measurements within a run.
    #[serde(default = "five")]
    pub repeat: u32,
    /// Number of files of each size. Each repetition reads each file once uncached.
    #[serde(default = "ten")]
    pub files: u32,
}

fn five() -> u32 {
    5
}

fn ten() -> u32 {
    FILES
}

/// A size as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// In bytes.
    Bytes(u64),
    /// With a unit, such as `4KiB`.
    Text(String),
}

impl Size {
    /// The same in bytes.
    ///
    /// # Errors
    /// It is no size, or 0.
    pub(crate) fn bytes(&self) -> Result<u64, String> {
        match self {
            Size::Bytes(bytes) => Ok(*bytes),
            Size::Text(text) => size_bytes(text),
        }
    }
}

/// A size of text in bytes.
///
/// # Errors
/// The text is no size, or 0.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    match weir_specs::bytes(text)? {
        0 => Err(format!("found {}, no size. Write 4096, 4KiB or 1MiB", weir_specs::quoted(text))),
        size => Ok(size),
    }
}

/// A size as shown in class names: in the largest unit of which it is a multiple.
fn shown(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// Measurement of the cost of opening and reading files, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAccess {
    /// Sizes of files.
    pub sizes_bytes: Vec<u64>,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Files of each size.
    pub files: u32,
}

impl RunAccess {
    /// Class of the rows of opening and closing a file of any size.
    pub const OPEN_CLOSE: &str = "open-close";

    /// Class of the rows of cached reads of files of a size.
    pub fn cached(size_bytes: u64) -> String {
        format!("cached-{}", shown(size_bytes))
    }

    /// Class of the rows of uncached reads of files of a size.
    pub fn uncached(size_bytes: u64) -> String {
        format!("uncached-{}", shown(size_bytes))
    }

    /// Bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        let each = self.sizes_bytes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        each.saturating_mul(u64::from(self.files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes) in [("4KiB", 4096), ("1MiB", 1 << 20), ("100", 100), ("1536KiB", 1536 << 10)] {
            assert_eq!(size_bytes(text), Ok(bytes));
            assert_eq!(size_bytes(&shown(bytes)), Ok(bytes));
        }
        assert_eq!(RunAccess::uncached(1 << 20), "uncached-1MiB");
        for text in ["", "4 KB", "0", "KiB", "99999999999MiB0"] {
            assert!(size_bytes(text).unwrap_err().contains("Write "), "{text}");
        }
    }
}
