//! Data folder of a daemon, named on the command line.
//!
//! A folder that is absent or empty gets this state folder's marker, and the data go into a folder in it. Only a marked folder is
//! ever restored from a copy. A folder with data and no marker is a user's own database: a daemon may run on it, and weir changes
//! nothing else there.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use weir_host::owned::{self, Owner};

use crate::Error;
use crate::description::Daemon;
use crate::server_storage::DATA;
use crate::start::check_installed;

/// Purpose in the marker.
const PURPOSE: &str = "data of a service";
/// Name of an incomplete copy.
pub(crate) const RESTORING: &str = "data.restoring";

/// A data folder, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolder {
    folder: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has the marker of this state folder.
    Own,
    /// Absent or empty.
    Free,
    /// Has the marker of another state folder, for data of a daemon.
    OfAnotherState,
    /// Has files and no marker.
    Unmarked,
}

impl DataFolder {
    /// Examines a folder and changes nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no folder, or weir made it for something else.
    pub fn look(state: &Path, folder: &Path) -> Result<Self, Error> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let kind = match owned::marker(&folder)? {
            Some(marker) if marker.purpose != PURPOSE => {
                return Err(Error::Refused(format!(
                    "{}: weir made this folder for another purpose ({}). Name another folder",
                    folder.display(),
                    marker.purpose
                )));
            }
            Some(marker) if Owner::find(state)?.as_ref() == Some(&marker.owner) => Kind::Own,
            Some(_) => Kind::OfAnotherState,
            None if owned::check_empty(&folder).is_ok() => Kind::Free,
            None if folder.is_dir() => Kind::Unmarked,
            None => {
                return Err(Error::Refused(format!("{}: is not a folder. Name a folder", folder.display())));
            }
        };
        Ok(DataFolder { folder, kind })
    }

    /// Where the data lie, or will lie.
    pub fn data(&self) -> PathBuf {
        match self.kind {
            Kind::Unmarked => self.folder.clone(),
            _ => self.folder.join(DATA),
        }
    }

    /// Whether a daemon can be started on it. Touches nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] if it belongs to another user, has an incompletely restored copy, or lacks the daemon's data.
    pub fn check_start(&self, daemon: &Daemon) -> Result<(), Error> {
        let (folder, data) = (self.folder.display(), self.data());
        if self.kind == Kind::OfAnotherState && !data.is_dir() {
            return Err(Error::Refused(format!(
                "{folder}: belongs to another state folder of weir, and holds no data. Name another folder"
            )));
        }
        if self.kind == Kind::Own && self.folder.join(RESTORING).exists() {
            return Err(Error::Refused(format!(
                "{folder}: holds half of a copy that was being restored. Restore it again: weir daemon restore COPY {folder}"
            )));
        }
        let user = check_installed(daemon)?;
        if let (Kind::Unmarked, Some(user)) = (self.kind, user) {
            let found = data.metadata().map_err(Error::io("cannot look at", &data))?;
            if found.uid() != user.uid {
                return Err(Error::Refused(format!(
                    "{folder}: holds files of another user than {} (found uid {}, expected {}), as which {} runs. Name an empty folder, or a database of that user",
                    user.name,
                    found.uid(),
                    user.uid,
                    daemon.name
                )));
            }
        }
        Ok(())
    }

    /// Marks a free folder, and checks that the folder is this state folder's: its content may then be replaced.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not: nothing was changed.
    pub(crate) fn own(&self, state: &Path) -> Result<Owner, Error> {
        if matches!(self.kind, Kind::Own | Kind::Free) {
            let owner = Owner::of_state(state)?;
            owned::claim(&self.folder, &owner, PURPOSE)?;
            return Ok(owner);
        }
        Err(Error::Refused(format!(
            "{}: holds files, but no marker of the state folder {} ({}): weir did not make this folder and does not replace its contents. Name an empty folder, or one that `weir daemon start --data` made",
            self.folder.display(),
            state.display(),
            owned::MARKER
        )))
    }

    /// Marks a free folder; a folder with data is unchanged.
    ///
    /// # Errors
    /// It is not free any more, or cannot be written.
    pub fn prepare(&self, state: &Path) -> Result<(), Error> {
        if self.kind == Kind::Free { self.own(state).map(drop) } else { Ok(()) }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_empty_folder_is_marked_and_one_with_files_never() {
        let place = tempfile::tempdir().unwrap();
        let (state, empty, full) =
            (place.path().join("state"), place.path().join("empty"), place.path().join("full"));
        fs::create_dir_all(&full).unwrap();
        fs::write(full.join("PG_VERSION"), "15").unwrap();
        let found = DataFolder::look(&state, &empty).unwrap();
        assert_eq!(found.data(), empty.join("data"));
        assert!(!empty.exists() && !state.exists(), "looking touches nothing");
        found.prepare(&state).unwrap();
        assert_eq!(DataFolder::look(&state, &empty).unwrap().kind, Kind::Own);

        let theirs = DataFolder::look(&state, &full).unwrap();
        assert_eq!(theirs.data(), full);
        theirs.prepare(&state).unwrap();
        assert!(theirs.own(&state).unwrap_err().is_refusal());
        assert_eq!(fs::read_dir(&full).unwrap().count(), 1);
    }

    #[test]
    fn data_of_another_state_folder_are_started_on_and_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (state, other) = (place.path().join("state"), place.path().join("other"));
        let folder = place.path().join("database");
        DataFolder::look(&other, &folder).unwrap().prepare(&other).unwrap();
        let daemon = Daemon::load("guest").unwrap();
        let found = DataFolder::look(&state, &folder).unwrap();
        assert!(found.check_start(&daemon).unwrap_err().to_string().contains("holds no data"));
        fs::create_dir(folder.join("data")).unwrap();
        let found = DataFolder::look(&state, &folder).unwrap();
        assert_eq!(found.data(), folder.join("data"));
        assert!(found.own(&state).unwrap_err().is_refusal());
    }

    #[test]
    fn a_folder_that_weir_made_for_something_else_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        let folder = place.path().join("brick");
        owned::claim(&folder, &Owner::of_state(&state).unwrap(), "data of cluster moosefs, server-0")
            .unwrap();
        let refused = DataFolder::look(&state, &folder).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("moosefs, server-0"), "{refused}");
    }
}
