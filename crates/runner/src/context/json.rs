//! JSON documents of a run's folder.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::Error;

/// Writes a JSON document.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
    fs::write(path, text + "\n").map_err(Error::io("cannot write", path))
}
