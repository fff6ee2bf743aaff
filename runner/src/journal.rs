//! What a run has changed on this host, so that it can be undone: by the run itself, or after a crash.
//!
//! Each change is written down before it is made. Undoing goes backwards through the list and takes back
//! exactly what is on it, by path; a step that is already undone is passed over.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use weir_services::{Group, io_controller};

use crate::Error;
use crate::{array, mount, run_folder, tree};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// A folder was made; it is removed if it is empty.
    Folder(PathBuf),
    /// A file system was mounted here.
    Mounted(PathBuf),
    /// Listed disks were made one, striped.
    Assembled(PathBuf),
    /// A listed disk was formatted; its signature is wiped, so that it is blank for the next run.
    Formatted(PathBuf),
    /// A setting below /sys had this value.
    Setting {
        /// The file.
        path: PathBuf,
        /// What it said before.
        before: String,
    },
    /// A folder of results that is not complete.
    Partial(PathBuf),
    /// A folder with all that is in it was made on a file system that outlives the run.
    Tree(PathBuf),
    /// A process of this name was started in this state folder: the client of a network file system, or a service.
    Process {
        /// The state folder.
        state: PathBuf,
        /// Its name there.
        name: String,
    },
    /// A control group was made.
    Group(Group),
    /// A control group that outlives the run had this memory limit.
    MemoryLimit {
        /// The group.
        group: Group,
        /// Its limit before; none if absent.
        before_bytes: Option<u64>,
    },
    /// The kernel's controller of disks was moved to version 2 of control groups, as this state folder has it.
    IoController(PathBuf),
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    pid: u32,
    started_ticks: u64,
    changes: Vec<Change>,
}

/// The journal of the run that is being carried out on this host: there is at most one.
pub(crate) struct Journal {
    path: PathBuf,
    content: Content,
}

impl Journal {
    /// Begins a journal. What a dead run left behind is undone first; the texts say what that was.
    ///
    /// # Errors
    /// Another run is being carried out, or the folder cannot be written.
    pub(crate) fn begin(folder: &Path) -> Result<(Self, Vec<String>), Error> {
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        let undone = recover(folder)?;
        let pid = std::process::id();
        let content = Content { pid, started_ticks: started_ticks(pid).unwrap_or(0), changes: Vec::new() };
        let journal = Journal { path: folder.join(NAME), content };
        journal.save()?;
        Ok((journal, undone))
    }

    /// Notes a change that is about to be made.
    ///
    /// # Errors
    /// The journal cannot be written; then the change must not be made.
    pub(crate) fn note(&mut self, change: Change) -> Result<(), Error> {
        self.content.changes.push(change);
        self.save()
    }

    /// Notes what a setting says, then sets it. A setting that already says so is left alone.
    ///
    /// # Errors
    /// The setting cannot be read or written.
    pub(crate) fn set(&mut self, path: &Path, value: &str) -> Result<(), Error> {
        let before = fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
        let before = selected(before.trim()).to_owned();
        if before != value {
            let known =
                |change: &Change| matches!(change, Change::Setting { path: known, .. } if known == path);
            if !self.content.changes.iter().any(known) {
                self.note(Change::Setting { path: path.to_owned(), before })?;
            }
            fs::write(path, value).map_err(Error::io(&format!("cannot write {value:?} to"), path))?;
        }
        Ok(())
    }

    /// Undoes everything and ends the journal. Returns what could not be undone.
    pub(crate) fn undo(mut self) -> Vec<String> {
        let failures = undo(&mut self.content.changes);
        if self.content.changes.is_empty() {
            let _ = fs::remove_file(&self.path);
        } else {
            let _ = self.save();
        }
        failures
    }

    fn save(&self) -> Result<(), Error> {
        let fail = Error::io("cannot write", &self.path);
        let partial = self.path.with_extension("partial");
        let write = || {
            let mut file: File =
                File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
            file.write_all(&serde_json::to_vec(&self.content)?)?;
            fs::rename(&partial, &self.path)
        };
        write().map_err(fail)
    }
}

const NAME: &str = "run.json";

/// Undoes what a dead run left behind; says what that was.
///
/// # Errors
/// The run is alive, or something of it cannot be undone.
pub fn recover(folder: &Path) -> Result<Vec<String>, Error> {
    let path = folder.join(NAME);
    let Ok(text) = fs::read(&path) else { return Ok(Vec::new()) };
    let Ok(mut content) = serde_json::from_slice::<Content>(&text) else {
        return Err(Error::Refused(format!(
            "{}: is damaged; look at what it lists, then remove it",
            path.display()
        )));
    };
    let alive = started_ticks(content.pid) == Some(content.started_ticks);
    if alive && content.pid != std::process::id() {
        let message =
            format!("another run is being carried out on this host (pid {}); wait for it", content.pid);
        return Err(Error::Refused(message));
    }
    let texts = content.changes.iter().map(|change| format!("{change:?}")).collect();
    let failures = undo(&mut content.changes);
    if !failures.is_empty() {
        let list = failures.join("; ");
        return Err(Error::Failed(format!("a run that died left things that cannot be undone: {list}")));
    }
    fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
    Ok(texts)
}

/// Undoes changes from the last to the first; those that failed stay in the list.
fn undo(changes: &mut Vec<Change>) -> Vec<String> {
    let mut failures = Vec::new();
    let mut kept = Vec::new();
    while let Some(change) = changes.pop() {
        if let Err(error) = take_back(&change) {
            failures.push(error);
            kept.push(change);
        }
    }
    kept.reverse();
    *changes = kept;
    failures
}

fn take_back(change: &Change) -> Result<(), String> {
    match change {
        Change::Folder(path) => match fs::remove_dir(path) {
            Err(error) if path.exists() => Err(format!("cannot remove {}: {error}", path.display())),
            _ => Ok(()),
        },
        Change::Mounted(path) => mount::unmount(path),
        Change::Assembled(path) => array::stop(path),
        Change::Process { state, name } => {
            weir_services::stop(state, name).map(|_| ()).map_err(|error| error.to_string())
        }
        Change::Group(group) => group.remove().map(|_| ()).map_err(|error| error.to_string()),
        Change::IoController(state) => {
            io_controller::move_back(state).map(|_| ()).map_err(|error| error.to_string())
        }
        Change::Tree(path) => tree::remove(path).map_err(|error| error.to_string()),
        Change::MemoryLimit { group, before_bytes } => {
            group.restore_memory(*before_bytes).map_err(|error| error.to_string())
        }
        Change::Partial(path) => run_folder::take_back(path),
        Change::Formatted(path) => {
            let done = Command::new("wipefs").args(["--all", "--quiet"]).arg(path).output();
            match done {
                Ok(output) if output.status.success() => Ok(()),
                Ok(output) => Err(format!(
                    "wipefs {}: {}",
                    path.display(),
                    String::from_utf8_lossy(&output.stderr).trim()
                )),
                Err(error) => Err(format!("wipefs {}: {error}", path.display())),
            }
        }
        Change::Setting { path, before } => match fs::write(path, before) {
            // A device that is gone has no settings to restore; a killed one may refuse.
            Err(error)
                if path.exists() && !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENODEV)) =>
            {
                Err(format!("cannot write {before:?} to {}: {error}", path.display()))
            }
            _ => Ok(()),
        },
    }
}

/// `b` of `a [b] c`, the way /sys shows a choice; anything else as it is.
pub(crate) fn selected(text: &str) -> &str {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

/// When a process started, in clock ticks since boot: with its pid this names it for good.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22; the name in field 2 may hold blanks, but ends with the last parenthesis.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_what_stands_in_brackets() {
        assert_eq!(selected("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(selected("128"), "128");
    }

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
    fn what_a_dead_run_left_is_undone_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let partial = folder.path().join("x.partial");
        fs::create_dir(&partial).unwrap();
        // This process lives, but did not start at that tick: the pid was used again.
        let changes = vec![Change::Partial(partial.clone())];
        let content = Content { pid: std::process::id(), started_ticks: u64::MAX, changes };
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
        let content = Content { pid: std::process::id(), started_ticks: u64::MAX, changes };
        fs::write(folder.path().join(NAME), serde_json::to_vec(&content).unwrap()).unwrap();
        assert_eq!(recover(folder.path()).unwrap().len(), 1);
        assert_eq!(group.memory().unwrap().limit_bytes, None);
        group.remove().unwrap();
    }

    #[test]
    fn a_living_run_is_not_disturbed() {
        let folder = tempfile::tempdir().unwrap();
        // Another process than this one, of which it is known that it lives.
        let pid = std::os::unix::process::parent_id();
        let content = Content { pid, started_ticks: started_ticks(pid).unwrap(), changes: Vec::new() };
        fs::write(folder.path().join(NAME), serde_json::to_vec(&content).unwrap()).unwrap();
        assert!(Journal::begin(folder.path()).is_err_and(|error| error.is_refusal()));
    }
}
