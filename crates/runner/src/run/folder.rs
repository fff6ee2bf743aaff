//! Folder of a run: made under a partial name, sealed by a manifest, and renamed once it is complete.
//!
//! A partial folder is called `.NAME.partial`, where NAME is the run's id, or `ID.HOST` for a host's part in a run of several
//! hosts. It holds a marker with the id of the results folder (`.weir/id` in that folder), by which another process, with
//! another state folder or after a reboot, recognises what a killed run left. The marker is removed just before the folder gets
//! its final name; from then on the manifest lists the files that weir wrote. A folder with neither is not weir's and stays.
//!
//! A process that makes a run holds the lock on its name (`.weir/locks`) from before its first write until the folder is
//! complete or removed. A partial folder whose name can be locked was therefore left by a dead process.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_host::durable::{sync_folder, sync_tree};
use weir_host::lock::NameLock;
use weir_host::owned::{self, Owner};
use weir_records::Manifest;
use weir_records::manifest::{Depth, MANIFEST, RESULTS_FORMAT, RESULTS_FORMAT_FIELD};
use weir_study::Run;

use crate::Error;
use crate::context::write_json;
use crate::run::sweep::{OWN_FOLDER, making, remove_dead, remove_published, try_lock};

/// A host's record of the run's hosts and clocks, in the folder of its part.
pub(crate) const PART: &str = "part.json";
/// The file with everything that decides the outcome of a run.
pub(crate) const RUN: &str = "run.json";

/// What a complete folder outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the host: everything is synchronised before the folder gets its name.
    Crash,
    /// The end of the process only: for a folder that is moved elsewhere and checked there.
    Process,
}

/// Folder of a run, or of a host's part of it, that this process makes while it holds the lock on its name.
#[derive(Debug)]
pub(crate) struct RunFolder {
    run: String,
    partial: PathBuf,
    replaced: PathBuf,
    folder: PathBuf,
    owner: Owner,
    durability: Durability,
    _lock: NameLock,
}

impl RunFolder {
    /// Locks a run in a results folder for this process.
    ///
    /// # Errors
    /// [`Error::Refused`] if another process holds the lock; nothing was touched.
    pub(crate) fn take(results: &Path, run: &str) -> Result<Self, Error> {
        Self::locked(results, run, run, results.join(run))
    }

    /// Locks a host's part of a run.
    ///
    /// # Errors
    /// As [`RunFolder::take`].
    pub(crate) fn take_part(results: &Path, run: &str, host: &str) -> Result<Self, Error> {
        Self::locked(results, run, &format!("{run}.{host}"), parts_folder(results, run).join(host))
    }

    /// As [`RunFolder::take`], but waits for the lock, with a message.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn wait(results: &Path, run: &str) -> Result<Self, Error> {
        let own = results.join(OWN_FOLDER);
        let lock = if let Some(lock) = try_lock(results, run)? {
            lock
        } else {
            eprintln!("run {run}: another process carries it out; waiting for it");
            NameLock::wait(&own, run)?
        };
        Self::with(lock, results, run, run, results.join(run))
    }

    fn locked(results: &Path, run: &str, name: &str, folder: PathBuf) -> Result<Self, Error> {
        let tried = try_lock(results, name)?;
        let lock = tried.ok_or_else(|| {
            Error::Refused(format!(
                "another process carries out run {run} in {}. Wait for it to end",
                results.display()
            ))
        })?;
        Self::with(lock, results, run, name, folder)
    }

    fn with(lock: NameLock, results: &Path, run: &str, name: &str, folder: PathBuf) -> Result<Self, Error> {
        // The journal stores the path, and may be read from another working directory.
        let results = std::path::absolute(results).map_err(Error::io("cannot find", results))?;
        let folder = std::path::absolute(&folder).map_err(Error::io("cannot find", &folder))?;
        // One thread at a time: the id is made under a name of this process.
        let mut making = making();
        let owner = Owner::of_state(&results.join(OWN_FOLDER))?;
        let partial = results.join(format!(".{name}.partial"));
        let replaced = results.join(format!(".{name}.replaced"));
        making.insert(partial.clone());
        let durability = Durability::Crash;
        Ok(RunFolder { run: run.to_owned(), partial, replaced, folder, owner, durability, _lock: lock })
    }

    /// Sets what the complete folder outlives.
    pub(crate) fn outliving(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Folder of the run's data until it is complete.
    pub(crate) fn partial(&self) -> &Path {
        &self.partial
    }

    /// The complete folder.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Makes the empty partial folder. The folder of a process that ended is removed first.
    ///
    /// # Errors
    /// [`Error::Refused`] if a folder that weir did not make has its name: that folder stays.
    pub(crate) fn make(&self) -> Result<(), Error> {
        let partial = remove_dead(&self.partial, &self.run)?;
        if let Some(left) = partial.or(remove_published(&self.replaced, &self.run)?) {
            return Err(Error::Refused(format!("{left}. Move it away: run {} needs the name", self.run)));
        }
        let purpose = format!("run {}, not complete; made by process {}", self.run, std::process::id());
        match self.durability {
            Durability::Crash => owned::claim(&self.partial, &self.owner, &purpose)?,
            Durability::Process => owned::claim_unsynced(&self.partial, &self.owner, &purpose)?,
        }
        Ok(())
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn write_run(&self, run: &Run) -> Result<(), Error> {
        let path = self.partial.join(RUN);
        let document =
            run_document(run).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
        write_json(&path, &document)
    }

    /// Removes the partial folder.
    pub(crate) fn discard(&self) {
        match remove_dead(&self.partial, &self.run) {
            Ok(None) => {}
            Ok(Some(left)) => eprintln!("{left}"),
            Err(error) => eprintln!("{error}"),
        }
    }

    /// Seals the folder and renames it, in place of one of that name. After a crash one of the two is complete.
    ///
    /// # Errors
    /// Something cannot be written; the folder keeps its partial name.
    pub(crate) fn publish(&self) -> Result<(), Error> {
        let folder = &self.folder;
        let manifest = Manifest::of(&self.partial, &self.run).map_err(damaged)?;
        let text = manifest.text().map_err(Error::failed)?;
        let path = self.partial.join(MANIFEST);
        fs::write(&path, text).map_err(Error::io("cannot write", &path))?;
        let is_durable = self.durability == Durability::Crash;
        if is_durable {
            sync_tree(&self.partial)?;
        }
        let above = folder.parent().unwrap_or(folder);
        fs::create_dir_all(above).map_err(Error::io("cannot make", above))?;
        owned::release(&self.partial, &self.owner)?;
        move_over(&self.partial, folder, &self.replaced)?;
        if is_durable {
            sync_folder(above)?;
            // The folder of the parts may be new.
            if let Some(results) = self.partial.parent().filter(|results| *results != above) {
                sync_folder(results)?;
            }
        }
        if let Some(left) = remove_published(&self.replaced, &self.run)? {
            eprintln!("{left}");
        }
        Ok(())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        making().remove(&self.partial);
    }
}

/// Gives a complete folder its final name. One that has the name gets the name `replaced`.
///
/// # Errors
/// A folder cannot be renamed.
pub(crate) fn move_over(complete: &Path, folder: &Path, replaced: &Path) -> Result<(), Error> {
    if folder.symlink_metadata().is_ok() {
        fs::rename(folder, replaced).map_err(Error::io("cannot replace", folder))?;
    }
    fs::rename(complete, folder).map_err(Error::io("cannot complete", folder))
}

/// Content of `run.json`.
///
/// # Errors
/// A field cannot be written as JSON.
pub(crate) fn run_document(run: &Run) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(run)?;
    // A run with this field has a manifest, which is reported if it is missing.
    document[RESULTS_FORMAT_FIELD] = json!(RESULTS_FORMAT);
    Ok(document)
}

/// Folder of all fetched parts of a run: one for each host.
pub(crate) fn parts_folder(results: &Path, run: &str) -> PathBuf {
    results.join(format!(".{run}.parts"))
}

/// Checks that a part is as its host left it.
///
/// # Errors
/// A file of it is damaged or missing, or it has no manifest.
pub(crate) fn check_part(folder: &Path, run: &str) -> Result<(), Error> {
    let again =
        |what: String| Error::Failed(format!("{what}. Remove the folder, and carry out the run again"));
    let manifest = Manifest::read(folder).map_err(|damage| again(damage.to_string()))?.ok_or_else(|| {
        again(format!("{}: missing: the part is not complete", folder.join(MANIFEST).display()))
    })?;
    if manifest.run != run {
        let path = folder.join(MANIFEST);
        return Err(again(format!("{}: wrong run (found {}, expected {run})", path.display(), manifest.run)));
    }
    match manifest.compare(folder, Depth::Content).map_err(damaged)?.first() {
        Some(damage) => Err(again(damage.to_string())),
        None => Ok(()),
    }
}

fn damaged(damage: weir_records::Damage) -> Error {
    Error::Failed(damage.to_string())
}

#[cfg(test)]
mod tests {
    use weir_records::manifest::METRICS;

    use super::*;
    use crate::run::sweep::{sweep, sweep_parts, take_back};

    const ID: &str = "0123456789ab";

    #[test]
    fn many_threads_begin_in_a_new_folder_of_results() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let results = place.path();
                scope.spawn(move || {
                    RunFolder::take(results, &format!("run-{number}")).unwrap().make().unwrap()
                });
            }
        });
        assert_eq!(sweep(place.path()).unwrap(), [""; 0]);
        assert_eq!(names(place.path()), [""; 0]);
    }

    fn written(results: &Path, text: &str) -> RunFolder {
        let folder = RunFolder::take(results, ID).unwrap();
        folder.make().unwrap();
        fs::create_dir(folder.partial().join("logs")).unwrap();
        write_json(&folder.partial().join("observed.json"), &json!(text)).unwrap();
        fs::write(folder.partial().join("logs/a.log"), text).unwrap();
        folder
    }

    fn names(results: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(results)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != OWN_FOLDER)
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_published_folder_is_sealed_and_replaces_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join(ID);
        for text in ["first", "second"] {
            written(place.path(), text).publish().unwrap();
            fs::write(target.join(METRICS), "derived").unwrap();
        }
        assert_eq!(names(place.path()), [ID]);
        assert_eq!(fs::read_to_string(target.join("logs/a.log")).unwrap(), "second");
        assert!(!target.join(owned::MARKER).exists());
        let manifest = Manifest::read(&target).unwrap().unwrap();
        assert_eq!(manifest.compare(&target, Depth::Content).unwrap(), []);
        assert_eq!(manifest.run, ID);
    }

    #[test]
    fn what_a_user_put_into_a_replaced_run_is_left() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join(ID);
        written(place.path(), "first").publish().unwrap();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        written(place.path(), "second").publish().unwrap();
        let replaced = place.path().join(format!(".{ID}.replaced"));
        assert_eq!(fs::read_to_string(replaced.join("notes.txt")).unwrap(), "mine");
        assert!(!replaced.join("observed.json").exists());
        assert!(sweep(place.path()).unwrap()[0].contains("did not write"));
    }

    #[test]
    fn a_users_folder_of_a_partial_name_is_left_and_refused() {
        let place = tempfile::tempdir().unwrap();
        let partial = place.path().join(format!(".{ID}.partial"));
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("photo.jpg"), "precious").unwrap();
        let folder = RunFolder::take(place.path(), ID).unwrap();
        let refused = folder.make().unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains(".partial"), "{refused}");
        folder.discard();
        drop(folder);
        take_back(&partial).unwrap();
        assert_eq!(sweep(place.path()).unwrap().len(), 1);
        assert_eq!(fs::read_to_string(partial.join("photo.jpg")).unwrap(), "precious");
    }

    #[test]
    fn a_folder_that_replaced_ours_is_left() {
        let place = tempfile::tempdir().unwrap();
        let folder = written(place.path(), "ours");
        let partial = folder.partial().to_owned();
        fs::rename(&partial, place.path().join("elsewhere")).unwrap();
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("a"), "theirs").unwrap();
        drop(folder);
        take_back(&partial).unwrap();
        assert_eq!(fs::read_to_string(partial.join("a")).unwrap(), "theirs");
        // A link to a folder of ours is not followed.
        let link = place.path().join(".ffffffffffff.partial");
        std::os::unix::fs::symlink(place.path().join("elsewhere"), &link).unwrap();
        take_back(&link).unwrap();
        assert!(place.path().join("elsewhere/observed.json").exists());
    }

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_a_living_one_makes_is_not() {
        let place = tempfile::tempdir().unwrap();
        let folder = written(place.path(), "half");
        let partial = folder.partial().to_owned();
        // As another process sees it: the lock is held, and the folder is not this process's.
        making().remove(&partial);
        take_back(&partial).unwrap();
        assert!(sweep(place.path()).unwrap()[0].contains("another process"));
        assert!(partial.exists());
        assert!(RunFolder::take(place.path(), ID).unwrap_err().is_refusal());
        drop(folder);
        assert_eq!(sweep(place.path()).unwrap(), [""; 0]);
        assert_eq!(names(place.path()), [""; 0]);
    }

    #[test]
    fn a_process_that_died_just_before_the_name_left_a_sealed_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = written(place.path(), "whole");
        let target = place.path().join(ID);
        folder.publish().unwrap();
        let partial = folder.partial().to_owned();
        fs::rename(&target, &partial).unwrap();
        drop(folder);
        take_back(&partial).unwrap();
        assert_eq!(names(place.path()), [""; 0]);
    }

    #[test]
    fn parts_that_weir_made_are_removed_and_damaged_ones_told() {
        let place = tempfile::tempdir().unwrap();
        let parts = place.path().join(format!(".{ID}.parts"));
        for host in ["a", "b"] {
            let folder = RunFolder::take_part(place.path(), ID, host).unwrap();
            folder.make().unwrap();
            write_json(&folder.partial().join("part.json"), &json!(host)).unwrap();
            folder.publish().unwrap();
        }
        check_part(&parts.join("a"), ID).unwrap();
        fs::write(parts.join("a/part.json"), "\"b\"\n").unwrap();
        let error = check_part(&parts.join("a"), ID).unwrap_err().to_string();
        assert!(error.contains("a/part.json: is damaged"), "{error}");
        assert!(check_part(&parts.join("b"), "other").is_err());
        fs::create_dir(parts.join("mine")).unwrap();
        fs::write(parts.join("mine/a"), "").unwrap();
        assert_eq!(sweep_parts(place.path()).unwrap().len(), 1);
        assert!(parts.join("mine/a").exists() && !parts.join("a").exists() && !parts.join("b").exists());
    }
}
