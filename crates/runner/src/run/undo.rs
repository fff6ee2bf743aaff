//! Undo of a run's changes of this host, from its journal: by the run itself, the next run or `weir clean`.
//!
//! Changes are undone from the last to the first, by identity and not by name: a disk by serial number, backing file and the UUID
//! that the run gave, a mount by its source, an array by its UUID. Anything that is not provably the run's is left unchanged, with a message.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use weir_daemons::io_controller;
use weir_host::device::GivenBack;
use weir_host::durable;
use weir_host::lock::FolderLock;
use weir_host::process::Identity;
use weir_host::sysfs::selected;

use crate::Error;
use crate::cgroup::class_groups;
use crate::context::journal::{Change, Content, Journal};
use crate::device::array;
use crate::filesystem::mount;
use crate::filesystem::owned_folder;
use crate::run::sweep;

/// Result of undoing the changes of a killed run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Undone changes, a line each.
    pub undone: Vec<String>,
    /// Changes that were not undone because they are not provably the run's, a line each. They are not tried again; `left.json`
    /// beside the journal keeps them.
    pub left: Vec<String>,
}

impl Journal {
    /// Begins a journal. The changes of a killed run are undone first, a line each.
    ///
    /// # Errors
    /// Another run is being carried out, the folder cannot be written, or a killed run left something that is not provably its own:
    /// that is reported once, and the next run begins.
    pub(crate) fn begin(folder: &Path) -> Result<(Self, Vec<String>), Error> {
        let lock = lock(folder)?;
        let Recovered { undone, left } = undo_dead(folder)?;
        if !left.is_empty() {
            return Err(Error::Failed(format!(
                "changes of a run that was killed were left as they are, since they are not provably weir's: {}. Look at them; the next run begins without them",
                left.join("; ")
            )));
        }
        let content = Content { run: Identity::own(), changes: Vec::new() };
        let journal = Journal { path: folder.join(NAME), content, _lock: lock };
        journal.save()?;
        Ok((journal, undone))
    }

    /// Undoes everything and ends the journal. Returns a line for each change that could not be undone, or is not the run's.
    pub(crate) fn undo(mut self) -> Vec<String> {
        let Undone { failed, left, .. } = undo(&mut self.content.changes);
        let kept = keep_left(&self.path, &left);
        if self.content.changes.is_empty() && kept.is_ok() {
            let _ = fs::remove_file(&self.path);
        } else {
            let _ = self.save();
        }
        failed.into_iter().chain(left.into_iter().map(|(_, why)| why)).collect()
    }
}

const NAME: &str = "run.json";
/// File beside the journal with the changes that were left.
const LEFT: &str = "left.json";

fn lock(folder: &Path) -> Result<FolderLock, Error> {
    // Another process may be ending its journal.
    FolderLock::take(folder, Duration::from_millis(500)).map_err(|error| match error {
        weir_host::Error::Refused(text) => {
            Error::Refused(format!("another run is being carried out on this host: {text}"))
        }
        other => Error::from(other),
    })
}

/// Undoes the changes of a killed run.
///
/// # Errors
/// The run is alive, or a change cannot be undone now.
pub fn recover(folder: &Path) -> Result<Recovered, Error> {
    if !folder.join(NAME).exists() {
        return Ok(Recovered::default());
    }
    let _lock = lock(folder)?;
    undo_dead(folder)
}

fn undo_dead(folder: &Path) -> Result<Recovered, Error> {
    let path = folder.join(NAME);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Recovered::default()),
        read => read.map_err(Error::io("cannot read", &path))?,
    };
    let Ok(mut content) = serde_json::from_slice::<Content>(&text) else {
        return Err(Error::Refused(format!(
            "{}: damaged, or of another version of weir. Undo the changes that it lists, then remove the file",
            path.display()
        )));
    };
    if content.run.is_alive() && content.run.pid != std::process::id() {
        let pid = content.run.pid;
        let message =
            format!("another run is being carried out on this host (pid {pid}). Wait for it to end");
        return Err(Error::Refused(message));
    }
    let Undone { done, failed, left } = undo(&mut content.changes);
    keep_left(&path, &left)?;
    let left = left.into_iter().map(|(_, why)| why).collect();
    if !failed.is_empty() {
        let rest = serde_json::to_vec(&content).map_err(Error::failed)?;
        durable::write(&path, &rest, 0o600)?;
        let list = failed.join("; ");
        return Err(Error::Failed(format!("changes of a run that was killed cannot be undone: {list}")));
    }
    fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
    Ok(Recovered { undone: done, left })
}

/// Adds to the file of changes that were left.
fn keep_left(journal: &Path, left: &[(Change, String)]) -> Result<(), Error> {
    if left.is_empty() {
        return Ok(());
    }
    let path = journal.with_file_name(LEFT);
    let known =
        fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Vec<serde_json::Value>>(&text).ok());
    let all: Vec<serde_json::Value> = known
        .unwrap_or_default()
        .into_iter()
        .chain(left.iter().map(|(change, why)| json!({"change": change, "why": why})))
        .collect();
    let text = serde_json::to_vec_pretty(&all).map_err(Error::failed)?;
    durable::write(&path, &text, 0o600).map_err(Error::from)
}

/// Result of undoing changes.
#[derive(Default)]
struct Undone {
    done: Vec<String>,
    failed: Vec<String>,
    left: Vec<(Change, String)>,
}

/// Undoes changes from the last to the first. Changes that cannot be undone stay in the list.
fn undo(changes: &mut Vec<Change>) -> Undone {
    let mut undone = Undone::default();
    let mut kept = Vec::new();
    // Load generators hold devices and mounts, and fio's processes outlive fio.
    for change in changes.iter() {
        if let Change::Group(group) = change
            && class_groups::is_of_load(group)
        {
            group.kill();
        }
    }
    while let Some(change) = changes.pop() {
        match take_back(&change) {
            Ok(()) => undone.done.push(format!("{change:?}")),
            Err(NotUndone::Left(why)) => undone.left.push((change, why)),
            Err(NotUndone::Failed(why)) => {
                undone.failed.push(why);
                kept.push(change);
            }
        }
    }
    kept.reverse();
    *changes = kept;
    undone
}

/// Why a change was not undone.
enum NotUndone {
    /// The change is not provably the run's.
    Left(String),
    /// It cannot be undone now.
    Failed(String),
}

fn take_back(change: &Change) -> Result<(), NotUndone> {
    let failed = |error: &dyn std::fmt::Display| NotUndone::Failed(error.to_string());
    match change {
        Change::Folder(path) => match fs::remove_dir(path) {
            Err(error) if path.exists() => {
                Err(NotUndone::Failed(format!("cannot remove {}: {error}", path.display())))
            }
            _ => Ok(()),
        },
        Change::Mounted { point, source } => {
            match weir_host::mounts::at(point).map_err(|error| failed(&error))? {
                Some(found) if found.source != *source => Err(NotUndone::Left(format!(
                    "{}: left as it is: wrong mount (found {}, expected {})",
                    point.display(),
                    found.source.display(),
                    source.display()
                ))),
                _ => mount::unmount(point).map_err(|error| failed(&error)),
            }
        }
        Change::Assembled { node, uuid } => array::stop(node, uuid).map_err(|error| failed(&error)),
        Change::Process { state, name } => {
            weir_daemons::stop(state, name).map(|_| ()).map_err(|error| failed(&error))
        }
        Change::Group(group) => group.remove().map(|_| ()).map_err(|error| failed(&error)),
        Change::IoController(state) => {
            io_controller::move_back(state).map(|_| ()).map_err(|error| failed(&error))
        }
        Change::Tree(path) => owned_folder::remove(path).map_err(|error| failed(&error)),
        Change::MemoryLimit { group, before_bytes } => {
            group.restore_memory(*before_bytes).map_err(|error| failed(&error))
        }
        Change::Partial(path) => sweep::take_back(path).map_err(|error| failed(&error)),
        Change::Formatted(written) => match written.give_back() {
            GivenBack::Blanked | GivenBack::Nothing => Ok(()),
            GivenBack::Left(why) => Err(NotUndone::Left(why)),
            GivenBack::Failed(why) => Err(NotUndone::Failed(why)),
        },
        Change::Setting { path, before, set } => restore_setting(path, before, set.as_deref()),
    }
}

/// Restores the value of a setting, if it still has the value that the run set.
fn restore_setting(path: &Path, before: &str, set: Option<&str>) -> Result<(), NotUndone> {
    // An absent device has no settings.
    let Ok(now) = fs::read_to_string(path) else {
        return Ok(());
    };
    // Files with a line for each device, such as io.cost.model, have no line for an absent one.
    let device = |line: &str| line.split(' ').next().filter(|key| key.contains(':')).map(str::to_owned);
    let now = match set.and_then(device) {
        Some(key) => match now.lines().find(|line| device(line).as_ref() == Some(&key)) {
            Some(line) => line.trim().to_owned(),
            None => return Ok(()),
        },
        None => selected(&now).to_owned(),
    };
    // The kernel's own values follow `ctrl=auto`.
    if now == before || (before.contains("ctrl=auto") && now.starts_with(before)) {
        return Ok(());
    }
    if set.is_some_and(|set| set != now) {
        return Err(NotUndone::Left(format!(
            "{}: left as it is: its value {now:?} is not the run's",
            path.display()
        )));
    }
    match weir_host::sysfs::write(path, before) {
        Err(error) if path.exists() && error.raw_os_error() != Some(libc::ENODEV) => {
            Err(NotUndone::Failed(format!("cannot write {before:?} to {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use weir_daemons::Group;

    use super::*;

    #[test]
    fn changes_are_undone_backwards_and_the_journal_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, undone) = Journal::begin(folder.path()).unwrap();
        assert!(undone.is_empty());
        let setting = folder.path().join("setting");
        fs::write(&setting, "1\n").unwrap();
        journal.set(&setting, "2").unwrap();
        journal.set(&setting, "3").unwrap();
        let outer = folder.path().join("outer");
        for path in [outer.clone(), outer.join("inner")] {
            journal.note(Change::Folder(path.clone())).unwrap();
            fs::create_dir(path).unwrap();
        }
        assert_eq!(journal.undo(), Vec::<String>::new());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        assert!(!outer.exists() && !folder.path().join(NAME).exists());
    }

    #[test]
    fn a_setting_that_somebody_changed_since_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (one, lines) = (folder.path().join("one"), folder.path().join("lines"));
        fs::write(&one, "1\n").unwrap();
        fs::write(&lines, "8:0 ctrl=auto rbps=9\n8:16 ctrl=user a=2\n").unwrap();
        let (mut journal, _) = Journal::begin(folder.path()).unwrap();
        journal.set(&one, "2").unwrap();
        let line = |device: &str| Change::Setting {
            path: lines.clone(),
            before: format!("{device} ctrl=auto"),
            set: Some(format!("{device} ctrl=user a=1")),
        };
        // The first is as before, the second is somebody's, the third is gone.
        for device in ["8:0", "8:16", "8:32"] {
            journal.note(line(device)).unwrap();
        }
        fs::write(&one, "7\n").unwrap();
        let left = journal.undo();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0].contains("ctrl=user a=2") && left[1].contains("\"7\""), "{left:?}");
        assert_eq!(fs::read_to_string(&one).unwrap(), "7\n");
        assert_eq!(fs::read_to_string(&lines).unwrap().lines().count(), 2);
    }

    #[test]
    fn what_a_dead_run_left_is_undone_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let partial = folder.path().join("x.partial");
        fs::create_dir(&partial).unwrap();
        // This process lives, but did not start at that tick: the pid was used again.
        let changes = vec![Change::Partial(partial.clone())];
        let content = Content { run: Identity { started_ticks: u64::MAX, ..Identity::own() }, changes };
        fs::write(folder.path().join(NAME), serde_json::to_vec(&content).unwrap()).unwrap();
        let (_, undone) = Journal::begin(folder.path()).unwrap();
        assert_eq!(undone.len(), 1);
        assert!(!partial.exists());
    }

    #[test]
    fn a_limit_that_a_dead_run_set_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::of_state(folder.path()).within("server");
        if group.make().is_err() || group.limit_memory(64 << 20).is_err() {
            eprintln!("skipped: needs root and control groups with the memory controller");
            return;
        }
        let changes = vec![Change::MemoryLimit { group: group.clone(), before_bytes: None }];
        let content = Content { run: Identity { started_ticks: u64::MAX, ..Identity::own() }, changes };
        fs::write(folder.path().join(NAME), serde_json::to_vec(&content).unwrap()).unwrap();
        assert_eq!(recover(folder.path()).unwrap().undone.len(), 1);
        assert_eq!(group.memory().unwrap().limit_bytes, None);
        group.remove().unwrap();
    }

    #[test]
    fn a_living_run_is_not_disturbed() {
        let folder = tempfile::tempdir().unwrap();
        // Another process than this one, of which it is known that it lives.
        let pid = std::os::unix::process::parent_id();
        let content = Content { run: Identity::of(pid).unwrap(), changes: Vec::new() };
        fs::write(folder.path().join(NAME), serde_json::to_vec(&content).unwrap()).unwrap();
        assert!(Journal::begin(folder.path()).is_err_and(|error| error.is_refusal()));
    }
}
