//! Files and folders that are whole after a crash: written aside, synchronised, renamed, and the folder synchronised.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::Error;

/// Replaces a file with these bytes: after a crash it holds either what it held before or all of them.
///
/// # Errors
/// The folder cannot be written; the file is as it was then.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}.partial", std::process::id()));
    let aside = Path::new(&aside);
    let written = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(aside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(aside, path));
    if let Err(error) = written {
        let _ = fs::remove_file(aside);
        return Err(Error::io("cannot write", path)(error));
    }
    sync_folder(path.parent().unwrap_or(Path::new("/")))
}

/// Makes durable which names a folder has.
///
/// # Errors
/// It cannot be opened or synchronised.
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|open| open.sync_all()).map_err(Error::io("cannot synchronise", folder))
}

/// Makes durable all files and folders below and including a folder. Links are not followed.
///
/// # Errors
/// One cannot be read or synchronised.
pub fn sync_tree(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        let entry = entry.map_err(Error::io("cannot read", folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(Error::io("cannot look at", &path))?;
        if kind.is_dir() {
            sync_tree(&path)?;
        } else if kind.is_file() {
            File::open(&path)
                .and_then(|open| open.sync_all())
                .map_err(Error::io("cannot synchronise", &path))?;
        }
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state.json");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        sync_tree(place.path()).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
        let error = write(Path::new("/nonexistent/a"), b"", 0o600).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/a"), "{error}");
    }
}
