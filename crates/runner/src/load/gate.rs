//! Gate at which the clients of fio wait: they are started before a run, and begin at the time that the study gives them.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::{sleep, spawn};
use std::time::Duration;

use weir_daemons::Group;
use weir_host::clock;

use crate::Error;

/// Name of the pipe, in the folder of the job.
const PIPE: &str = "go";
/// What a client prints when it is there.
const READY: &str = "ready";

/// A named pipe, from which each client reads a line before it sends its first request.
pub(crate) struct Gate {
    folder: PathBuf,
    pipe: File,
}

impl Gate {
    /// Makes the pipe in the folder of a job, and opens it so that opening it does not block the clients.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn make(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(PIPE);
        let text = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::Refused(format!("{}: holds a NUL", path.display())))?;
        // SAFETY: `text` is a string that ends with a NUL.
        if unsafe { libc::mkfifo(text.as_ptr(), 0o600) } != 0 {
            return Err(Error::io("cannot make", &path)(io::Error::last_os_error()));
        }
        let pipe =
            OpenOptions::new().read(true).write(true).open(&path).map_err(Error::io("cannot open", &path))?;
        Ok(Gate { folder: folder.to_owned(), pipe })
    }

    /// Value of fio's option `exec_prerun`: the client's process joins its control group, if it has one, and waits.
    pub(crate) fn command(group: Option<&Group>) -> String {
        // fio sends the output to a file, and gives the client up if the shell fails, as it does when the pipe has no writer
        // any more. A semicolon would begin a comment.
        let join = group.map_or_else(String::new, |group| {
            let files: Vec<_> = group.member_files().iter().map(|file| file.display().to_string()).collect();
            // The parent of the shell is the client's process.
            format!("echo $PPID | tee {} >/dev/null && ", files.join(" "))
        });
        format!("({join}echo {READY} && read go <{PIPE})")
    }

    /// Whether a client waits.
    ///
    /// # Errors
    /// It could not join its control group.
    pub(crate) fn has(&self, client: u32) -> Result<bool, Error> {
        let words = fs::read_to_string(self.folder.join(output(client))).unwrap_or_default();
        // A line is whole when it ends. `tee` prints nothing but errors.
        match words.strip_suffix('\n') {
            None => Ok(false),
            Some(READY) => Ok(true),
            Some(errors) => {
                let errors = errors.replace('\n', "; ");
                Err(Error::Failed(format!("client {client} did not move to its control group: {errors}")))
            }
        }
    }

    /// Lets so many clients begin at an instant of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// The pipe cannot be shared with the thread that waits for the instant.
    pub(crate) fn open_at(&self, at_ns: i64, clients: u32) -> Result<(), Error> {
        let mut pipe = self.pipe.try_clone().map_err(Error::failed)?;
        let lines = vec![b'\n'; clients as usize];
        spawn(move || {
            while let Ok(left_ns @ 1..) = u64::try_from(at_ns - clock::monotonic_ns()) {
                sleep(Duration::from_nanos(left_ns));
            }
            // It cannot fail: this process has the pipe open for reading too.
            let _ = pipe.write_all(&lines);
        });
        Ok(())
    }

    /// Removes the pipe and what so many clients printed.
    pub(crate) fn remove(&self, clients: u32) {
        let _ = fs::remove_file(self.folder.join(PIPE));
        for client in 0..clients {
            let _ = fs::remove_file(self.folder.join(output(client)));
        }
    }
}

/// File of what fio's `exec_prerun` of a client prints.
fn output(client: u32) -> String {
    format!("{client}.prerun.txt")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    #[test]
    fn clients_wait_for_the_instant_and_end_without_a_gate() {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::make(folder.path()).unwrap();
        let client = |number| {
            let command = format!("{} > {} 2>&1", Gate::command(None), output(number));
            Command::new("sh").args(["-c", &command]).current_dir(folder.path()).stdin(Stdio::null()).spawn()
        };
        let mut clients: Vec<_> = (0..3).map(|number| client(number).unwrap()).collect();
        let began = Instant::now();
        while (0..3).any(|number| !gate.has(number).unwrap()) {
            assert!(began.elapsed() < Duration::from_secs(30));
            sleep(Duration::from_millis(2));
        }
        assert!(clients.iter_mut().all(|client| client.try_wait().unwrap().is_none()));
        // Two lines let two pass.
        let at_ns = clock::monotonic_ns() + 200_000_000;
        gate.open_at(at_ns, 2).unwrap();
        while clients.iter_mut().filter_map(|client| client.try_wait().unwrap()).count() < 2 {
            assert!(began.elapsed() < Duration::from_secs(60));
            sleep(Duration::from_millis(1));
        }
        assert!(clock::monotonic_ns() >= at_ns);
        gate.remove(3);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(gate);
        let ended: Vec<bool> = clients.iter_mut().map(|client| client.wait().unwrap().success()).collect();
        assert_eq!(ended.iter().filter(|success| **success).count(), 2);
    }

    #[test]
    fn a_client_that_cannot_join_its_group_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::make(folder.path()).unwrap();
        assert!(!gate.has(0).unwrap());
        fs::write(folder.path().join(output(0)), "tee: x: Permission denied\ntee: y: No space").unwrap();
        assert!(!gate.has(0).unwrap(), "the line has no end yet");
        fs::write(folder.path().join(output(0)), "tee: x: Permission denied\n").unwrap();
        assert!(gate.has(0).unwrap_err().to_string().contains("Permission denied"));
    }
}
