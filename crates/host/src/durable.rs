//! Durable files and folders: written to a temporary file, synchronised, renamed, and the folder synchronised.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::Error;
use crate::process::Identity;

/// Replaces a file with these bytes. After a crash the file has either its former content or all new bytes.
///
/// # Errors
/// The folder cannot be written; the file is unchanged.
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

/// Removes temporary files of [`write`] whose process has ended. All other files stay. An absent folder is no error.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub fn remove_unfinished(folder: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(Error::io("cannot read", folder))?,
    };
    for entry in entries {
        let path = entry.map_err(Error::io("cannot read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let writer = name.strip_suffix(".partial").and_then(|name| name.rsplit_once('.')?.1.parse().ok());
        if writer.is_some_and(|pid| Identity::of(pid).is_none()) && path.is_file() {
            fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
        }
    }
    Ok(())
}

/// Makes the entries of a folder durable.
///
/// # Errors
/// It cannot be opened or synchronised.
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|open| open.sync_all()).map_err(Error::io("cannot synchronise", folder))
}

/// Makes durable everything that was written to the file system of a folder: one wait for the disk in place of one for each of
/// many files. It also waits for what other programs wrote there.
///
/// # Errors
/// The folder cannot be opened, or something could not be written.
pub fn sync_file_system(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|open| rustix::fs::syncfs(&open).map_err(Into::into))
        .map_err(Error::io("cannot synchronise the file system of", folder))
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
    fn what_a_dead_process_did_not_finish_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        // No process has a pid above the kernel's limit of 4 Mi.
        let dead = place.path().join("run.json.4194305.partial");
        let living = place.path().join(format!("run.json.{}.partial", std::process::id()));
        let others = ["run.json", "a.partial", "b.x.partial", ".4194305.partial.keep"]
            .map(|name| place.path().join(name));
        for path in others.iter().chain([&dead, &living]) {
            fs::write(path, "").unwrap();
        }
        remove_unfinished(place.path()).unwrap();
        remove_unfinished(&place.path().join("none")).unwrap();
        assert!(!dead.exists() && living.exists() && others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
        let error = write(Path::new("/nonexistent/a"), b"", 0o600).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/a"), "{error}");
    }
}
