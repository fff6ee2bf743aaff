//! Folders with all that is in them. Over a network each file takes an answer or two: several are removed at a time.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::several;

/// Files that are removed at a time.
const REMOVERS: usize = 8;

/// Calls a function with every file below a folder; links are not followed.
///
/// # Errors
/// A folder cannot be read, or the function fails.
pub(crate) fn each_file(folder: &Path, work: &mut impl FnMut(&Path) -> io::Result<()>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        let entry = entry.map_err(Error::io("cannot read", folder))?;
        let path = entry.path();
        match entry.file_type().map_err(Error::io("cannot look at", &path))? {
            kind if kind.is_dir() => each_file(&path, work)?,
            kind if kind.is_file() => work(&path).map_err(Error::io("cannot read", &path))?,
            _ => {}
        }
    }
    Ok(())
}

/// Takes what is kept of a folder's files out of the page cache.
///
/// # Errors
/// One cannot be opened.
pub(crate) fn forget_pages(folder: &Path) -> Result<(), Error> {
    each_file(folder, &mut |path| {
        let file = File::open(path)?;
        // SAFETY: the descriptor is open; the call takes numbers only, and gives an error rather than fail.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        Ok(())
    })
}

/// Removes a folder and all that is in it; links are not followed. It is no error if it is not there.
///
/// # Errors
/// Something cannot be removed; the rest may be gone.
pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries.map_err(Error::io("cannot read", folder))? {
        let path = entry.path();
        if entry.file_type().map_err(Error::io("cannot look at", &path))?.is_dir() {
            remove(&path)?;
        } else {
            files.push(path);
        }
    }
    several::each(
        files.len(),
        REMOVERS,
        || (),
        |(), at| fs::remove_file(&files[at]).map_err(Error::io("cannot remove", &files[at])),
    )?;
    fs::remove_dir(folder).map_err(Error::io("cannot remove", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let (gone, stays) = (place.path().join("gone"), place.path().join("stays"));
        fs::create_dir_all(gone.join("deep/er")).unwrap();
        fs::create_dir(&stays).unwrap();
        fs::write(stays.join("file"), "kept").unwrap();
        for number in 0..100 {
            fs::write(gone.join(format!("deep/er/{number}")), "").unwrap();
        }
        fs::write(gone.join("one"), "").unwrap();
        std::os::unix::fs::symlink(&stays, gone.join("link")).unwrap();

        remove(&gone).unwrap();
        assert!(!gone.exists());
        assert_eq!(fs::read_to_string(stays.join("file")).unwrap(), "kept");
        remove(&gone).unwrap();
    }
}
