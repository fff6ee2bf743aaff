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

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    owner: Owner,
    /// What the folder is for, for whoever finds it.
    purpose: String,
}

impl Owner {
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

/// Marks a folder as made by `owner`: one that is not there is made, one that is there must be empty (`lost+found` does not
/// count) or bear the same owner's marker.
///
/// # Errors
/// [`Error::Refused`] if it holds anything else; nothing was touched.
pub fn claim(folder: &Path, owner: &Owner, purpose: &str) -> Result<(), Error> {
    if read_marker(folder)?.is_some_and(|marker| marker.owner == *owner) {
        return Ok(());
    }
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        }
        entries => {
            for entry in entries.map_err(Error::io("cannot read", folder))? {
                let name = entry.map_err(Error::io("cannot read", folder))?.file_name();
                if name != "lost+found" {
                    return Err(Error::Refused(format!(
                        "{}: is not empty (found {name:?}). Name an empty folder, or one that is not there",
                        folder.display()
                    )));
                }
            }
        }
    }
    let path = folder.join(MARKER);
    let text = serde_json::to_vec(&Marker { owner: owner.clone(), purpose: purpose.to_owned() })
        .map_err(|error| Error::Failed(error.to_string()))?;
    // Never over a marker that came meanwhile.
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
        .map_err(Error::io("cannot write", &path))?;
    sync_folder(folder)
}

/// Whether a folder bears this owner's marker. One that is not there does not.
///
/// # Errors
/// It has a marker that cannot be read.
pub fn is_owned(folder: &Path, owner: &Owner) -> Result<bool, Error> {
    Ok(read_marker(folder)?.is_some_and(|marker| marker.owner == *owner))
}

/// Removes what is in a folder, but for the marker and `lost+found`.
///
/// # Errors
/// [`Error::Refused`] if it does not bear this owner's marker, or something is mounted below it: nothing was touched.
/// [`Error::Io`] if something cannot be removed; the marker stays then.
pub fn empty(folder: &Path, owner: &Owner) -> Result<(), Error> {
    if !is_owned(folder, owner)? {
        return Err(Error::Refused(format!(
            "{}: was not made by this weir (no marker {MARKER} of its state folder). It is left as it is; look at it, then remove it yourself",
            folder.display()
        )));
    }
    if let Some(mounted) = mount_below(folder)? {
        return Err(Error::Refused(format!(
            "{}: something is mounted there. {} is left as it is; unmount it first",
            mounted.display(),
            folder.display()
        )));
    }
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        let entry = entry.map_err(Error::io("cannot read", folder))?;
        if entry.file_name() == MARKER || entry.file_name() == "lost+found" {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().map_err(Error::io("cannot look at", &path))?.is_dir();
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::io("cannot remove", &path))?;
    }
    Ok(())
}

/// Removes a folder with all that is in it. The marker goes last: after a crash the rest is still known to be weir's. One that
/// is not there is removed already.
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

/// Removes the marker alone: what is in the folder is not weir's to remove any more.
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
    let marker = if is_file { fs::read(&path).map_err(Error::io("cannot read", &path))? } else { Vec::new() };
    serde_json::from_slice(&marker).map(Some).map_err(|error| {
        Error::Refused(format!("{}: is no marker of weir ({error}). Look at the folder", path.display()))
    })
}

/// A place below a folder, or the folder itself, that lies on another file system than its surroundings: removing would reach
/// into a mount.
fn mount_below(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let device = fs::symlink_metadata(folder).map_err(Error::io("cannot look at", folder))?.dev();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(Error::io("cannot read", &next))? {
            let path = entry.map_err(Error::io("cannot read", &next))?.path();
            let found = fs::symlink_metadata(&path).map_err(Error::io("cannot look at", &path))?;
            if found.is_dir() {
                if found.dev() != device {
                    return Ok(Some(path));
                }
                folders.push(path);
            }
        }
    }
    Ok(bind_mount_below(folder))
}

/// A bind mount of the same file system has the same device number; the table of mounts tells it.
fn bind_mount_below(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let points = crate::mounts::own().into_iter().map(|mount| mount.point);
    points.into_iter().find(|point| *point != folder && point.starts_with(&folder))
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
        let refused = remove(&folder, &owner);
        assert!(run("umount", &[inner.as_os_str()]));
        assert!(refused.unwrap_err().to_string().contains("mounted"));
        assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "kept");
        remove(&folder, &owner).unwrap();
    }
}
