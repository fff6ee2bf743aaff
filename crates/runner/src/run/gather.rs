//! Runs that were simulated elsewhere, taken from archives into a study's results.
//!
//! An archive is a tar file of complete run folders: `ID/manifest.json`, `ID/run.json`, ... It is unpacked into one partial folder,
//! each run is checked there, one wait for the disk makes all of them durable, and each folder gets its final name. A process
//! that is killed leaves whole runs and a partial folder with weir's marker, which [`super::sweep`] removes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use weir_host::durable::{sync_file_system, sync_folder};
use weir_host::lock::NameLock;
use weir_host::owned::{self, Owner};
use weir_records::{Damage, Manifest};
use weir_study::Run;

use crate::Error;
use crate::run::folder::{RUN, move_over, run_document};
use crate::run::sweep::{OWN_FOLDER, making, remove_published, try_lock};
use crate::validity::rule::is_invalid;

/// Number of archives that this process unpacked, for the names of partial folders.
static UNPACKED: AtomicU64 = AtomicU64::new(0);

/// Results that take runs.
pub struct Gathering<'a> {
    /// Folder of the study's results.
    pub results: &'a Path,
    /// The planned run with this id.
    pub planned: &'a (dyn Fn(&str) -> Option<&'a Run> + Sync),
    /// Damages of a run's folder.
    pub check: &'a (dyn Fn(&Path) -> Vec<Damage> + Sync),
    /// Replace invalid runs.
    pub retry_invalid: bool,
}

/// Outcome of an archive.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gathered {
    /// Ids of the runs that were stored.
    pub stored: Vec<String>,
    /// Ids of the stored runs that are invalid.
    pub invalid: Vec<String>,
    /// Ids of the runs that were in the results before.
    pub present: Vec<String>,
    /// Reasons why something was not stored: file, problem.
    pub problems: Vec<String>,
}

impl Gathering<'_> {
    /// Takes the runs of an archive. A damaged run is left out, with the reason; all others are stored.
    ///
    /// # Errors
    /// The folder of results cannot be written. Runs of the archive that were stored before stay, and are complete.
    pub fn take(&self, archive: impl Read) -> Result<Gathered, Error> {
        let name = format!("gather-{}-{}", std::process::id(), UNPACKED.fetch_add(1, Ordering::Relaxed));
        let partial = self.results.join(format!(".{name}.partial"));
        // While the lock is held, no other process takes the folder for one of a dead process.
        let _lock = NameLock::wait(&self.results.join(OWN_FOLDER), &name)?;
        let owner = {
            let mut making = making();
            making.insert(partial.clone());
            Owner::of_state(&self.results.join(OWN_FOLDER))?
        };
        let gathered = self.take_into(archive, &partial, &owner);
        let removed = owned::remove(&partial, &owner);
        making().remove(&partial);
        let gathered = gathered?;
        removed?;
        Ok(gathered)
    }

    fn take_into(&self, archive: impl Read, partial: &Path, owner: &Owner) -> Result<Gathered, Error> {
        let purpose = format!("runs of an archive, not checked; made by process {}", std::process::id());
        // A crash may take the marker and what is beside it: nothing in this folder has been acknowledged.
        owned::claim_unsynced(partial, owner, &purpose)?;
        let mut gathered = Gathered::default();
        let mut whole = Vec::new();
        for id in unpack(archive, partial, &mut gathered.problems)? {
            match self.problem(partial, &id) {
                Some(problem) => gathered.problems.push(problem),
                None => whole.push(id),
            }
        }
        if whole.is_empty() {
            return Ok(gathered);
        }
        sync_file_system(partial)?;
        for id in whole {
            let (from, folder) = (partial.join(&id), self.results.join(&id));
            // Another process may simulate the same run; its outcome is the same.
            let _lock = match try_lock(self.results, &id)? {
                Some(lock) => lock,
                None => NameLock::wait(&self.results.join(OWN_FOLDER), &id)?,
            };
            let exists = folder.symlink_metadata().is_ok();
            if exists && !(self.retry_invalid && is_invalid(&folder)) {
                gathered.present.push(id);
                continue;
            }
            let replaced = self.results.join(format!(".{id}.replaced"));
            if exists && let Some(left) = remove_published(&replaced, &id)? {
                gathered.problems.push(format!("{left}. Move it away: run {id} needs the name"));
                continue;
            }
            move_over(&from, &folder, &replaced)?;
            if let Some(left) = remove_published(&replaced, &id)? {
                eprintln!("{left}");
            }
            if is_invalid(&folder) {
                gathered.invalid.push(id.clone());
            }
            gathered.stored.push(id);
        }
        sync_folder(self.results)?;
        Ok(gathered)
    }

    /// Why an unpacked run cannot be stored.
    fn problem(&self, partial: &Path, id: &str) -> Option<String> {
        let folder = partial.join(id);
        let Some(run) = (self.planned)(id) else {
            return Some(format!("{id}: is no run of this study in virtual time"));
        };
        // The check names files in the partial folder, which nobody will find there.
        if let Some(damage) = (self.check)(&folder).first() {
            return Some(damage.to_string().replace(&format!("{}/", partial.display()), ""));
        }
        match Manifest::read(&folder) {
            Ok(Some(manifest)) if manifest.weir != env!("CARGO_PKG_VERSION") => {
                let own = env!("CARGO_PKG_VERSION");
                return Some(format!("{id}: was simulated by weir {}, not {own}", manifest.weir));
            }
            Ok(Some(_)) => {}
            _ => return Some(format!("{id}/manifest.json: is missing")),
        }
        let found: Option<serde_json::Value> =
            fs::read(folder.join(RUN)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let planned = run_document(run).ok();
        (found != planned).then(|| format!("{id}/{RUN}: differs from the plan of the study"))
    }
}

/// Unpacks an archive into a folder and returns the names of the folders in it. A file that is no part of a run is a problem. A
/// damaged archive is read up to the damage.
fn unpack(archive: impl Read, into: &Path, problems: &mut Vec<String>) -> Result<BTreeSet<String>, Error> {
    let mut archive = tar::Archive::new(archive);
    let (mut ids, mut broken) = (BTreeSet::new(), BTreeSet::new());
    let unreadable = |error: io::Error| format!("the archive is damaged ({error})");
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(unreadable(error));
            return Ok(ids);
        }
    };
    for entry in entries {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.push(unreadable(error));
                break;
            }
        };
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        let path = entry.path().map(|path| path.into_owned()).unwrap_or_default();
        let Some(id) = run_of(&path).filter(|_| kind.is_file()) else {
            problems.push(format!("{}: is no file ID/NAME of a run", path.display()));
            continue;
        };
        let file = into.join(&path);
        if let Some(above) = file.parent() {
            fs::create_dir_all(above).map_err(Error::io("cannot make", above))?;
        }
        let mut open = match File::options().write(true).create_new(true).open(&file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                problems.push(format!("{}: is in the archive twice", path.display()));
                broken.insert(id);
                continue;
            }
            opened => opened.map_err(Error::io("cannot write", &file))?,
        };
        if let Err(error) = copy(&mut entry, &mut open).map_err(Error::io("cannot write", &file))? {
            problems.push(format!("{}: {}", path.display(), unreadable(error)));
            broken.insert(id);
            break;
        }
        ids.insert(id);
    }
    Ok(ids.difference(&broken).cloned().collect())
}

/// Copies a file of an archive to its end. The outer error is of the file, the inner one of the archive.
fn copy(from: &mut tar::Entry<impl Read>, to: &mut File) -> io::Result<io::Result<()>> {
    let mut buffer = vec![0; 1 << 16];
    let mut left = from.size();
    loop {
        match from.read(&mut buffer) {
            // The reader does not tell the end of the archive from that of the file.
            Ok(0) if left > 0 => return Ok(Err(io::ErrorKind::UnexpectedEof.into())),
            Ok(0) => return Ok(Ok(())),
            Ok(read) => {
                io::Write::write_all(to, &buffer[..read])?;
                left = left.saturating_sub(read as u64);
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// The run's id, of the path of a file in a run's folder; `None` for any other path.
fn run_of(path: &Path) -> Option<String> {
    let parts: Vec<Component> = path.components().collect();
    let is_plain = |part: &Component| matches!(part, Component::Normal(name) if !name.as_encoded_bytes().starts_with(b"."));
    if parts.len() < 2 || !parts.iter().all(is_plain) {
        return None;
    }
    // One spelling for each file: no `a//b` and no `a/./b`.
    let again: PathBuf = parts.iter().collect();
    if again.as_os_str() != path.as_os_str() {
        return None;
    }
    parts[0].as_os_str().to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_ustar();
            // Not `set_path`, which refuses what an attacker may write.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn only_files_of_runs_are_unpacked() {
        let place = tempfile::tempdir().unwrap();
        let into = place.path().join("in");
        let bytes = archive(&[
            ("abc/run.json", b"{}"),
            ("abc/logs/a.log", b"x"),
            ("../escaped", b"x"),
            ("/tmp/weir-escaped", b"x"),
            ("abc/../../escaped", b"x"),
            ("top", b"x"),
            (".weir/id", b"x"),
            ("twice/a", b"1"),
            ("twice/a", b"2"),
        ]);
        let mut problems = Vec::new();
        let ids = unpack(&*bytes, &into, &mut problems).unwrap();
        assert_eq!(ids, BTreeSet::from(["abc".to_owned()]));
        assert_eq!(problems.len(), 6, "{problems:?}");
        assert_eq!(fs::read(into.join("abc/logs/a.log")).unwrap(), b"x");
        assert!(!place.path().join("escaped").exists() && !into.join(".weir").exists());
    }

    #[test]
    fn a_link_is_no_file() {
        let place = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "abc/run.json", "/etc/passwd").unwrap();
        let mut problems = Vec::new();
        let ids = unpack(&*builder.into_inner().unwrap(), place.path(), &mut problems).unwrap();
        assert!(ids.is_empty() && problems.len() == 1);
        assert!(fs::symlink_metadata(place.path().join("abc/run.json")).is_err());
    }

    #[test]
    fn an_archive_that_ends_early_gives_no_run_of_which_a_part_is_missing() {
        let place = tempfile::tempdir().unwrap();
        let bytes = archive(&[("abc/run.json", &[7; 600]), ("def/run.json", &[8; 600])]);
        let mut counts = BTreeSet::new();
        for (number, length) in (0..bytes.len()).step_by(100).enumerate() {
            let (into, mut problems) = (place.path().join(number.to_string()), Vec::new());
            let ids = unpack(&bytes[..length], &into, &mut problems).unwrap();
            counts.insert(ids.len());
            for id in ids {
                assert_eq!(fs::read(into.join(id).join("run.json")).unwrap().len(), 600, "{length}");
            }
        }
        assert_eq!(counts, BTreeSet::from([0, 1, 2]));
    }
}
