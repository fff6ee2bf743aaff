//! Private trace instance: recorded on disk before it is made, and always removed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_host::durable;
use weir_host::process::Identity;

use super::tracefs::Tracefs;
use crate::Error;

/// Folder of the records in a state folder.
const FOLDER: &str = "tracing";
const PREFIX: &str = "weir-";
const TOKEN_BYTES: usize = 16;

/// Time limit for removal: an instance stays busy shortly after its last file was closed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of a file of the instance.
const READ_BYTES: usize = 1 << 14;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Record of an instance.
#[derive(Debug, Serialize, Deserialize)]
struct Owned {
    /// Name of its folder in `instances`.
    instance: String,
    /// The process that records with it.
    owner: Identity,
}

/// The instance; dropping it removes the instance.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    record: PathBuf,
    /// Own mount of tracefs, if it was not mounted.
    _tracefs: Tracefs,
}

impl Instance {
    /// Makes an instance, which `state` records first.
    ///
    /// # Errors
    /// The state folder cannot be written; tracefs cannot be reached or makes no instances.
    pub(super) fn make(state: &Path) -> Result<Self, Error> {
        let tracefs = Tracefs::open()?;
        let folder = state.join(FOLDER);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let owned = Owned { instance: format!("{PREFIX}{}", token()?), owner: Identity::own() };
        let record = folder.join(format!("{}.json", owned.instance));
        let text = serde_json::to_vec(&owned).map_err(|error| Error::Ftrace(error.to_string()))?;
        durable::write(&record, &text, 0o600)?;
        let path = tracefs.root.join("instances").join(&owned.instance);
        if let Err(error) = fs::create_dir(&path) {
            let _ = fs::remove_file(&record);
            return Err(Error::Ftrace(format!("this kernel makes no trace instance: {error}")));
        }
        Ok(Instance { path, record, _tracefs: tracefs })
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Content of one of its files.
    pub(super) fn read(&self, file: &str) -> Result<String, Error> {
        let path = self.path.join(file);
        let mut text = Vec::with_capacity(READ_BYTES);
        // One read: some files of tracefs, such as `header_page`, are empty at a second read.
        let mut chunk = vec![0; READ_BYTES];
        let mut open = File::open(&path).map_err(Error::io(&path))?;
        loop {
            match open.read(&mut chunk).map_err(Error::io(&path))? {
                0 => break,
                length => text.extend_from_slice(&chunk[..length]),
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes one of its files, which only this process uses.
    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        fs::write(self.path.join(file), value)
            .map_err(|error| Error::Ftrace(format!("writing {value:?} to {file} was refused: {error}")))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance that stays keeps its record, for the next start or `weir clean`.
        if remove(&self.path).is_ok() {
            let _ = fs::remove_file(&self.record);
        }
    }
}

/// Removes an instance, if it exists.
fn remove(path: &Path) -> Result<(), std::io::Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() != ErrorKind::ResourceBusy || Instant::now() >= deadline => {
                return Err(error);
            }
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Removes the trace instances of dead processes, by their records in a state folder, and returns their names. Instances of
/// living processes stay.
///
/// # Errors
/// An instance cannot be removed, or a record is damaged: the text lists all. The others were removed.
pub fn recover(state: &Path) -> Result<Vec<String>, Error> {
    let folder = state.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io(&folder))?,
    };
    // Of processes that died while writing a record, before they made the instance.
    durable::remove_unfinished(&folder)?;
    let (mut undone, mut failures) = (Vec::new(), Vec::new());
    for entry in entries {
        let path = entry.map_err(Error::io(&folder))?.path();
        match recover_one(&path) {
            Ok(Some(name)) => undone.push(format!("trace instance {name}")),
            Ok(None) => {}
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() { Ok(undone) } else { Err(Error::Ftrace(failures.join("; "))) }
}

fn recover_one(record: &Path) -> Result<Option<String>, Error> {
    let name = record.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(expected) = name.strip_suffix(".json").filter(|name| is_name(name)) else { return Ok(None) };
    let text = match fs::read(record) {
        // Its process has just removed the record.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(Error::io(record))?,
    };
    let owned: Owned = serde_json::from_slice(&text)
        .ok()
        .filter(|owned: &Owned| owned.instance == expected)
        .ok_or_else(|| {
            Error::Ftrace(format!(
                "{}: not a record of a trace instance. Remove the instance {expected}, if it exists, then this file",
                record.display()
            ))
        })?;
    if owned.owner.is_alive() {
        return Ok(None);
    }
    let tracefs = Tracefs::open()?;
    let instance = tracefs.root.join("instances").join(&owned.instance);
    let was_there = instance.exists();
    remove(&instance).map_err(|error| {
        Error::Ftrace(format!(
            "the trace instance {expected} cannot be removed: {error}. Close what reads it"
        ))
    })?;
    fs::remove_file(record).map_err(Error::io(record))?;
    Ok(was_there.then_some(owned.instance))
}

fn is_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|token| {
        token.len() == 2 * TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn token() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; TOKEN_BYTES];
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).map_err(Error::io(source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "weir-00112233445566778899aabbccddeeff";

    fn state_with(file: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join(FOLDER)).unwrap();
        let path = state.path().join(FOLDER).join(file);
        fs::write(&path, text).unwrap();
        (state, path)
    }

    fn record(owner: Identity) -> String {
        serde_json::to_string(&Owned { instance: NAME.to_owned(), owner }).unwrap()
    }

    #[test]
    fn a_state_without_records_has_nothing_to_undo() {
        let state = tempfile::tempdir().unwrap();
        assert!(recover(state.path()).unwrap().is_empty());
        assert!(recover(&state.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn the_record_of_a_living_process_stays() {
        let (state, path) = state_with(&format!("{NAME}.json"), &record(Identity::own()));
        assert!(recover(state.path()).unwrap().is_empty());
        assert!(path.exists());
    }

    #[test]
    fn a_record_that_names_another_folder_is_refused_and_kept() {
        for text in ["", "{}", &record(Identity::own()).replace(NAME, "../../../tmp")] {
            let (state, path) = state_with(&format!("{NAME}.json"), text);
            assert!(recover(state.path()).unwrap_err().to_string().contains(NAME));
            assert!(path.exists());
        }
    }

    #[test]
    fn files_of_others_in_the_folder_are_left() {
        for name in ["settings.json", "weir-1.json", "notes", "weir-xyz.partial"] {
            let (state, path) = state_with(name, "x");
            assert!(recover(state.path()).unwrap().is_empty());
            assert!(path.exists(), "{name}");
        }
    }

    #[test]
    fn a_record_that_a_dead_process_did_not_finish_is_removed() {
        // No process has a pid above the kernel's limit of 4 Mi.
        let (state, path) = state_with(&format!("{NAME}.json.4194305.partial"), "{");
        assert!(recover(state.path()).unwrap().is_empty());
        assert!(!path.exists());
    }
}
