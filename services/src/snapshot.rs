//! Data of a service as they were: kept once, put back before each run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Data that were kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Where they are kept; blocks are shared with the original where the file system can.
    pub path: PathBuf,
    /// Bytes of all files.
    pub size_bytes: u64,
}

/// Keeps a copy of a folder at `path`, which must not be there. The service must have ended.
///
/// # Errors
/// It cannot be copied; no half copy is left.
pub fn snapshot(data: &Path, path: &Path) -> Result<Snapshot, Error> {
    if path.exists() {
        return Err(Error::Refused(format!(
            "{} is there already; remove it, or name another place",
            path.display()
        )));
    }
    if !data.is_dir() {
        return Err(Error::Refused(format!("{} is no folder", data.display())));
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::io("cannot make", parent))?;
    }
    let partial = path.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    let copied = copy(data, &partial)
        .and_then(|()| fs::rename(&partial, path).map_err(Error::io("cannot complete", path)));
    if let Err(error) = copied {
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    Ok(Snapshot { path: path.to_owned(), size_bytes: size_bytes(path)? })
}

/// Puts back what was kept, in place of what `data` holds now. The service must have ended.
///
/// # Errors
/// The copy is not there, or the place cannot be written; a half restored folder is empty, so that it is noticed.
pub fn restore(snapshot: &Path, data: &Path) -> Result<(), Error> {
    if !snapshot.is_dir() {
        return Err(Error::Refused(format!("{}: nothing was kept there", snapshot.display())));
    }
    empty(data)?;
    let copied = copy_into(snapshot, data);
    if copied.is_err() {
        empty(data)?;
    }
    copied
}

/// The folder itself may be where a file system is mounted: only what is in it goes.
fn empty(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        let entry = entry.map_err(Error::io("cannot read", folder))?;
        let path = entry.path();
        if entry.file_name() == "lost+found" {
            continue;
        }
        let removed = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(Error::io("cannot remove", &path))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir(to).map_err(Error::io("cannot make", to))?;
    copy_into(from, to)
}

/// cp(1) shares blocks where it can, and keeps owners, modes, times and holes.
fn copy_into(from: &Path, to: &Path) -> Result<(), Error> {
    let mut command = Command::new("cp");
    command.args(["--archive", "--reflink=auto", "--sparse=auto"]).arg(from.join(".")).arg(to);
    let output = command.output().map_err(|error| Error::Failed(format!("cp: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Failed(format!("cp failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

fn size_bytes(folder: &Path) -> Result<u64, Error> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))?.flatten() {
        let metadata = entry.metadata().map_err(Error::io("cannot look at", &entry.path()))?;
        sum += if metadata.is_dir() { size_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (data, kept) = (folder.path().join("data"), folder.path().join("kept"));
        fs::create_dir_all(data.join("inner")).unwrap();
        fs::write(data.join("inner/a"), "one").unwrap();
        assert_eq!(snapshot(&data, &kept).unwrap().size_bytes, 3);
        assert!(snapshot(&data, &kept).unwrap_err().is_refusal());
        fs::write(data.join("inner/a"), "two").unwrap();
        fs::write(data.join("b"), "new").unwrap();
        restore(&kept, &data).unwrap();
        assert_eq!(fs::read_to_string(data.join("inner/a")).unwrap(), "one");
        assert!(!data.join("b").exists());
        assert!(restore(&folder.path().join("nothing"), &data).unwrap_err().is_refusal());
        assert!(data.join("inner/a").exists(), "nothing is removed for nothing");
    }
}
