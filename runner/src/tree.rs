//! Removing a folder over a network, where each file takes an answer or two: several are asked for at a time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

/// Files that are removed at a time.
const REMOVERS: usize = 8;

/// Removes a folder and all that is in it; links are not followed. It is no error if it is not there.
///
/// # Errors
/// Something cannot be removed; the rest may be gone.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?.collect::<io::Result<Vec<_>>>()?,
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        } else {
            files.push(entry.path());
        }
    }
    let share = files.len().div_ceil(REMOVERS).max(1);
    thread::scope(|scope| {
        let removers: Vec<_> = files
            .chunks(share)
            .map(|some| scope.spawn(move || some.iter().try_for_each(fs::remove_file)))
            .collect();
        let done = removers.into_iter().map(|remover| {
            remover.join().unwrap_or_else(|_| Err(io::Error::other("a thread that removed files fell")))
        });
        done.collect::<Vec<_>>().into_iter().collect::<io::Result<()>>()
    })?;
    fs::remove_dir(folder)
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
