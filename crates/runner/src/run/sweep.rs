//! Removal of run folders: partial ones of dead processes, replaced runs, and parts of runs of several hosts.
//!
//! A folder is removed only if weir made it: it holds the marker of the results folder, or its manifest lists its files. All
//! other folders stay.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_host::lock::NameLock;
use weir_host::owned::{self, Owner};
use weir_records::Manifest;
use weir_records::manifest::{MANIFEST, METRICS};

use crate::Error;

/// Folder in a study's results with the id of the results folder and the locks on runs.
pub(super) const OWN_FOLDER: &str = ".weir";

/// Partial folders that this process makes: it holds their locks.
static MAKING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

pub(super) fn making() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a folder that a journal lists as incomplete. A run's folder is removed only if a dead process, or this one, made it;
/// all others are folders that weir made in its state folder.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn take_back(path: &Path) -> Result<(), String> {
    if let Some(name) = partial_name(path, "partial") {
        match remove_dead(path, run_of(name)).map_err(|error| error.to_string())? {
            None => {}
            // Another folder has the name by now.
            Some(left) => eprintln!("{left}"),
        }
        return Ok(());
    }
    match fs::remove_dir_all(path) {
        Err(error) if path.exists() => Err(format!("cannot remove {}: {error}", path.display())),
        _ => Ok(()),
    }
}

/// Removes what dead processes left in a study's results: partial folders and replaced runs. Returns a line for each folder
/// that stays because it is not weir's.
///
/// # Errors
/// Something that is weir's cannot be removed.
pub fn sweep(results: &Path) -> Result<Vec<String>, Error> {
    let mut left = Vec::new();
    for folder in hidden_folders(results) {
        if let Some(name) = partial_name(&folder, "partial") {
            left.extend(remove_dead(&folder, run_of(name))?);
        } else if let Some(name) = partial_name(&folder, "replaced")
            && is_free(&folder, name)?
        {
            left.extend(remove_published(&folder, run_of(name))?);
        }
    }
    Ok(left)
}

/// Removes the parts of runs of several hosts that were never joined. Returns a line for each folder that stays because it is
/// not weir's.
///
/// # Errors
/// Something that is weir's cannot be removed.
pub fn sweep_parts(results: &Path) -> Result<Vec<String>, Error> {
    let mut left = Vec::new();
    for folder in hidden_folders(results) {
        if let Some(run) = partial_name(&folder, "parts") {
            left.extend(remove_parts(&folder, run)?);
        }
    }
    Ok(left)
}

/// Removes the folder of a run's parts with the parts that weir made.
///
/// # Errors
/// Something that is weir's cannot be removed.
pub(crate) fn remove_parts(folder: &Path, run: &str) -> Result<Vec<String>, Error> {
    let mut left = Vec::new();
    for part in folders(folder) {
        left.extend(remove_published(&part, run)?);
    }
    match fs::remove_dir(folder) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            Err(Error::io("cannot remove", folder)(error))
        }
        _ => Ok(left),
    }
}

/// Removes a published run: the files that its manifest lists, derived metrics, and the folder. Returns why, if something
/// stays; nothing if the folder is absent.
///
/// # Errors
/// A file cannot be removed; the manifest stays then.
pub(crate) fn remove_published(folder: &Path, run: &str) -> Result<Option<String>, Error> {
    if folder.symlink_metadata().is_err() {
        return Ok(None);
    }
    let manifest = match Manifest::read(folder) {
        Ok(Some(manifest)) if manifest.run == run && is_real(folder) => manifest,
        _ => {
            let why =
                format!("left as it is: it has no manifest.json of run {run}, and weir may not have made it");
            return Ok(Some(format!("{}: {why}", folder.display())));
        }
    };
    for path in manifest.files.iter().map(|entry| entry.path.as_str()).chain([METRICS]) {
        let file = folder.join(path);
        if !is_within(folder, &file) {
            continue;
        }
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("cannot remove", &file)(error));
            }
            _ => {}
        }
    }
    remove_empty_below(folder);
    if fs::read_dir(folder).map_err(Error::io("cannot read", folder))?.count() > 1 {
        return Ok(Some(format!(
            "{}: left as it is: it holds files that weir did not write",
            folder.display()
        )));
    }
    let path = folder.join(MANIFEST);
    fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
    fs::remove_dir(folder).map_err(Error::io("cannot remove", folder))?;
    Ok(None)
}

/// Removes a partial folder that a dead process made, or this one. Returns why, if it stays.
pub(super) fn remove_dead(partial: &Path, run: &str) -> Result<Option<String>, Error> {
    if partial.symlink_metadata().is_err() {
        return Ok(None);
    }
    let name = partial_name(partial, "partial").unwrap_or(run);
    let results = partial.parent().unwrap_or(partial);
    // Held until the folder is removed.
    let _lock = if making().contains(partial) {
        None
    } else if let Some(lock) = try_lock(results, name)? {
        Some(lock)
    } else {
        return Ok(Some(format!("{}: left as it is: another process makes it", partial.display())));
    };
    let Some(owner) = Owner::find(&results.join(OWN_FOLDER))? else {
        return remove_published(partial, run);
    };
    match owned::is_owned(partial, &owner) {
        Ok(true) if is_real(partial) => owned::remove(partial, &owner).map(|()| None).map_err(Error::from),
        // Killed between removal of the marker and the rename: sealed, or not weir's.
        _ => remove_published(partial, run),
    }
}

fn is_free(folder: &Path, name: &str) -> Result<bool, Error> {
    let results = folder.parent().unwrap_or(folder);
    Ok(try_lock(results, name)?.is_some())
}

pub(super) fn try_lock(results: &Path, name: &str) -> Result<Option<NameLock>, Error> {
    NameLock::try_take(&results.join(OWN_FOLDER), name).map_err(Error::from)
}

/// NAME of `.NAME.KIND`.
fn partial_name<'a>(path: &'a Path, kind: &str) -> Option<&'a str> {
    let name = path.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(kind)?.strip_suffix('.')?;
    (!name.is_empty()).then_some(name)
}

/// The run's id in a name that may end with a host.
fn run_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(run, _)| run)
}

/// Whether the path is a folder, and not a link to one.
fn is_real(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Whether the path from a folder to a file below it crosses no link and no mount.
fn is_within(folder: &Path, file: &Path) -> bool {
    let Ok(top) = folder.symlink_metadata() else { return false };
    let same =
        |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.dev() == top.dev());
    file.ancestors().skip(1).take_while(|path| *path != folder).all(same)
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_real(path)).collect()
}

fn hidden_folders(of: &Path) -> Vec<PathBuf> {
    let is_hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    folders(of).into_iter().filter(is_hidden).collect()
}

fn remove_empty_below(folder: &Path) {
    for inner in folders(folder) {
        remove_empty_below(&inner);
        // A folder that is not empty stays.
        let _ = fs::remove_dir(inner);
    }
}
