//! Processes by pid and start time, so that a pid that was given to another process is never mistaken.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A process that can be told apart from later ones with the same pid.
#[derive(Debug)]
pub(crate) struct Process {
    descriptor: OwnedFd,
}

/// When process `pid` started, in clock ticks since boot: field 22 of /proc/PID/stat. `None` if there is no such process or it
/// has ended and only waits to be reaped.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end; the state is field 3.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl Process {
    /// Takes hold of process `pid`, if it is the one that started at `started_ticks`.
    pub fn find(pid: u32, started_ticks: u64) -> Option<Self> {
        // SAFETY: takes numbers only; returns a new descriptor or -1.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: the descriptor is new and nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        // Compared while the descriptor holds the process: from here on it cannot be another one.
        (start_ticks(pid) == Some(started_ticks)).then_some(Self { descriptor })
    }

    /// Sends a signal.
    pub fn signal(&self, signal: libc::c_int) -> io::Result<()> {
        let descriptor = self.descriptor.as_raw_fd();
        // SAFETY: no signal information is passed; the descriptor is open.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                descriptor,
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for its end. True if it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, timeout.as_millis().min(i32::MAX as u128) as libc::c_int) > 0 }
    }
}

/// 64 random bits, in hexadecimal.
pub(crate) fn random_token() -> io::Result<String> {
    let mut bytes = [0; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_time() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = start_ticks(child.id()).unwrap();
        assert!(Process::find(child.id(), started + 1).is_none());
        let process = Process::find(child.id(), started).unwrap();
        assert!(!process.wait(Duration::ZERO));
        process.signal(libc::SIGKILL).unwrap();
        assert!(process.wait(Duration::from_secs(5)));
        assert_eq!(start_ticks(child.id()), None, "a zombie counts as gone");
        child.wait().unwrap();
        assert!(Process::find(child.id(), started).is_none());
    }
}
