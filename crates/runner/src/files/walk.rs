//! Walks through folders: every file, dropping of cached pages, and removal of a folder's content.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use weir_host::{owned, page_cache};

use crate::Error;
use crate::files::parallel;

/// Files removed in parallel: over a network each removal waits for one or two replies.
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

/// Drops a folder's files from the page cache.
///
/// # Errors
/// One cannot be opened.
pub(crate) fn forget_pages(folder: &Path) -> Result<(), Error> {
    each_file(folder, &mut |path| {
        let file = File::open(path)?;
        // The run measures a file system that keeps its pages.
        let _ = page_cache::drop_file(&file);
        Ok(())
    })
}

/// Removes the content of a folder, except its marker.
///
/// # Errors
/// A file cannot be removed; others may have been.
pub(crate) fn empty(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries.map_err(Error::io("cannot read", folder))? {
        let path = entry.path();
        if entry.file_type().map_err(Error::io("cannot look at", &path))?.is_dir() {
            empty(&path)?;
            fs::remove_dir(&path).map_err(Error::io("cannot remove", &path))?;
        } else if entry.file_name() != owned::MARKER {
            files.push(path);
        }
    }
    parallel::each(
        files.len(),
        REMOVERS,
        || (),
        |(), at| fs::remove_file(&files[at]).map_err(Error::io("cannot remove", &files[at])),
    )
}
