//! Move of the kernel's I/O controller from cgroup v1 (`blkio`) to cgroup v2 (`io`), and back.
//!
//! A kernel that has version 1 mounted keeps the controller there. A mount that is in use cannot be unmounted. Remounting it
//! with another controller in its place (mount(2), `MS_REMOUNT`) frees the controller for version 2. This changes the whole
//! machine: the state folder records the move before it is made, and the record undoes it.
//! The kernel allows the move only if the top has no child group. A removed group counts while a request or a worker thread
//! refers to it: with a loop device that stays up to 120 s after the last request.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};
use serde::{Deserialize, Serialize};
use weir_host::mounts::{self, Mount};

use crate::Error;
use crate::io_group::{IoVersion, io_version};

/// Record of the move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    /// Where version 1 has it mounted.
    mount: PathBuf,
    /// The controllers of that mount, such as `blkio`.
    controllers: String,
    /// Unused controller that takes their place.
    stand_in: String,
    /// Flags of the mount.
    flags: u64,
    /// The top of version 2.
    two: PathBuf,
}

/// How a request to move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// It was moved now.
    Done,
    /// It was in version 2 already: nothing was changed, and nothing is to be undone.
    Unneeded,
}

/// Longer than a loop device's idle workers keep a group: the kernel checks them every 60 s and ends those that were idle
/// for 60 s.
const PATIENCE: Duration = Duration::from_secs(150);
/// It is moved back although others had groups meanwhile: each group's minute begins at its end.
const PATIENCE_BACK: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Rarely used controllers of version 1 without a counterpart in version 2.
const STAND_INS: [&str; 2] = ["net_prio", "net_cls"];

fn record(state: &Path) -> PathBuf {
    state.join("io-controller.json")
}

/// Whether this state folder records a move that must be undone.
pub fn is_moved(state: &Path) -> bool {
    record(state).exists()
}

/// Moves it to version 2 and writes down in the state folder how to move it back.
///
/// # Errors
/// The controller cannot be moved here, or other groups use it.
pub fn move_to_two(state: &Path) -> Result<Move, Error> {
    if io_version() == Some(IoVersion::Two) {
        return Ok(Move::Unneeded);
    }
    // A process may have been killed between record and move.
    move_back(state)?;
    let mounts = mounts::own()?;
    let table = fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let moved = plan(&mounts, &table).map_err(Error::Refused)?;
    fs::create_dir_all(state).map_err(Error::io("cannot make", state))?;
    let path = record(state);
    let write = || {
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        serde_json::to_writer(&mut file, &moved)?;
        file.sync_all()
    };
    write().map_err(Error::io("cannot write", &path))?;
    let done = remount(&moved, &moved.stand_in, "blkio", PATIENCE).and_then(|()| {
        if io_version() == Some(IoVersion::Two) {
            Ok(())
        } else {
            Err(Error::Failed(
                "the kernel took blkio off version 1, and did not give it to version 2".to_owned(),
            ))
        }
    });
    if let Err(error) = done {
        move_back(state)?;
        return Err(error);
    }
    Ok(Move::Done)
}

/// Moves it back, if this state folder records a move; returns whether it did.
///
/// # Errors
/// Another program has groups with the controller. The record stays for the next attempt.
pub fn move_back(state: &Path) -> Result<bool, Error> {
    let path = record(state);
    let Ok(text) = fs::read(&path) else { return Ok(false) };
    let Ok(moved) = serde_json::from_slice::<Moved>(&text) else {
        // Written before any change: an incomplete record means that nothing was changed.
        fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
        return Ok(false);
    };
    if io_version() != Some(IoVersion::One) {
        let control = moved.two.join("cgroup.subtree_control");
        let _ = fs::write(&control, "-io");
        remount(&moved, &moved.controllers, "io", PATIENCE_BACK)?;
    }
    fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
    Ok(true)
}

/// Mounts version 1's tree again with other controllers. Waits until the groups of those are gone.
fn remount(moved: &Moved, controllers: &str, whose: &str, patience: Duration) -> Result<(), Error> {
    let flags = MountFlags::from_bits_retain(u32::try_from(moved.flags).unwrap_or(0));
    let began = Instant::now();
    let mut has_waited = false;
    loop {
        let Err(error) = mount_remount(&moved.mount, flags, controllers) else { return Ok(()) };
        if error != Errno::BUSY || began.elapsed() > patience {
            let text = format!("cannot mount {} with {controllers}", moved.mount.display());
            return Err(if error == Errno::BUSY {
                Error::Failed(format!(
                    "{text}: there are still control groups with {whose} that are not gone after {} s: end what is in \
                     them, then try again",
                    patience.as_secs()
                ))
            } else {
                Error::Failed(format!("{text}: {error}"))
            });
        }
        if !has_waited {
            eprintln!(
                "waiting until the kernel has given up the control groups with {whose} (up to {} s)",
                patience.as_secs()
            );
            has_waited = true;
        }
        sleep(POLL_INTERVAL);
    }
}

/// Plan of the move, from the tables of mounts and of controllers.
fn plan(mounts: &[Mount], controllers: &str) -> Result<Moved, String> {
    let mut one = None;
    let mut two = None;
    for mount in mounts {
        match mount.fs_type.as_str() {
            "cgroup2" => two = Some(mount.point.clone()),
            "cgroup" if mount.has_option("blkio") => one = Some(mount),
            _ => {}
        }
    }
    let two = two
        .ok_or("version 2 of control groups is not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified")?;
    let one = one.ok_or("the controller of disks is with neither version of control groups")?;
    let mount = one.point.clone();
    let known = |name: &str| {
        controllers
            .lines()
            .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
            .find(|fields| fields.first() == Some(&name))
    };
    let of_mount: Vec<&str> = one.super_options.split(',').filter(|option| known(option).is_some()).collect();
    if of_mount != ["blkio"] {
        return Err(format!(
            "{} has {} together: only a blkio that is mounted by itself can be moved",
            mount.display(),
            of_mount.join(",")
        ));
    }
    // With hierarchy 0 it is not mounted anywhere; the last field is 1 if it is enabled.
    let is_free = |name: &&str| {
        known(name).is_some_and(|fields| fields.get(1) == Some(&"0") && fields.get(3) == Some(&"1"))
    };
    let stand_in = STAND_INS
        .into_iter()
        .find(|name| is_free(name))
        .ok_or_else(|| format!("none of {} is free to stand in for blkio meanwhile", STAND_INS.join(", ")))?;
    let flag = |option| match option {
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "relatime" => MountFlags::RELATIME,
        "ro" => MountFlags::RDONLY,
        _ => MountFlags::empty(),
    };
    let flags = one.options.split(',').map(flag).collect::<MountFlags>().bits().into();
    Ok(Moved { mount, controllers: "blkio".to_owned(), stand_in: stand_in.to_owned(), flags, two })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "1 0 0:1 / /c/memory rw - cgroup cgroup rw,memory\n\
        1 0 0:2 / /c/blkio rw,nosuid,nodev,noexec,relatime - cgroup cgroup rw,blkio\n\
        1 0 0:3 / /c/unified rw - cgroup2 cgroup2 rw\n";
    const TABLE: &str = "#subsys_name hierarchy num_cgroups enabled\nblkio 7 1 1\nmemory 4 205 1\nnet_cls 0 12 1\nnet_prio 0 12 1\n";

    fn plan(mounts: &str, controllers: &str) -> Result<Moved, String> {
        super::plan(&mounts::parse(mounts.as_bytes()), controllers)
    }

    #[test]
    fn a_blkio_by_itself_can_be_moved() {
        let moved = plan(MOUNTS, TABLE).unwrap();
        assert_eq!((moved.mount.to_str().unwrap(), moved.two.to_str().unwrap()), ("/c/blkio", "/c/unified"));
        assert_eq!((moved.controllers.as_str(), moved.stand_in.as_str()), ("blkio", "net_prio"));
        // The record of an earlier weir has these numbers.
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RELATIME;
        assert_eq!(moved.flags, flags);
        let other = plan(MOUNTS, &TABLE.replace("net_prio 0", "net_prio 9")).unwrap();
        assert_eq!(other.stand_in, "net_cls");
    }

    #[test]
    fn what_cannot_be_moved_says_why() {
        let together = MOUNTS.replace("rw,blkio", "rw,blkio,memory");
        assert!(plan(&together, TABLE).unwrap_err().contains("together"));
        assert!(plan(&MOUNTS.replace("cgroup2", "none"), TABLE).unwrap_err().contains("version 2"));
        assert!(plan(MOUNTS, "blkio 7 1 1\nnet_cls 0 12 0\n").unwrap_err().contains("free"));
        assert!(plan("", TABLE).is_err());
    }

    #[test]
    fn what_was_not_moved_is_not_moved_back() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!move_back(folder.path()).unwrap());
        // Truncated during the write: nothing was changed.
        fs::write(record(folder.path()), "{\"mount\":").unwrap();
        assert!(!move_back(folder.path()).unwrap());
        assert!(!is_moved(folder.path()));
    }
}
