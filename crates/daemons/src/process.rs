//! Processes recorded on disk before `exec`, and stopped by PID and start time.
//!
//! Two files below `STATE/processes/` record a process: `NAME.json` holds the command and is written first; `NAME.stat` holds the
//! line of `/proc/PID/stat`, which the process writes itself before `exec`. A running process is therefore always recorded, and PID
//! and start time identify it uniquely.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Gid, Pid, Uid, WaitOptions, setsid};
use rustix::thread::{
    LinkNameSpaceType, move_into_link_name_space, set_thread_gid, set_thread_groups, set_thread_uid,
};
use serde::{Deserialize, Serialize};
pub use weir_host::process::Identity;
use weir_host::{mounts, record};

use crate::Error;
use crate::cgroup::{Group, enter};
use crate::server_storage::unmount;
use crate::user::User;

/// Lifetime of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For a run: the next run ends it if this one was killed.
    Run,
    /// For a study: `weir clean` ends it.
    Study,
}

/// Command and environment of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Its name in the state folder.
    pub name: String,
    /// Lifetime.
    pub scope: Scope,
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// Network namespace; the caller's if absent.
    pub namespace: Option<PathBuf>,
    /// User; root if absent.
    pub user: Option<User>,
    /// Log file of standard output and standard error; opened for appending.
    pub log: PathBuf,
    /// The signal that stops it.
    pub stop_signal: i32,
    /// Time from that signal to SIGKILL, ms.
    pub stop_limit_ms: u64,
    /// Mount point, if it is the client of a file system: unmounting ends it.
    #[serde(default)]
    pub mounts: Option<PathBuf>,
    /// Control group of the process and its children.
    pub group: Group,
}

/// A process that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The command.
    pub launch: Launch,
    /// PID and start time; absent if it was killed before it wrote them.
    pub identity: Option<Identity>,
}

fn folder(state: &Path) -> PathBuf {
    state.join("processes")
}

fn file(state: &Path, name: &str, kind: &str) -> PathBuf {
    folder(state).join(format!("{name}.{kind}"))
}

/// Starts a process.
///
/// # Errors
/// A running process has the name, or the program cannot be started.
pub fn start(state: &Path, launch: &Launch) -> Result<Identity, Error> {
    if let Some(known) = find(state, &launch.name)? {
        if known.identity.is_some_and(Identity::is_alive) {
            return Err(Error::Refused(format!(
                "process `{}` is already running. Stop it first, or give another name",
                launch.name
            )));
        }
        stop(state, &known)?;
    }
    fs::create_dir_all(folder(state)).map_err(Error::io("cannot make", &folder(state)))?;
    let description = file(state, &launch.name, "json");
    let write = || {
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&description)?;
        file.write_all(&serde_json::to_vec_pretty(launch)?)
    };
    write().map_err(Error::io("cannot write", &description))?;
    let started = launch.group.make().and_then(|()| spawn(state, launch));
    if started.is_err() {
        forget(state, &launch.name);
        let _ = launch.group.remove();
    }
    started
}

fn spawn(state: &Path, launch: &Launch) -> Result<Identity, Error> {
    let log = File::options().append(true).create(true).mode(0o600).open(&launch.log);
    let log = log.map_err(Error::io("cannot write", &launch.log))?;
    // Some programs open /dev/stderr as that user.
    if let Some(user) = &launch.user {
        user.own(&launch.log)?;
    }
    let words = log.try_clone().map_err(Error::io("cannot write", &launch.log))?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .current_dir(&launch.folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(words);
    let entry = Entry::new(state, launch)?;
    // SAFETY: between fork and exec only system calls are made, on memory that was laid out before.
    unsafe { command.pre_exec(move || entry.enter()) };
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Failed(format!("{}: not installed", launch.program.display())),
        _ => Error::Failed(format!("{}: {error}", launch.program.display())),
    })?;
    let written = find(state, &launch.name)?.and_then(|found| found.identity);
    written.filter(|found| found.pid == child.id()).ok_or_else(|| {
        Error::Failed(format!(
            "{}: process {} did not record itself in the state folder",
            launch.name,
            child.id()
        ))
    })
}

/// Steps between fork and exec, prepared before the fork.
struct Entry {
    stat: CString,
    namespace: Option<File>,
    member_files: Vec<CString>,
    user: Option<User>,
}

impl Entry {
    fn new(state: &Path, launch: &Launch) -> Result<Self, Error> {
        let text = |path: &Path| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|_| Error::Refused(format!("{path:?} holds a NUL")))
        };
        let open = |path: &PathBuf| File::open(path).map_err(Error::io("cannot open namespace", path));
        Ok(Entry {
            stat: text(&file(state, &launch.name, "stat"))?,
            namespace: launch.namespace.as_ref().map(open).transpose()?,
            member_files: launch
                .group
                .member_files()
                .iter()
                .map(|file| text(file))
                .collect::<Result<_, _>>()?,
            user: launch.user.clone(),
        })
    }

    /// Only system calls: after a fork, locks of other threads stay locked.
    fn enter(&self) -> io::Result<()> {
        let mut line = [0u8; 1024];
        let from = open(c"/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let length = rustix::io::read(from, &mut line)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let to = open(self.stat.as_c_str(), flags, Mode::RUSR | Mode::WUSR)?;
        rustix::io::write(to, &line[..length])?;
        for file in &self.member_files {
            enter(file)?;
        }
        if let Some(namespace) = &self.namespace {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        }
        // Signals of a terminal must not reach the daemon.
        setsid()?;
        if let Some(user) = &self.user {
            // The new process has one thread.
            let gid = Gid::from_raw(user.gid);
            set_thread_groups(&[gid])?;
            set_thread_gid(gid)?;
            set_thread_uid(Uid::from_raw(user.uid))?;
        }
        Ok(())
    }
}

/// A process by name.
///
/// # Errors
/// The record is damaged.
pub fn find(state: &Path, name: &str) -> Result<Option<Process>, Error> {
    let description = file(state, name, "json");
    let advice = "Look at the process that it names, then remove the file";
    let Some(launch) = record::read(&description, advice)? else { return Ok(None) };
    let stat = fs::read_to_string(file(state, name, "stat")).unwrap_or_default();
    Ok(Some(Process { launch, identity: Identity::from_stat(&stat) }))
}

/// All processes that are recorded, the last started first.
///
/// # Errors
/// A record is damaged.
pub fn all(state: &Path) -> Result<Vec<Process>, Error> {
    let entries = fs::read_dir(folder(state)).into_iter().flatten().flatten();
    let names =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()));
    let mut found = Vec::new();
    for name in names {
        found.extend(find(state, &name)?);
    }
    found.sort_by_key(|process| std::cmp::Reverse(process.identity.map(|found| found.started_ticks)));
    Ok(found)
}

/// Stops a process: signal, SIGKILL after the limit, SIGKILL for the rest of its control group; then removes the record. Returns how
/// it ended, or `None` if it did not run.
///
/// # Errors
/// One of its mounts is in use, or a part of its group cannot be removed.
pub fn stop(state: &Path, process: &Process) -> Result<Option<Ended>, Error> {
    let launch = &process.launch;
    let limit = Duration::from_millis(launch.stop_limit_ms);
    let mut ended = None;
    if let Some(point) = &launch.mounts {
        unmount_client(point, &launch.name)?;
    }
    if let Some(identity) = process.identity {
        // An unmounted client writes out its data and ends by itself.
        if launch.mounts.is_some() && launch.stop_signal != libc::SIGKILL {
            gone_within(identity, limit);
        }
        if identity.is_alive() {
            signal(identity, launch.stop_signal);
            let killed = !gone_within(identity, limit);
            if killed {
                signal(identity, libc::SIGKILL);
                gone_within(identity, Duration::from_secs(5));
            }
            ended = Some(Ended { pid: identity.pid, killed });
        }
        reap(identity.pid);
    }
    launch.group.remove()?;
    forget(state, &launch.name);
    Ok(ended)
}

/// Unmounts the FUSE mount of a client. A mount of another type stays.
fn unmount_client(point: &Path, name: &str) -> Result<(), Error> {
    match mounts::at(point)?.map(|mount| mount.fs_type) {
        Some(found) if !found.starts_with("fuse") => Err(Error::Failed(format!(
            "{}: {found} is mounted there, which is not what {name} mounted: it is left; unmount it yourself, then again",
            point.display()
        ))),
        _ => unmount(point),
    }
}

/// How a process was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Its PID.
    pub pid: u32,
    /// Whether SIGKILL was needed.
    pub killed: bool,
}

fn gone_within(identity: Identity, limit: Duration) -> bool {
    let began = Instant::now();
    while identity.is_alive() {
        if began.elapsed() > limit {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

/// Reaps the process if it is a child of this one.
fn reap(pid: u32) {
    let _ = rustix::process::waitpid(Pid::from_raw(pid as i32), WaitOptions::NOHANG);
}

fn signal(identity: Identity, signal: i32) {
    // One that has ended needs no signal.
    let _ = identity.open().map(|handle| handle.signal(signal));
}

fn forget(state: &Path, name: &str) {
    for kind in ["stat", "json"] {
        let _ = fs::remove_file(file(state, name, kind));
    }
    let _ = fs::remove_dir(folder(state));
}

/// Stops all processes of a scope, last started first. Returns a line for each.
///
/// # Errors
/// The record is damaged, or something cannot be ended.
pub fn stop_all(state: &Path, which: impl Fn(Scope) -> bool) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for process in all(state)?.iter().filter(|process| which(process.launch.scope)) {
        let how = match stop(state, process)? {
            Some(Ended { pid, killed }) => format!(" (pid {pid}{})", if killed { ", killed" } else { "" }),
            None => " (had ended)".to_owned(),
        };
        lines.push(format!("process {}{how}", process.launch.name));
    }
    Ok(lines)
}
