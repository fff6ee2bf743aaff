//! Journal of a run's changes of this host: each change is on disk before it is made.
//!
//! The run itself, the next run or `weir clean` undoes the changes ([`crate::run::undo`]).

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_daemons::Group;
use weir_host::device::Written;
use weir_host::durable;
use weir_host::lock::FolderLock;
use weir_host::process::Identity;
use weir_host::sysfs::selected;

use crate::Error;

/// A change of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// A folder was made; undo removes it if it is empty.
    Folder(PathBuf),
    /// A file system was mounted.
    Mounted {
        /// Mount point.
        point: PathBuf,
        /// Source, as the mount table names it.
        source: PathBuf,
    },
    /// Disks of the inventory were assembled to a striped array.
    Assembled {
        /// Device node of the array.
        node: PathBuf,
        /// UUID of the array.
        uuid: String,
    },
    /// A disk of the inventory was written; undo makes it blank.
    Formatted(Written),
    /// A setting below /sys was changed.
    Setting {
        /// The file.
        path: PathBuf,
        /// Value before.
        before: String,
        /// Value that the run set; absent in journals of earlier versions.
        #[serde(default)]
        set: Option<String>,
    },
    /// An incomplete results folder.
    Partial(PathBuf),
    /// A folder with its content was made on a file system that outlives the run.
    Tree(PathBuf),
    /// A process of this name was started in this state folder: the client of a network file system, or a daemon.
    Process {
        /// The state folder.
        state: PathBuf,
        /// Name of the process there.
        name: String,
    },
    /// A control group was made.
    Group(Group),
    /// A control group that outlives the run had this memory limit.
    MemoryLimit {
        /// The group.
        group: Group,
        /// Limit before; absent if there was none.
        before_bytes: Option<u64>,
    },
    /// The kernel's I/O controller was moved to control groups version 2, as this state folder records.
    IoController(PathBuf),
}

/// Content of the journal's file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Content {
    #[serde(flatten)]
    pub(crate) run: Identity,
    pub(crate) changes: Vec<Change>,
}

/// Journal of the run that is being carried out on this host; there is at most one.
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
    /// Refuses a second run on this host.
    pub(crate) _lock: FolderLock,
}

impl Journal {
    /// Records a change before it is made.
    ///
    /// # Errors
    /// The journal cannot be written; then the change must not be made.
    pub(crate) fn note(&mut self, change: Change) -> Result<(), Error> {
        self.note_all([change])
    }

    /// [`Journal::note`] of several changes at once.
    pub(crate) fn note_all(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<(), Error> {
        self.content.changes.extend(changes);
        self.save()
    }

    /// Records the value of a setting, then sets it, unless it has the value already.
    ///
    /// # Errors
    /// The setting cannot be read or written.
    pub(crate) fn set(&mut self, path: &Path, value: &str) -> Result<(), Error> {
        let now = read_setting(path).map_err(Error::io("cannot read", path))?;
        if now != value {
            let known = |change: &Change| matches!(change, Change::Setting { path: of, .. } if of == path);
            if self.content.changes.iter().any(known) {
                self.note_read_back(path, value.to_owned())?;
            } else {
                let set = Some(value.to_owned());
                self.note(Change::Setting { path: path.to_owned(), before: now, set })?;
            }
            weir_host::sysfs::write(path, value)
                .map_err(Error::io(&format!("cannot write {value:?} to"), path))?;
            let says = read_setting(path).map_err(Error::io("cannot read", path))?;
            self.note_read_back(path, says)?;
        }
        Ok(())
    }

    /// Records the value read back from a changed setting: the kernel may have rounded it.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(crate) fn note_read_back(&mut self, path: &Path, says: String) -> Result<(), Error> {
        let of_path = self.content.changes.iter_mut().rev().find_map(|change| match change {
            Change::Setting { path: known, set, .. } if known == path => Some(set),
            _ => None,
        });
        match of_path {
            Some(set) if set.as_ref() != Some(&says) => {
                *set = Some(says);
                self.save()
            }
            _ => Ok(()),
        }
    }

    /// Writes the journal, and syncs it to disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let text = serde_json::to_vec(&self.content).map_err(Error::failed)?;
        durable::write(&self.path, &text, 0o600).map_err(Error::from)
    }
}

/// Value of a setting.
fn read_setting(path: &Path) -> std::io::Result<String> {
    Ok(selected(&fs::read_to_string(path)?).to_owned())
}
