//! Folders that weir made, known by a marker file in them and not by their name.
//!
//! The marker holds the id of the state folder that made them. Only a folder with the right marker is emptied or removed; a
//! folder that holds anything else than a marker is never claimed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::durable::sync_folder;
use crate::{Error, durable};

/// Name of the marker file.
pub const MARKER: &str = ".weir-owner";
/// Name of the file in a state folder that holds its id.
const ID_FILE: &str = "id";

/// A state folder's id: 32 hexadecimal digits, random, made once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner(String);

/// Content of a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The state folder that made the folder.
    pub owner: Owner,
    /// Purpose of the folder, for a reader of the marker.
    pub purpose: String,
}

/// Digits of [`Owner::short`].
pub const SHORT_DIGITS: usize = 12;

impl Owner {
    /// The first digits of the id: for names of folders that no other state folder can have made.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..SHORT_DIGITS]
    }

    /// The id of a state folder; made if it has none.
    ///
    /// # Errors
    /// The folder cannot be written, or its id file is damaged.
    pub fn of_state(state: &Path) -> Result<Self, Error> {
        if let Some(known) = Self::find(state)? {
            return Ok(known);
        }
        fs::create_dir_all(state).map_err(Error::io("cannot make", state))?;
        let file = state.join(ID_FILE);
        let aside = state.join(format!("{ID_FILE}.{}.partial", std::process::id()));
        durable::write(&aside, random()?.as_bytes(), 0o600)?;
        // Linked, not renamed: of two processes that make an id at once the first one's counts for both.
        let linked = fs::hard_link(&aside, &file);
        fs::remove_file(&aside).map_err(Error::io("cannot remove", &aside))?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::io("cannot make", &file)(error));
            }
            _ => sync_folder(state)?,
        }
        Self::find(state)?.ok_or_else(|| Error::Failed(format!("{}: has just gone", file.display())))
    }

    /// The id of a state folder; `None` if it has none: then it has made nothing.
    ///
    /// # Errors
    /// Its id file cannot be read or is damaged.
    pub fn find(state: &Path) -> Result<Option<Self>, Error> {
        let file = state.join(ID_FILE);
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(Error::io("cannot read", &file))?,
        };
        let id = text.trim();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Some(Owner(id.to_owned())));
        }
        Err(Error::Refused(format!(
            "{}: is no id of a state folder (found {:?}, expected 32 hexadecimal digits). Look at what the folder lists, then remove it",
            file.display(),
            id.chars().take(40).collect::<String>()
        )))
    }
}

fn random() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Error::io("cannot read", source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Marks a folder as made by `owner`. An absent folder is made. An existing folder must be empty (`lost+found` does not count)
/// or have the same owner's marker.
///
/// # Errors
/// [`Error::Refused`] if it holds anything else; nothing was touched.
pub fn claim(folder: &Path, owner: &Owner, purpose: &str) -> Result<(), Error> {
    mark(folder, owner, purpose, true)
}

/// As [`claim`], without waiting for the disk: for a folder that need not outlive a crash of the host.
///
/// # Errors
/// As [`claim`].
pub fn claim_unsynced(folder: &Path, owner: &Owner, purpose: &str) -> Result<(), Error> {
    mark(folder, owner, purpose, false)
}

fn mark(folder: &Path, owner: &Owner, purpose: &str, is_durable: bool) -> Result<(), Error> {
    if is_owned(folder, owner)? {
        return Ok(());
    }
    check_empty(folder)?;
    fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
    let path = folder.join(MARKER);
    if fs::symlink_metadata(&path).is_ok() {
        // Left by a process that was killed between making and writing it.
        fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
    }
    let marker = Marker { owner: owner.clone(), purpose: purpose.to_owned() };
    let text = serde_json::to_vec(&marker).map_err(|error| Error::Failed(error.to_string()))?;
    // Never over a marker that came meanwhile.
    let opened = File::options().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = opened.map_err(Error::io("cannot write", &path))?;
    let written = file.write_all(&text).and_then(|()| if is_durable { file.sync_all() } else { Ok(()) });
    if let Err(error) = written {
        let _ = fs::remove_file(&path);
        return Err(Error::io("cannot write", &path)(error));
    }
    if read_marker(folder)? != Some(marker) {
        return Err(Error::Refused(format!("{}: another weir claims this folder", folder.display())));
    }
    if is_durable { sync_folder(folder) } else { Ok(()) }
}

/// Whether [`claim`] could mark a folder that bears no marker: it is not there, or is a folder and empty (`lost+found` and an
/// unfinished marker do not count). Touches nothing.
///
/// # Errors
/// [`Error::Refused`] if it holds anything else.
pub fn check_empty(folder: &Path) -> Result<(), Error> {
    if read_marker(folder)?.is_some() {
        return Err(Error::Refused(format!(
            "{}: belongs to another state folder of weir, or to something else of this one (it has a marker {MARKER}). Name another folder; if nothing uses this one, look at it, then remove it",
            folder.display()
        )));
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(Error::Refused(format!("{}: is no folder. Name an empty folder", folder.display())));
        }
        entries => entries.map_err(Error::io("cannot read", folder))?,
    };
    for entry in entries {
        let name = entry.map_err(Error::io("cannot read", folder))?.file_name();
        if name != "lost+found" && name != MARKER {
            return Err(Error::Refused(format!(
                "{}: is not empty (found {name:?}). Name an empty folder",
                folder.display()
            )));
        }
    }
    Ok(())
}

/// Marker of a folder; `None` if it has none.
///
/// # Errors
/// It has a marker that cannot be read.
pub fn marker(folder: &Path) -> Result<Option<Marker>, Error> {
    read_marker(folder)
}

/// Whether a folder has this owner's marker. An absent folder has none.
///
/// # Errors
/// It has a marker that cannot be read.
pub fn is_owned(folder: &Path, owner: &Owner) -> Result<bool, Error> {
    Ok(read_marker(folder)?.is_some_and(|marker| marker.owner == *owner))
}

/// Removes the content of a folder, except the marker and `lost+found`.
///
/// # Errors
/// [`Error::Refused`] if it does not bear this owner's marker, or something is mounted below it: nothing was touched.
/// [`Error::Io`] if something cannot be removed; the marker stays then.
pub fn empty(folder: &Path, owner: &Owner) -> Result<(), Error> {
    check_removable(folder, owner)?;
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        let entry = entry.map_err(Error::io("cannot read", folder))?;
        if entry.file_name() != MARKER && entry.file_name() != "lost+found" {
            remove_entry(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes one entry of a folder, with its content. An absent entry is no error.
///
/// # Errors
/// As [`empty`].
pub fn remove_inside(folder: &Path, owner: &Owner, name: &str) -> Result<(), Error> {
    let path = folder.join(name);
    check_removable_inside(folder, &path, owner)?;
    remove_entry(&path)
}

/// Checks whether [`empty`] would remove the content of a folder. Changes nothing.
///
/// # Errors
/// [`Error::Refused`] as of [`empty`].
pub fn check_removable(folder: &Path, owner: &Owner) -> Result<(), Error> {
    check_removable_inside(folder, folder, owner)
}

fn check_removable_inside(folder: &Path, path: &Path, owner: &Owner) -> Result<(), Error> {
    if !is_owned(folder, owner)? {
        return Err(Error::Refused(format!(
            "{}: was not made by this weir (no marker {MARKER} of its state folder). It is left as it is; look at it, then remove it yourself",
            folder.display()
        )));
    }
    if let Some(mounted) = mount_below(folder, path)? {
        return Err(Error::Refused(format!(
            "{}: something is mounted there. {} is left as it is; unmount it first",
            mounted.display(),
            folder.display()
        )));
    }
    Ok(())
}

fn remove_entry(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io("cannot remove", path)),
    }
}

/// Removes a folder with its content. The marker goes last: after a crash it still identifies the rest as weir's. An absent
/// folder is no error.
///
/// # Errors
/// As [`empty`].
pub fn remove(folder: &Path, owner: &Owner) -> Result<(), Error> {
    if !folder.try_exists().map_err(Error::io("cannot look at", folder))? {
        return Ok(());
    }
    empty(folder, owner)?;
    release(folder, owner)?;
    fs::remove_dir(folder).map_err(Error::io("cannot remove", folder))
}

/// Removes the marker only: weir no longer removes the folder's content.
///
/// # Errors
/// It cannot be removed.
pub fn release(folder: &Path, owner: &Owner) -> Result<(), Error> {
    if is_owned(folder, owner)? {
        let marker = folder.join(MARKER);
        fs::remove_file(&marker).map_err(Error::io("cannot remove", &marker))?;
    }
    Ok(())
}

fn read_marker(folder: &Path) -> Result<Option<Marker>, Error> {
    let path = folder.join(MARKER);
    let is_file = match fs::symlink_metadata(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        found => found.map_err(Error::io("cannot look at", &path))?.is_file(),
    };
    let text =
        if is_file { fs::read(&path).map_err(Error::io("cannot read", &path))? } else { b"a link".to_vec() };
    // A process was killed, or the power failed, between making and writing it: nothing was put beside it yet.
    if text.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        Error::Refused(format!("{}: is no marker of weir ({error}). Look at the folder", path.display()))
    })
}

/// A mount point below a path, or the path itself where it is not `folder`: removing would reach into the mount.
fn mount_below(folder: &Path, path: &Path) -> Result<Option<PathBuf>, Error> {
    if path != folder && !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(None);
    }
    let device = fs::metadata(folder).map_err(Error::io("cannot look at", folder))?.dev();
    let mut folders = vec![path.to_owned()];
    while let Some(next) = folders.pop() {
        let found = fs::symlink_metadata(&next).map_err(Error::io("cannot look at", &next))?;
        if next != folder && found.dev() != device {
            return Ok(Some(next));
        }
        for entry in fs::read_dir(&next).map_err(Error::io("cannot read", &next))? {
            let entry = entry.map_err(Error::io("cannot read", &next))?;
            let inner = entry.path();
            if entry.file_type().map_err(Error::io("cannot look at", &inner))?.is_dir() {
                folders.push(inner);
            }
        }
    }
    bind_mount_below(folder, path)
}

/// A bind mount of the same file system has the same device number; the table of mounts tells it.
fn bind_mount_below(folder: &Path, path: &Path) -> Result<Option<PathBuf>, Error> {
    let canonical = |path: &Path| path.canonicalize().map_err(Error::io("cannot look at", path));
    let (folder, path) = (canonical(folder)?, canonical(path)?);
    let mut points = crate::mounts::own()?.into_iter().map(|mount| mount.point);
    Ok(points.find(|point| *point != folder && point.starts_with(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Owner) {
        let place = tempfile::tempdir().unwrap();
        let owner = Owner::of_state(&place.path().join("state")).unwrap();
        (place, owner)
    }

    #[test]
    fn an_id_is_made_once_and_differs_between_state_folders() {
        let (place, owner) = place();
        assert_eq!(Owner::of_state(&place.path().join("state")).unwrap(), owner);
        assert_ne!(Owner::of_state(&place.path().join("other")).unwrap(), owner);
        assert_eq!(Owner::find(&place.path().join("third")).unwrap(), None);
        fs::write(place.path().join("state/id"), "nonsense").unwrap();
        assert!(Owner::of_state(&place.path().join("state")).unwrap_err().is_refusal());
    }

    #[test]
    fn a_folder_that_holds_files_is_not_claimed_and_not_touched() {
        let (place, owner) = place();
        let folder = place.path().join("photos");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.jpg"), "precious").unwrap();
        assert!(claim(&folder, &owner, "test").unwrap_err().to_string().contains("a.jpg"));
        for refused in [empty(&folder, &owner), remove(&folder, &owner)] {
            assert!(refused.unwrap_err().is_refusal());
        }
        assert_eq!(fs::read_to_string(folder.join("a.jpg")).unwrap(), "precious");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_claimed_folder_is_removed_by_its_owner_only() {
        let (place, owner) = place();
        let other = Owner::of_state(&place.path().join("other")).unwrap();
        let folder = place.path().join("data");
        claim(&folder, &owner, "test").unwrap();
        claim(&folder, &owner, "again").unwrap();
        fs::create_dir(folder.join("inner")).unwrap();
        fs::write(folder.join("inner/a"), "").unwrap();
        assert!(claim(&folder, &other, "test").unwrap_err().is_refusal());
        assert!(remove(&folder, &other).unwrap_err().is_refusal());
        assert!(folder.join("inner/a").exists());
        remove(&folder, &owner).unwrap();
        assert!(!folder.exists());
        remove(&folder, &owner).unwrap();
    }

    #[test]
    fn a_released_folder_keeps_its_files() {
        let (place, owner) = place();
        let folder = place.path().join("data");
        claim(&folder, &owner, "test").unwrap();
        fs::write(folder.join("a"), "").unwrap();
        release(&folder, &owner).unwrap();
        assert!(remove(&folder, &owner).unwrap_err().is_refusal());
        assert!(folder.join("a").exists() && !folder.join(MARKER).exists());
    }

    #[test]
    fn a_link_as_marker_is_refused_and_links_are_not_followed() {
        let (place, owner) = place();
        let (outside, folder) = (place.path().join("outside"), place.path().join("data"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a"), "kept").unwrap();
        claim(&folder, &owner, "test").unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        empty(&folder, &owner).unwrap();
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "kept");
        fs::rename(folder.join(MARKER), outside.join(MARKER)).unwrap();
        std::os::unix::fs::symlink(outside.join(MARKER), folder.join(MARKER)).unwrap();
        assert!(remove(&folder, &owner).unwrap_err().is_refusal());
    }

    #[test]
    fn a_marker_that_was_not_finished_is_no_marker_and_is_made_again() {
        let (place, owner) = place();
        let folder = place.path().join("data");
        for unfinished in [&b""[..], &[0; 90][..]] {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(MARKER), unfinished).unwrap();
            assert_eq!(marker(&folder).unwrap(), None);
            assert!(empty(&folder, &owner).unwrap_err().is_refusal());
            claim(&folder, &owner, "test").unwrap();
            assert_eq!(marker(&folder).unwrap().unwrap().purpose, "test");
            remove(&folder, &owner).unwrap();
        }
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(MARKER), "of somebody else").unwrap();
        assert!(claim(&folder, &owner, "test").unwrap_err().is_refusal());
        assert_eq!(fs::read_to_string(folder.join(MARKER)).unwrap(), "of somebody else");
    }

    #[test]
    fn a_marker_that_finds_no_room_is_not_left() {
        let (place, owner) = place();
        let full = place.path().join("full");
        fs::create_dir(&full).unwrap();
        let run = |words: &[&str]| {
            std::process::Command::new(words[0])
                .args(&words[1..])
                .arg(&full)
                .status()
                .is_ok_and(|status| status.success())
        };
        if !run(&["mount", "-t", "tmpfs", "-o", "size=4k", "full"]) {
            eprintln!("skipped: mounting needs root");
            return;
        }
        fs::create_dir(full.join("lost+found")).unwrap();
        fs::write(full.join("lost+found/a"), [1; 4096]).unwrap();
        let failed = claim(&full, &owner, "test");
        let left = fs::read_dir(&full).unwrap().count();
        assert!(run(&["umount"]));
        let failed = failed.unwrap_err();
        assert!(!failed.is_refusal() && left == 1, "{failed}: {left}");
    }

    #[test]
    fn a_file_is_no_folder_to_claim() {
        let (place, owner) = place();
        let file = place.path().join("file");
        fs::write(&file, "kept").unwrap();
        assert!(claim(&file, &owner, "test").unwrap_err().is_refusal());
        assert_eq!(fs::read_to_string(file).unwrap(), "kept");
    }

    #[test]
    fn one_thing_in_a_marked_folder_is_removed_and_nothing_beside_it() {
        let (place, owner) = place();
        let (folder, outside) = (place.path().join("data"), place.path().join("outside"));
        fs::create_dir_all(folder.join("data/inner")).unwrap();
        assert!(remove_inside(&folder, &owner, "data").unwrap_err().is_refusal());
        assert!(folder.join("data/inner").exists());
        fs::remove_dir_all(&folder).unwrap();
        claim(&folder, &owner, "test").unwrap();
        fs::create_dir_all(folder.join("data/inner")).unwrap();
        fs::write(folder.join("notes"), "kept").unwrap();
        remove_inside(&folder, &owner, "data").unwrap();
        remove_inside(&folder, &owner, "data").unwrap();
        assert!(!folder.join("data").exists() && folder.join("notes").exists());
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a"), "kept").unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("data")).unwrap();
        remove_inside(&folder, &owner, "data").unwrap();
        assert!(outside.join("a").exists() && fs::symlink_metadata(folder.join("data")).is_err());
    }

    #[test]
    fn what_is_mounted_below_is_not_emptied() {
        let (place, owner) = place();
        let (folder, outside) = (place.path().join("data"), place.path().join("outside"));
        claim(&folder, &owner, "test").unwrap();
        let inner = folder.join("a b");
        for path in [&inner, &outside] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("a"), "kept").unwrap();
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            std::process::Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
        };
        if !run("mount", &["--bind".as_ref(), outside.as_os_str(), inner.as_os_str()]) {
            eprintln!("skipped: mounting needs root");
            return;
        }
        let refused = [remove(&folder, &owner), remove_inside(&folder, &owner, "a b")];
        assert!(run("umount", &[inner.as_os_str()]));
        for refused in refused {
            assert!(refused.unwrap_err().to_string().contains("mounted"));
        }
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "kept");
        remove(&folder, &owner).unwrap();
    }
}
