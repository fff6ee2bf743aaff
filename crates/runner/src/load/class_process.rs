//! Process that carries out one class, and ends with the run.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use weir_daemons::Group;
use weir_host::process::end_with_parent;

use crate::Error;

/// Interval between checks whether the process has ended or the run is interrupted.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A process that carries out one class. It is killed when it is dropped, and by the kernel when this process dies.
pub(crate) struct ClassProcess {
    pub(crate) child: Child,
}

impl ClassProcess {
    /// Starts a process, in the class's control group if it has one.
    ///
    /// # Errors
    /// The group refuses the process, or it cannot be started; `failed` makes the message.
    pub(crate) fn start(
        command: &mut Command,
        group: Option<&Group>,
        failed: impl FnOnce(io::Error) -> Error,
    ) -> Result<Self, Error> {
        if let Some(group) = group {
            group.admit(command).map_err(Error::failed)?;
        }
        end_with_parent(command);
        Ok(ClassProcess { child: command.spawn().map_err(failed)? })
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// The run is interrupted, or the operating system's error, with the program's name.
    pub(crate) fn wait(&mut self, name: &str, stop: &AtomicBool) -> Result<ExitStatus, Error> {
        let failed = |error: io::Error| Error::Failed(format!("{name}: {error}"));
        loop {
            let ended = self.child.try_wait().map_err(failed)?;
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Failed("interrupted; undone".to_owned()));
            }
            if let Some(status) = ended {
                return Ok(status);
            }
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for ClassProcess {
    /// Ends the process: when another class fails, undo must find the devices unused.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
