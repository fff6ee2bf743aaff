//! Changing the settings of tracing so that they are put back whatever happens.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tracefs::Tracefs;
use crate::Error;

const DIRECTORY: &str = "/run/weir/tracing";
const STATE_FILE: &str = "/run/weir/tracing/settings.json";
const LOCK_FILE: &str = "/run/weir/tracing/lock";

/// A file of the kernel and what it said before it was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Setting {
    /// In the tracing file system if it is relative.
    path: PathBuf,
    before: String,
}

/// Settings that were changed, in order. They are put back, last first, when it is dropped.
#[derive(Debug)]
pub(super) struct Settings {
    tracefs: Tracefs,
    changed: Vec<Setting>,
    /// Held for as long as tracing is ours.
    _lock: File,
}

impl Settings {
    /// Takes the host's tracing for this process, and puts back what a process that died had changed.
    ///
    /// # Errors
    /// Another process of weir is tracing, or the tracing file system cannot be reached.
    pub(super) fn take() -> Result<Self, Error> {
        let tracefs = Tracefs::open()?;
        let directory = Path::new(DIRECTORY);
        fs::create_dir_all(directory).map_err(Error::io(directory))?;
        let path = Path::new(LOCK_FILE);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(Error::io(path))?;
        // SAFETY: the descriptor is open; flock touches no memory.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return Err(Error::Ftrace(format!(
                "another weir is tracing on this host ({LOCK_FILE} is locked)"
            )));
        }
        let left_behind: Vec<Setting> = fs::read_to_string(STATE_FILE)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        put_back(&tracefs, &left_behind);
        let _ = fs::remove_file(STATE_FILE);
        Ok(Settings { tracefs, changed: Vec::new(), _lock: lock })
    }

    /// Root of the tracing file system.
    pub(super) fn root(&self) -> &Path {
        &self.tracefs.root
    }

    /// Notes durably that a setting said `before`, and changes it; `path` is absolute, or in the tracing file
    /// system.
    pub(super) fn change(&mut self, path: &Path, before: &str, value: &str) -> Result<(), Error> {
        self.changed.push(Setting { path: path.to_owned(), before: before.to_owned() });
        let text = serde_json::to_string(&self.changed).unwrap_or_default();
        let state = Path::new(STATE_FILE);
        File::create(state)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .map_err(Error::io(state))?;
        fs::write(self.root().join(path), value).map_err(|error| {
            Error::Ftrace(format!("writing {value:?} to {} was refused: {error}", path.display()))
        })
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        put_back(&self.tracefs, &self.changed);
        let _ = fs::remove_file(STATE_FILE);
    }
}

/// Puts settings back, last first. A device may be gone by now: then there is nothing to put back.
fn put_back(tracefs: &Tracefs, changed: &[Setting]) {
    for setting in changed.iter().rev() {
        let _ = fs::write(tracefs.root.join(&setting.path), &setting.before);
    }
}
