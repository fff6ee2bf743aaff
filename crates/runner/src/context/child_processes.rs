//! Child processes that a run waits for, such as mkfs and mount: they end with the run, and undo waits for them.
//!
//! Otherwise a mount(8) whose run was killed could mount after the run was undone. Each child inherits a lock on a file beside
//! the journal, shared with the run; the kernel drops the lock when the last child has ended.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use weir_host::process::{Identity, end_with_parent};

use crate::Error;

const NAME: &str = ".weir-children";

/// Time limit for children to end: a killed program ends only after its system call.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The lock of the run that this process carries out.
static LOCK: Mutex<Option<Arc<File>>> = Mutex::new(None);

fn path(state: &Path) -> PathBuf {
    state.join("journal").join(NAME)
}

/// Takes the lock for a run that begins.
///
/// # Errors
/// The state folder cannot be written, or programs of another run hold the lock.
pub(crate) fn hold(state: &Path) -> Result<(), Error> {
    let path = path(state);
    let file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io("cannot open", &path))?;
    serde_json::to_writer(&file, &Identity::own()).map_err(Error::failed)?;
    flock(&file, FlockOperation::NonBlockingLockShared)
        .map_err(|error| Error::io("cannot lock", &path)(error.into()))?;
    *LOCK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
    Ok(())
}

/// Makes a program end with this process. The program holds the run's lock until it ends.
pub(crate) fn tie(command: &mut Command) {
    end_with_parent(command);
    let Some(lock) = LOCK.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return };
    // SAFETY: fcntl is async-signal-safe.
    unsafe {
        // Close-on-exec is set by default, and cleared in the new process only.
        command.pre_exec(move || Ok(fcntl_setfd(&*lock, FdFlags::empty())?));
    }
}

/// Runs a command to its end, or to the end of the run; its standard error becomes the error.
///
/// # Errors
/// The command is not installed, or fails.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    tie(command);
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Failed(format!("{name}: not installed. Install the package that has it"))
        }
        _ => Error::Failed(format!("{name}: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Error::Failed(format!("{name} failed ({}): {}", output.status, words.trim())))
}

/// Waits until the programs of a killed run have ended. Returns at once while the run is alive.
///
/// # Errors
/// A program does not end.
pub fn wait_for_children(state: &Path) -> Result<(), Error> {
    wait_for(&path(state), PATIENCE)
}

fn wait_for(path: &Path, patience: Duration) -> Result<(), Error> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.map_err(Error::io("cannot read", path))?,
    };
    // A truncated record is of a run that had started no program.
    if serde_json::from_slice::<Identity>(&text).is_ok_and(Identity::is_alive) {
        return Ok(());
    }
    let file = File::open(path).map_err(Error::io("cannot open", path))?;
    let began = Instant::now();
    loop {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        if began.elapsed() > patience {
            return Err(Error::Failed(format!(
                "programs of a run that was killed have not ended after {} s. End them (fuser {} lists them), then try again",
                patience.as_secs(),
                path.display()
            )));
        }
        sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn programs_of_a_run_that_died_are_waited_for() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join("journal")).unwrap();
        wait_for_children(state.path()).unwrap();
        hold(state.path()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; read -r _"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        tie(&mut command);
        let mut child = command.spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 7]).unwrap();
        // This process lives, so its programs are none of the caller's.
        wait_for_children(state.path()).unwrap();

        // As if the run had died: its end of the lock is closed, and its record is of another start.
        drop(command);
        *LOCK.lock().unwrap() = None;
        let dead = Identity { started_ticks: 1, ..Identity::own() };
        fs::write(path(state.path()), serde_json::to_vec(&dead).unwrap()).unwrap();
        let refused = wait_for(&path(state.path()), Duration::from_millis(100)).unwrap_err().to_string();
        assert!(refused.contains(NAME), "{refused}");
        drop(child.stdin.take());
        wait_for_children(state.path()).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_command_that_is_absent_or_fails_says_so() {
        assert!(run(&mut Command::new("mkfs.nonesuch")).unwrap_err().to_string().contains("not installed"));
        assert!(run(&mut Command::new("false")).unwrap_err().to_string().contains("failed"));
    }
}
