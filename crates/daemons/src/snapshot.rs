//! Snapshots of a daemon's data: copied once, restored before each run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use weir_host::{owned, process};

use crate::Error;
use crate::data_folder::{DataFolder, RESTORING};
use crate::server_storage::DATA;

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Where they are kept; blocks are shared with the original where the file system can.
    pub path: PathBuf,
    /// Bytes of all files.
    pub size_bytes: u64,
}

/// Keeps a copy of a folder at `path`, which must not be there. The daemon must have ended. Of a folder that weir marked, the data
/// in it are kept.
///
/// # Errors
/// It cannot be copied; no half copy is left.
pub fn snapshot(state: &Path, data: &Path, path: &Path) -> Result<Snapshot, Error> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Error::Refused(format!(
            "{}: exists already. Remove it, or name another folder",
            path.display()
        )));
    }
    let data = DataFolder::look(state, data)?.data();
    if !data.is_dir() {
        return Err(Error::Refused(format!(
            "{}: there are no data to copy. Name the folder that --data named",
            data.display()
        )));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::Refused(format!("{}: is not a name for a new folder. Name one", path.display())));
    };
    fs::create_dir_all(parent).map_err(Error::io("cannot make", parent))?;
    // This process made the folder, so its contents may be removed.
    let aside = parent.join(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
    fs::create_dir(&aside).map_err(Error::io("cannot make", &aside))?;
    let copied = copy_into(&data, &aside)
        .and_then(|()| fs::rename(&aside, path).map_err(Error::io("cannot complete", path)));
    if let Err(error) = copied {
        let _ = fs::remove_dir_all(&aside);
        return Err(error);
    }
    Ok(Snapshot { path: path.to_owned(), size_bytes: size_bytes(path)? })
}

/// Replaces the data of a folder with a copy. The folder must have this state folder's marker, or be empty or absent. The daemon
/// must have ended.
///
/// # Errors
/// [`Error::Refused`] if the copy is not there or the folder is not weir's: nothing was touched; [`Error::Failed`] if the place
/// cannot be written: a daemon does not start on an incomplete copy.
pub fn restore(state: &Path, snapshot: &Path, folder: &Path) -> Result<(), Error> {
    check_kept(snapshot)?;
    let found = DataFolder::look(state, folder)?;
    let (kept, place) = (snapshot.canonicalize().unwrap_or_else(|_| snapshot.to_owned()), found.folder());
    if kept.starts_with(place) || place.starts_with(&kept) {
        return Err(Error::Refused(format!(
            "{} and {} contain each other. Name a copy outside of the data",
            snapshot.display(),
            folder.display()
        )));
    }
    let owner = found.own(state)?;
    owned::remove_inside(place, &owner, RESTORING)?;
    let partial = place.join(RESTORING);
    fs::create_dir(&partial).map_err(Error::io("cannot make", &partial))?;
    // Before the copy: there may not be room for both.
    owned::remove_inside(place, &owner, DATA)?;
    copy_into(snapshot, &partial)?;
    let data = place.join(DATA);
    fs::rename(&partial, &data).map_err(Error::io("cannot complete", &data))
}

/// Copies a copy into a new or empty folder.
///
/// # Errors
/// [`Error::Refused`] if the copy is not there, or the place holds something: nothing was touched; [`Error::Failed`] if it cannot
/// be written.
pub fn lay_out(snapshot: &Path, data: &Path) -> Result<(), Error> {
    check_kept(snapshot)?;
    owned::check_empty(data)?;
    fs::create_dir_all(data).map_err(Error::io("cannot make", data))?;
    copy_into(snapshot, data)
}

fn check_kept(snapshot: &Path) -> Result<(), Error> {
    if snapshot.is_dir() {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "{}: there is no copy. Name a folder that `weir daemon snapshot` made",
        snapshot.display()
    )))
}

/// cp(1) shares blocks where it can, and keeps owners, modes, times and holes.
fn copy_into(from: &Path, to: &Path) -> Result<(), Error> {
    let mut command = Command::new("cp");
    command.args(["--archive", "--reflink=auto", "--sparse=auto"]).arg(from.join(".")).arg(to);
    // The folder is removed by the next restore, which must not find a cp that still writes there.
    process::end_with_parent(&mut command);
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
        let place = tempfile::tempdir().unwrap();
        let [state, folder, kept] = ["state", "database", "kept"].map(|name| place.path().join(name));
        DataFolder::look(&state, &folder).unwrap().prepare(&state).unwrap();
        let data = folder.join("data");
        fs::create_dir_all(data.join("inner")).unwrap();
        fs::write(data.join("inner/a"), "one").unwrap();
        assert_eq!(snapshot(&state, &folder, &kept).unwrap().size_bytes, 3);
        assert!(snapshot(&state, &folder, &kept).unwrap_err().is_refusal());
        fs::write(data.join("inner/a"), "two").unwrap();
        fs::write(data.join("b"), "new").unwrap();
        restore(&state, &kept, &folder).unwrap();
        assert_eq!(fs::read_to_string(data.join("inner/a")).unwrap(), "one");
        assert!(!data.join("b").exists() && !folder.join(RESTORING).exists());
        let nothing = place.path().join("nothing");
        assert!(restore(&state, &nothing, &folder).unwrap_err().is_refusal());
        assert!(data.join("inner/a").exists(), "nothing is removed for nothing");
        // An absent folder is made.
        restore(&state, &kept, &place.path().join("second")).unwrap();
        assert_eq!(fs::read_to_string(place.path().join("second/data/inner/a")).unwrap(), "one");
    }

    #[test]
    fn a_folder_that_weir_did_not_mark_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let [state, photos, kept] = ["state", "photos", "kept"].map(|name| place.path().join(name));
        for folder in [&photos, &kept] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(photos.join("a.jpg"), "precious").unwrap();
        fs::write(kept.join("b"), "").unwrap();
        let refused = restore(&state, &kept, &photos).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("no marker"), "{refused}");
        assert!(lay_out(&kept, &photos).unwrap_err().is_refusal());
        // Marked by another state folder: not this one's to replace.
        let other = place.path().join("other");
        restore(&other, &kept, &place.path().join("theirs")).unwrap();
        assert!(restore(&state, &kept, &place.path().join("theirs")).unwrap_err().is_refusal());
        assert!(place.path().join("theirs/data/b").exists());
        assert_eq!(fs::read_to_string(photos.join("a.jpg")).unwrap(), "precious");
        assert_eq!(fs::read_dir(&photos).unwrap().count(), 1);
        assert!(!state.exists());
    }

    #[test]
    fn what_lies_beside_a_copy_stays() {
        let place = tempfile::tempdir().unwrap();
        let [state, data, kept, beside] =
            ["state", "data", "kept.v1", "kept.partial"].map(|name| place.path().join(name));
        for folder in [&data, &beside] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(beside.join("a.jpg"), "precious").unwrap();
        assert!(snapshot(&state, &data, &kept).unwrap_err().is_refusal(), "there is nothing to keep");
        fs::write(data.join("row"), "").unwrap();
        snapshot(&state, &data, &kept).unwrap();
        assert_eq!(fs::read_to_string(beside.join("a.jpg")).unwrap(), "precious");
        assert!(kept.is_dir());
    }

    #[test]
    fn a_copy_within_the_data_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let [state, folder] = ["state", "database"].map(|name| place.path().join(name));
        DataFolder::look(&state, &folder).unwrap().prepare(&state).unwrap();
        let data = folder.join("data");
        fs::create_dir_all(data.join("copy")).unwrap();
        fs::write(data.join("copy/a"), "kept").unwrap();
        assert!(restore(&state, &data.join("copy"), &folder).unwrap_err().is_refusal());
        assert!(data.join("copy/a").exists());
    }

    #[test]
    fn a_daemon_is_not_started_on_half_a_copy() {
        let place = tempfile::tempdir().unwrap();
        let [state, folder, kept] = ["state", "database", "kept"].map(|name| place.path().join(name));
        fs::create_dir(&kept).unwrap();
        restore(&state, &kept, &folder).unwrap();
        // As a process leaves it that is killed while it copies.
        fs::rename(folder.join("data"), folder.join(RESTORING)).unwrap();
        let daemon = crate::Daemon::load("guest").unwrap();
        let refused = DataFolder::look(&state, &folder).unwrap().check_start(&daemon).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("restore COPY"), "{refused}");
        restore(&state, &kept, &folder).unwrap();
        assert!(folder.join("data").exists() && !folder.join(RESTORING).exists());
    }
}
