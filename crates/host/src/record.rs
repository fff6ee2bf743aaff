//! Records of changes to the host: JSON files that are durable before the change is made.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, durable};

/// A record; `None` if there is no file. `advice` tells what to do about a damaged one.
///
/// # Errors
/// The file cannot be read; [`Error::Refused`] if it is damaged.
pub fn read<T: DeserializeOwned>(path: &Path, advice: &str) -> Result<Option<T>, Error> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(Error::io("cannot read", path))?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| Error::Refused(format!("{}: damaged record ({error}). {advice}", path.display())))
}

/// Replaces a record, as [`durable::write`] does.
///
/// # Errors
/// The folder cannot be written; the file is unchanged.
pub fn write(path: &Path, record: &impl Serialize, mode: u32) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(record).map_err(|error| Error::Failed(error.to_string()))?;
    text.push(b'\n');
    durable::write(path, &text, mode)
}

/// Removes a record for good: it does not return after a crash.
///
/// # Errors
/// The file cannot be removed.
pub fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::io("cannot remove", path))?;
    durable::sync_folder(path.parent().unwrap_or(Path::new("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_a_damaged_one_is_refused_with_advice() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("record.json");
        assert_eq!(read::<Vec<u32>>(&path, "").unwrap(), None);
        write(&path, &[1, 2], 0o600).unwrap();
        assert_eq!(read(&path, "").unwrap(), Some(vec![1, 2]));
        fs::write(&path, "[1").unwrap();
        let refused = read::<Vec<u32>>(&path, "Remove the file").unwrap_err();
        assert!(refused.is_refusal());
        let text = refused.to_string();
        assert!(text.starts_with(&format!("{}: damaged record (", path.display())), "{text}");
        assert!(text.ends_with("). Remove the file"), "{text}");
        remove(&path).unwrap();
        assert_eq!(read::<Vec<u32>>(&path, "").unwrap(), None);
    }
}
