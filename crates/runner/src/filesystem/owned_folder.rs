//! Folders that a run makes and removes: each holds the marker of the state folder that made it.
//!
//! A folder is removed with its content only if it holds that marker. The journal has only its path: the state folder is one
//! above it, or the folder's name ends with the first digits of the id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_host::owned::{self, Owner, SHORT_DIGITS};

use crate::Error;
use crate::context::journal::{Change, Journal};
use crate::files::walk;

/// Makes and marks a folder in the state folder, which the journal lists. A folder of a dead run is used as it is.
///
/// # Errors
/// [`Error::Refused`] if the folder has content and no marker of this state folder.
pub(crate) fn own(folder: &Path, state: &Path, purpose: &str, journal: &mut Journal) -> Result<Owner, Error> {
    let owner = Owner::of_state(state)?;
    if !owned::is_owned(folder, &owner)? {
        owned::check_empty(folder)?;
    }
    journal.note(Change::Tree(folder.to_owned()))?;
    owned::claim(folder, &owner, purpose)?;
    Ok(owner)
}

/// Makes and marks the folder of a run on a file system that outlives the run. Its name contains the id of the state folder.
///
/// # Errors
/// The folder cannot be made.
pub(crate) fn of_run(
    above: &Path,
    run: &str,
    state: &Path,
    journal: &mut Journal,
) -> Result<(PathBuf, Owner), Error> {
    let owner = Owner::of_state(state)?;
    let folder = above.join(format!("weir-{run}.{}", owner.short()));
    journal.note(Change::Tree(folder.clone()))?;
    // Of a dead run whose journal is lost.
    remove(&folder)?;
    fs::create_dir(&folder).map_err(Error::io("cannot make", &folder))?;
    owned::claim(&folder, &owner, &format!("run {run}"))?;
    Ok((folder, owner))
}

/// Folder of the same run that another state folder or an earlier version of weir made.
///
/// # Errors
/// The folder above cannot be read.
pub(crate) fn another_of_run(above: &Path, run: &str, state: &Path) -> Result<Option<PathBuf>, Error> {
    let own = Owner::find(state)?;
    let plain = format!("weir-{run}");
    let is_of_run = |name: &str| {
        name == plain
            || name.strip_prefix(&plain).and_then(|rest| rest.strip_prefix('.')).is_some_and(|id| {
                id.len() == SHORT_DIGITS
                    && id.bytes().all(|byte| byte.is_ascii_hexdigit())
                    && own.as_ref().is_none_or(|own| own.short() != id)
            })
    };
    for entry in fs::read_dir(above).map_err(Error::io("cannot read", above))? {
        let entry = entry.map_err(Error::io("cannot read", above))?;
        if entry.file_name().to_str().is_some_and(is_of_run) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Removes a folder of a run with its content, if it holds the marker of its state folder, or is empty. Links are not followed.
/// An absent folder is no error.
///
/// # Errors
/// The folder is not the run's, and nothing was touched; or a file cannot be removed, and the marker stays.
pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
    let Some(marker) = owned::marker(folder)? else { return remove_unmarked(folder) };
    let is_named_so = folder.extension().is_some_and(|id| id == marker.owner.short());
    let is_above = |state: &Path| Owner::find(state).is_ok_and(|found| found.as_ref() == Some(&marker.owner));
    if !is_named_so && !folder.ancestors().skip(1).any(is_above) {
        return Err(Error::Failed(format!(
            "{}: left as it is: it has the marker of another state folder of weir",
            folder.display()
        )));
    }
    owned::check_removable(folder, &marker.owner)?;
    walk::empty(folder)?;
    Ok(owned::remove(folder, &marker.owner)?)
}

/// Whether the folder is empty: its process was killed before it marked the folder.
fn remove_unmarked(folder: &Path) -> Result<(), Error> {
    if owned::check_empty(folder).is_ok() {
        let _ = fs::remove_file(folder.join(owned::MARKER));
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::Failed(format!(
            "{}: left as it is: it has no marker of weir ({}). Look at it, then remove it yourself",
            folder.display(),
            owned::MARKER
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, Journal) {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        let (journal, _) = Journal::begin(&state.join("journal")).unwrap();
        (place, state, journal)
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_nothing_else() {
        let (place, state, mut journal) = place();
        let stays = place.path().join("stays");
        fs::create_dir(&stays).unwrap();
        fs::write(stays.join("file"), "kept").unwrap();
        let (gone, _) = of_run(place.path(), "r1", &state, &mut journal).unwrap();
        fs::create_dir_all(gone.join("deep/er")).unwrap();
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

    #[test]
    fn a_folder_without_a_marker_is_left_whatever_the_journal_says() {
        let (place, state, mut journal) = place();
        Owner::of_state(&state).unwrap();
        let photos = place.path().join("weir-r1");
        fs::create_dir(&photos).unwrap();
        fs::write(photos.join("a.jpg"), "precious").unwrap();
        // As weir noted it that noted before it checked.
        journal.note(Change::Tree(photos.clone())).unwrap();
        let left = journal.undo();
        assert!(left.len() == 1 && left[0].contains("left as it is"), "{left:?}");
        assert_eq!(fs::read_to_string(photos.join("a.jpg")).unwrap(), "precious");
        // In the state folder, too.
        let inner = state.join("services/run.web");
        fs::create_dir_all(inner.parent().unwrap()).unwrap();
        fs::rename(&photos, &inner).unwrap();
        let (mut journal, undone) = match Journal::begin(&state.join("other")) {
            Ok(begun) => begun,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(undone.len(), 0);
        assert!(own(&inner, &state, "test", &mut journal).unwrap_err().is_refusal());
        assert_eq!(journal.undo(), Vec::<String>::new(), "it is not even noted");
        assert_eq!(fs::read_to_string(inner.join("a.jpg")).unwrap(), "precious");
    }

    #[test]
    fn a_folder_of_another_state_folder_is_left_and_seen() {
        let (place, state, mut journal) = place();
        let second = place.path().join("second");
        let (mut other, _) = Journal::begin(&second.join("journal")).unwrap();
        let (theirs, _) = of_run(place.path(), "r1", &second, &mut other).unwrap();
        assert_eq!(another_of_run(place.path(), "r1", &state).unwrap().as_deref(), Some(&*theirs));
        assert_eq!(another_of_run(place.path(), "r1", &second).unwrap(), None);
        assert_eq!(another_of_run(place.path(), "r", &state).unwrap(), None);
        let (ours, owner) = of_run(place.path(), "r1", &state, &mut journal).unwrap();
        assert_ne!(ours, theirs);
        // Their marker below our name.
        fs::remove_dir_all(&ours).unwrap();
        fs::rename(&theirs, &ours).unwrap();
        assert!(remove(&ours).unwrap_err().to_string().contains("another state folder"));
        assert!(!owned::is_owned(&ours, &owner).unwrap());
    }

    #[test]
    fn what_was_made_and_not_marked_yet_is_removed() {
        let (place, state, mut journal) = place();
        let (folder, _) = of_run(place.path(), "r1", &state, &mut journal).unwrap();
        fs::write(folder.join(owned::MARKER), "").unwrap();
        assert_eq!(journal.undo(), Vec::<String>::new());
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_in_the_state_folder_goes_and_what_a_dead_run_left_is_taken() {
        let (_place, state, mut journal) = place();
        let folder = state.join("services/run.web");
        own(&folder, &state, "test", &mut journal).unwrap();
        fs::write(folder.join("nginx.conf"), "").unwrap();
        own(&folder, &state, "test", &mut journal).unwrap();
        assert_eq!(journal.undo(), Vec::<String>::new());
        assert!(!folder.exists() && state.exists());
    }

    /// What a child does that is killed.
    #[test]
    fn child_that_is_killed() {
        let Some(place) = std::env::var_os("WEIR_OWNED_FOLDER_CHILD").map(PathBuf::from) else { return };
        let state = place.join("state");
        loop {
            let (mut journal, _) = Journal::begin(&state.join("journal")).unwrap();
            let (folder, _) = of_run(&place.join("mnt"), "r1", &state, &mut journal).unwrap();
            fs::create_dir(folder.join("class")).unwrap();
            for number in 0..8 {
                fs::write(folder.join(format!("class/{number}")), "").unwrap();
            }
            assert!(own(&state.join("services/photos"), &state, "test", &mut journal).is_err());
            own(&state.join("services/run.web"), &state, "test", &mut journal).unwrap();
            assert_eq!(journal.undo(), Vec::<String>::new());
        }
    }

    #[test]
    fn whenever_a_run_is_killed_its_folders_go_and_no_others() {
        let (place, state, journal) = place();
        journal.undo();
        let theirs = [place.path().join("mnt/weir-r1"), state.join("services/photos")];
        for folder in &theirs {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("a.jpg"), "precious").unwrap();
        }
        let mut undone = 0;
        for round in 0..60u64 {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "filesystem::owned_folder::tests::child_that_is_killed"])
                .env("WEIR_OWNED_FOLDER_CHILD", place.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(std::time::Duration::from_micros(4_000 + 977 * round));
            let early = child.try_wait().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(early, None, "it works until it is killed");
            undone += crate::run::undo::recover(&state.join("journal")).unwrap().undone.len();
            for folder in &theirs {
                assert_eq!(fs::read_to_string(folder.join("a.jpg")).unwrap(), "precious", "round {round}");
                assert_eq!(fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1, "round {round}");
            }
        }
        assert!(undone > 0, "some were killed within their work");
        eprintln!("60 kills: {undone} changes were undone after them");
    }
}
