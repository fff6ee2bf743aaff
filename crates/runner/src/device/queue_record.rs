//! Records of kernel request queues that runs have set: the run itself, the next run or `weir clean` restores the queues.
//!
//! One file per disk in the folder `queues` of the state folder, written before the first setting is changed. It holds the
//! former values and the run's. A queue is left as it is if another disk has the name, or if another program has set it since.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_blockserver::QueueSettings;
use weir_host::process::Identity;
use weir_host::{durable, record};

use crate::Error;

const FOLDER: &str = "queues";

/// Record of one disk.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The run's process.
    owner: Identity,
    /// Former values.
    before: QueueSettings,
    /// Files of the queue and each value that the run sets.
    ours: Vec<(String, String)>,
}

/// Result of restoring queues, as lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// Restored queues.
    pub undone: Vec<String>,
    /// Queues that were left, with the reason; their records were removed.
    pub left: Vec<String>,
}

/// Records the present values of a disk's queue and the values that the run will set. For a recorded queue only the latter are
/// added.
///
/// # Errors
/// The record cannot be written: then the queue must not be changed.
pub(crate) fn note(state: &Path, disk: &str, ours: &[(&str, String)]) -> Result<(), Error> {
    let path = file(state, disk);
    let known = read(&path)?;
    let fresh = || {
        let before = QueueSettings::read(disk).map_err(Error::failed)?;
        Ok::<_, Error>(Record { owner: Identity::own(), before, ours: Vec::new() })
    };
    let mut record = match known {
        Some(record) if record.before.is_there() => record,
        _ => fresh()?,
    };
    record.ours.extend(ours.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let folder = path.parent().unwrap_or(state);
    fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
    Ok(record::write(&path, &record, 0o600)?)
}

/// Restores the queues that this process, or a dead one, has set.
///
/// # Errors
/// A record is damaged, or the kernel refuses a value: the text lists all. Other queues were restored.
pub fn put_back(state: &Path) -> Result<PutBack, Error> {
    let folder = state.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(PutBack::default()),
        entries => entries.map_err(Error::io("cannot read", &folder))?,
    };
    durable::remove_unfinished(&folder).map_err(Error::failed)?;
    let (mut found, mut failures) = (PutBack::default(), Vec::new());
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "json")
            && let Err(error) = put_one_back(&path, &mut found)
        {
            failures.push(error.to_string());
        }
    }
    if failures.is_empty() { Ok(found) } else { Err(Error::Failed(failures.join("; "))) }
}

fn put_one_back(path: &Path, found: &mut PutBack) -> Result<(), Error> {
    let Some(record) = read(path)? else { return Ok(()) };
    if record.owner.is_alive() && record.owner != Identity::own() {
        return Ok(());
    }
    let disk = &record.before.disk;
    if record.before.is_there() {
        match foreign(&record) {
            Some(why) => found.left.push(why),
            None => {
                record.before.put_back().map_err(|error| {
                    Error::Failed(format!("the queue of {disk} cannot be restored: {error}"))
                })?;
                found.undone.push(format!("queue of {disk}"));
            }
        }
    }
    fs::remove_file(path).map_err(Error::io("cannot remove", path))
}

/// Why a queue is not restored: another program has chosen another scheduler, or set another value. Depth and throttling follow
/// the scheduler.
fn foreign(record: &Record) -> Option<String> {
    let now = QueueSettings::read(&record.before.disk).ok()?;
    let is_known = |name: &str, before: &str, now: &str| {
        before == now || record.ours.iter().any(|(known, value)| known == name && value == now)
    };
    let text = |name: &str, value: &str| {
        format!(
            "the queue of {} is left as it is: {name} is {value}, which no run has set",
            record.before.disk
        )
    };
    if !is_known("scheduler", &record.before.scheduler, &now.scheduler) {
        return Some(text("scheduler", &now.scheduler));
    }
    let before = |name: &str| {
        record.before.others.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    };
    let compared =
        now.others.iter().filter(|(name, _)| matches!(name.as_str(), "nomerges" | "read_ahead_kb"));
    compared
        .filter(|(name, value)| !is_known(name, before(name), value))
        .map(|(name, value)| text(name, value))
        .next()
}

fn file(state: &Path, disk: &str) -> PathBuf {
    // The kernel writes `!` instead of `/` in names.
    state.join(FOLDER).join(format!("{disk}.json"))
}

fn read(path: &Path) -> Result<Option<Record>, Error> {
    let advice = "Set the values that it lists, then remove the file";
    let Some(record) = record::read::<Record>(path, advice)? else { return Ok(None) };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    if record.before.disk != name || name.contains('/') || name.starts_with('.') {
        return Err(Error::Failed(format!(
            "{}: wrong disk ({}). Look at the file, then remove it",
            path.display(),
            record.before.disk
        )));
    }
    Ok(Some(record))
}

#[cfg(test)]
#[path = "queue_record_tests.rs"]
mod tests;
