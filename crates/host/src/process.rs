//! Process identity: pid and start time. The kernel reuses a pid.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use serde::{Deserialize, Serialize};

/// A process that cannot be confused with a later one of the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub started_ticks: u64,
}

impl Identity {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        look(pid).map_or(Identity { pid, started_ticks: 0 }, |(_, identity)| identity)
    }

    /// The living process of a pid; `None` if there is none.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        look(pid).filter(|(state, _)| runs(*state)).map(|(_, identity)| identity)
    }

    /// The process that a line of `/proc/PID/stat` describes.
    #[must_use]
    pub fn from_stat(stat: &str) -> Option<Self> {
        parse(stat).map(|(_, identity)| identity)
    }

    /// Whether it runs. A zombie does not: it has ended and only waits to be reaped.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }

    /// Opens a handle to it; `None` if it does not run.
    #[must_use]
    pub fn open(self) -> Option<Handle> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = Handle(pidfd_open(pid, PidfdFlags::empty()).ok()?);
        // Compared while the handle keeps the pid from another process.
        self.is_alive().then_some(handle)
    }
}

/// A handle to one process (pidfd): a signal can reach no other.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// Sends a signal, by its number.
    ///
    /// # Errors
    /// There is no such signal, it is not permitted, or the process has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
        Ok(pidfd_send_signal(&self.0, signal)?)
    }

    /// Waits until the process has ended; `false` if it runs on for longer than the limit.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).ok();
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], limit.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

/// Makes the kernel kill a program when the thread that starts it ends, also by `kill -9` (`PR_SET_PDEATHSIG`): no child of weir
/// continues to write without weir.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: prctl and getppid are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // If the parent ended before prctl, no signal comes.
            let is_child = getppid().is_some_and(|now| u32::try_from(now.as_raw_pid()) == Ok(parent));
            if is_child { Ok(()) } else { Err(Errno::SRCH.into()) }
        });
    }
}

fn runs(state: char) -> bool {
    !matches!(state, 'Z' | 'X' | 'x')
}

/// State letter and identity.
fn look(pid: u32) -> Option<(char, Identity)> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<(char, Identity)> {
    // proc_pid_stat(5): fields 1, 3 and 22. The name in field 2 may hold blanks and parentheses, but ends with the last one.
    let pid = stat.split(' ').next()?.parse().ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, Identity { pid, started_ticks: fields.nth(18)?.parse().ok()? }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(parse(stat), Some(('S', Identity { pid: 7, started_ticks: 4242 })));
        assert_eq!(parse("42 (a"), None);
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_not() {
        let own = Identity::own();
        assert!(own.is_alive());
        assert!(!Identity { started_ticks: own.started_ticks + 1, ..own }.is_alive());
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        // Not reaped: it stays in the process table.
        while look(pid).is_some_and(|(state, _)| runs(state)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (state, identity) = look(pid).unwrap();
        assert_eq!(state, 'Z');
        assert!(!identity.is_alive());
        child.wait().unwrap();
    }

    #[test]
    fn a_child_ends_with_a_parent_that_is_killed() {
        const PARENT: &str = "WEIR_PARENT_TO_KILL";
        if std::env::var_os(PARENT).is_some() {
            let mut command = Command::new("sleep");
            end_with_parent(command.arg("600"));
            let mut child = command.spawn().unwrap();
            eprintln!("{}", child.id());
            child.wait().unwrap();
            return;
        }
        let name = "process::tests::a_child_ends_with_a_parent_that_is_killed";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let arguments = ["--exact", name, "--nocapture"];
        let mut parent = command.args(arguments).env(PARENT, "yes").stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(parent.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let child = Identity::of(line.trim().parse().unwrap()).unwrap().open().unwrap();
        assert!(!child.wait(Duration::ZERO));
        parent.kill().unwrap();
        assert!(child.wait(Duration::from_secs(10)));
        parent.wait().unwrap();
    }

    #[test]
    fn a_handle_reaches_one_process_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        assert!(Identity { started_ticks: identity.started_ticks + 1, ..identity }.open().is_none());
        let handle = identity.open().unwrap();
        assert!(!handle.wait(Duration::ZERO));
        assert!(handle.signal(12345).is_err());
        handle.signal(libc::SIGKILL).unwrap();
        assert!(handle.wait(Duration::from_secs(5)));
        assert_eq!(Identity::of(child.id()), None, "a zombie counts as gone");
        child.wait().unwrap();
        assert!(identity.open().is_none());
    }
}
