//! Removal of a served device in any state.
//!
//! Each object is found by the record in the state file and checked before it is touched: a process by PID and start time, the
//! loop device by number and token, the FUSE mount by mount point and token. Nothing is found by name alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_host::mounts::{self, Mount, UnmountFlags, unmount};

use crate::control::Control;
use crate::engine::scheduled::ExportKind;
use crate::error::Error;
use crate::exports::loop_device::detach;
use crate::exports::ublk;
use crate::lifecycle::ownership::GivenBack;
use crate::sockets::remove_socket;
use crate::state::{BlockDevice, State, states};
use crate::wait::wait_until;

/// Timeout for a file system to write back and unmount, with service times off.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the server's control socket.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the server to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// Report of [`down()`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownReport {
    /// One line for each action, in order; empty if there was nothing to do.
    pub done: Vec<String>,
    /// One line for each object that could not be removed, with the reason. The state file then stays.
    pub left: Vec<String>,
}

/// Removes the device of a state file: unmounts its file systems, detaches the loop device, ends the server, unmounts FUSE,
/// removes socket and state file. Does nothing if the state file does not exist.
///
/// # Errors
/// [`Error::System`] or [`Error::State`] if the state file, or the list of mounts, cannot be read.
pub fn down(state_file: &Path) -> Result<DownReport, Error> {
    let mut report = DownReport::default();
    let state = match State::load(state_file) {
        Err(Error::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => return Ok(report),
        state => state?,
    };
    let process = state.process();
    if process.is_some() && hangs(&state) {
        abort(&state);
        report.done.push(format!("process {} does not answer: aborted all I/O", state.pid));
    }

    // The server may have died before it recorded the device.
    let unrecorded = state.unrecorded_loop();
    let recorded = state.block_devices().filter(|device| state.is_ours(device));
    let devices: Vec<&BlockDevice> = recorded.chain(&unrecorded).collect();
    for &device in &devices {
        unmount_all(device, &state, &mut report)?;
        if ublk::is_of_driver(device) {
            continue;
        }
        let done = guarded(&state, &mut report, "detaching", {
            let (device, token) = (device.clone(), state.token.clone());
            move || detach(&device, &token)
        });
        if done == Some(true) {
            report.done.push(format!("detached {}", device.path.display()));
        }
    }

    if let Some(process) = process {
        let ended = process.signal(libc::SIGTERM).is_ok() && process.wait(TERM_TIMEOUT);
        if ended {
            report.done.push(format!("ended process {}", state.pid));
        } else {
            let _ = process.signal(libc::SIGKILL);
            abort(&state);
            match process.wait(TERM_TIMEOUT) {
                true => report.done.push(format!("killed process {}", state.pid)),
                false => report.left.push(format!("process {} does not end", state.pid)),
            }
        }
    }

    if let Some(Mount { point: mountpoint, .. }) = fuse_mount(&state)? {
        // A dead or ending server does not answer; the abort may already have unmounted.
        abort(&state);
        let result = unmount(&mountpoint, UnmountFlags::DETACH);
        let text = mountpoint.display();
        match (fuse_mount(&state)?, result) {
            (Some(_), Err(error)) => report.left.push(format!("{text} is still mounted: {error}")),
            (Some(_), Ok(())) => report.left.push(format!("{text} is mounted more than once")),
            (None, _) => report.done.push(format!("unmounted {text}")),
        }
    }
    let still_open = |device: String| {
        format!("{device} is still open in some process; the kernel detaches it when that closes it")
    };
    if let (true, Some(mark)) = (state.spec.has_export(ExportKind::Ublk), state.mark()) {
        // All devices with the mark, recorded or not: the server may have died before it recorded one.
        let (gone, open) = ublk::remove_marked(mark).map_err(Error::system("take ublk devices away"))?;
        report.done.extend(gone.into_iter().map(|device| format!("removed {device}")));
        report.left.extend(open.into_iter().map(still_open));
    }
    for device in devices.into_iter().filter(|device| !ublk::is_of_driver(device)) {
        if !wait_until(Duration::from_secs(2), || !state.is_ours(device)) {
            report.left.push(still_open(device.path.display().to_string()));
        }
    }
    if report.left.is_empty() {
        match state.give_back_loop() {
            Ok(GivenBack::Removed) => report.done.push("removed the loop device".to_owned()),
            Ok(GivenBack::Restored) => report.done.push("restored the settings of its queue".to_owned()),
            Ok(GivenBack::Nothing) => {}
            Err(error) => report.left.push(format!("its queue keeps its settings: {error}")),
        }
    }
    if report.left.is_empty() {
        let _ = fs::remove_dir(&state.mountpoint);
        remove_socket(&state.nbd_socket()).map_err(Error::path("remove", &state.nbd_socket()))?;
        remove_socket(&state.socket).map_err(Error::path("remove", &state.socket))?;
        remove_if_there(state_file)?;
    }
    Ok(report)
}

/// Turns service times off for writeback. True if the server accepts a connection but does not answer.
fn hangs(state: &State) -> bool {
    let asked = Control::connect_within(state, ANSWER_TIMEOUT).and_then(|mut control| control.timing(false));
    let Err(Error::System { error, .. }) = asked else { return false };
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A state file, with the report of its removal.
pub type DownOutcome = (PathBuf, Result<DownReport, Error>);

/// [`down()`] for every state file in a folder, also after a failure.
///
/// # Errors
/// [`Error::System`] if the folder cannot be read.
pub fn down_all(state_dir: &Path) -> Result<Vec<DownOutcome>, Error> {
    weir_host::durable::remove_unfinished(state_dir).map_err(Error::host)?;
    Ok(states(state_dir)?.into_iter().map(|file| (file.clone(), down(&file))).collect())
}

/// Unmounts every file system on the device.
fn unmount_all(device: &BlockDevice, state: &State, report: &mut DownReport) -> Result<(), Error> {
    let mounts = mounts::of_device(device.number()).map_err(Error::host)?;
    for Mount { point: mountpoint, fs_type, .. } in mounts {
        let place = mountpoint.clone();
        let result = guarded(state, report, "unmounting", move || unmount(&place, UnmountFlags::empty()));
        let text = format!("{fs_type} at {}", mountpoint.display());
        match result {
            Some(Ok(())) => report.done.push(format!("unmounted {text}")),
            // Already unmounted.
            Some(Err(error)) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Some(Err(error)) => match unmount(&mountpoint, UnmountFlags::DETACH) {
                Ok(()) => report.done.push(format!("unmounted {text} lazily ({error})")),
                Err(error) => report.left.push(format!("{text} is still mounted: {error}")),
            },
            None => report.left.push(format!("{text}: unmounting does not end")),
        }
    }
    Ok(())
}

/// Runs work that may wait for I/O of the device in a thread. At a timeout all I/O of the device is made to fail. `None` if
/// the work does not end even then.
fn guarded<T: Send + 'static>(
    state: &State,
    report: &mut DownReport,
    what: &str,
    action: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(action()));
    if let Ok(value) = receiver.recv_timeout(UNMOUNT_TIMEOUT) {
        return Some(value);
    }
    report.done.push(format!("{what} took more than {} s: aborted all I/O", UNMOUNT_TIMEOUT.as_secs()));
    abort(state);
    receiver.recv_timeout(UNMOUNT_TIMEOUT).ok()
}

/// Makes every present and later request fail: of the FUSE file with an error that the loop device converts to EIO; of ublk
/// devices by ending their server.
fn abort(state: &State) {
    if state.spec.has_export(ExportKind::Ublk)
        && let Some(process) = state.process()
    {
        let _ = process.signal(libc::SIGKILL);
    }
    let Ok(Some(mount)) = fuse_mount(state) else { return };
    // A connection has the number of its mount's device. Where fusectl is not mounted, a forced unmount aborts as well.
    let file = format!("/sys/fs/fuse/connections/{}/abort", mount.device.1);
    if fs::write(file, "1").is_err() {
        let _ = unmount(&mount.point, UnmountFlags::FORCE | UnmountFlags::DETACH);
    }
}

fn fuse_mount(state: &State) -> Result<Option<Mount>, Error> {
    let mounts = mounts::own().map_err(Error::host)?;
    let is_ours = |mount: &Mount| mount.point == state.mountpoint && mount.source == Path::new(&state.token);
    Ok(mounts.into_iter().rfind(is_ours))
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::path("remove", path)(error)),
        _ => Ok(()),
    }
}
