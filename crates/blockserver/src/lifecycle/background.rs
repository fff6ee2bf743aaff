//! Start of a server in its own process.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setsid;

use crate::error::Error;
use crate::spec::ServeSpec;
use crate::state::{State, state_path};

/// Timeout of a start, which may make a large backing file or clean up after a dead server.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `command`, which must call [`serve`](crate::serve) for `spec` in `state_dir`, in its own session with its output
/// in `NAME.log` there, and returns the state when the block device is ready.
///
/// # Errors
/// [`Error::Running`] if a server of that name is. [`Error::NotStarted`] with the end of the log if the process ends first, or does not get ready in 30 s (it is killed then).
pub fn serve_in_background(spec: &ServeSpec, state_dir: &Path, mut command: Command) -> Result<State, Error> {
    let state_file = state_path(state_dir, &spec.name);
    if let Ok(other) = State::load(&state_file)
        && other.process().is_some()
    {
        return Err(Error::Running { name: spec.name.clone(), pid: other.pid, state: state_file });
    }
    fs::create_dir_all(state_dir).map_err(Error::path("make the folder", state_dir))?;
    let log_file = state_dir.join(format!("{}.log", spec.name));
    let log = (OpenOptions::new().create(true).append(true).mode(0o600).open(&log_file))
        .map_err(Error::path("open", &log_file))?;
    let log_start = log.metadata().map_or(0, |meta| meta.len()) as usize;
    let second = log.try_clone().map_err(Error::path("open", &log_file))?;
    command.stdin(Stdio::null()).stdout(log).stderr(second).current_dir("/");
    // SAFETY: setsid is safe between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(setsid().map(drop)?));
    }
    let mut child = command.spawn().map_err(Error::system("start the server's process"))?;
    wait_until_ready(spec, state_dir, &mut child).map_err(|message| {
        let text = fs::read(&log_file).unwrap_or_default();
        let said = String::from_utf8_lossy(text.get(log_start..).unwrap_or_default()).trim().to_owned();
        let message = if said.is_empty() { message } else { said };
        Error::NotStarted { name: spec.name.clone(), message }
    })
}

/// Waits until `child` serves `spec` in `state_dir`.
///
/// # Errors
/// How the process ended, or that it took too long and was killed.
pub fn wait_until_ready(spec: &ServeSpec, state_dir: &Path, child: &mut Child) -> Result<State, String> {
    let state_file = state_path(state_dir, &spec.name);
    let end = Instant::now() + START_TIMEOUT;
    loop {
        if let Ok(state) = State::load(&state_file)
            && state.pid == child.id()
            && state.ready
        {
            return Ok(state);
        }
        match child.try_wait() {
            Ok(Some(status)) => return Err(format!("its process ended ({status})")),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let _ = child.kill();
                return Err(format!("not ready after {} s", START_TIMEOUT.as_secs()));
            }
            Err(error) => return Err(format!("its process cannot be watched: {error}")),
        }
    }
}
