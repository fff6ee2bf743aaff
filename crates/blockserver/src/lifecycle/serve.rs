//! Server in the foreground, from claiming its name to removal of its devices.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use rustix::process::configure_io_flusher_behavior;
use weir_host::mounts::{self, UnmountFlags};
use weir_host::process::Identity;

use crate::control::server as control_server;
use crate::engine::Engines;
use crate::engine::scheduled::{ExportKind, Layout};
use crate::error::Error;
use crate::exports::fuse::{DiskFile, FILE_NAME, MAX_REQUEST_BYTES};
use crate::exports::loop_device::{self, missing_capability};
use crate::exports::nbd::{Address, Listener};
use crate::exports::queue;
use crate::exports::ublk;
use crate::lifecycle::down::{down, remove_if_there};
use crate::sockets::remove_socket;
use crate::spec::ServeSpec;
use crate::state::{AddedLoop, BlockDevice, ClassDevice, State, state_path};
use crate::wait::wait_until;

/// Serves a device until SIGTERM, SIGINT or SIGHUP, and then removes it.
///
/// `ready` is called once, with the state, when the block device can be used. The state file is `NAME.json` in `state_dir`,
/// which is made if absent; `log` is recorded in it. Objects of a dead server of the same name are removed first.
///
/// # Errors
/// [`Error::Spec`], [`Error::Profile`], [`Error::Unable`], [`Error::Running`]: nothing was touched. [`Error::System`]:
/// everything that was made is removed.
pub fn serve(
    spec: &ServeSpec,
    state_dir: &Path,
    log: Option<PathBuf>,
    ready: impl FnOnce(&State),
) -> Result<(), Error> {
    spec.check(&spec.name)?;
    if let Some(reason) = unable(spec) {
        return Err(Error::Unable(reason));
    }
    // Before any thread is made: all threads inherit the mask, and only `wait_for_signal` receives the signals.
    let signals = block_signals();
    (DirBuilder::new().recursive(true).mode(0o700).create(state_dir))
        .map_err(Error::path("make the folder", state_dir))?;
    let state_dir = state_dir.canonicalize().map_err(Error::path("find", state_dir))?;
    let state_file = state_path(&state_dir, &spec.name);
    let mut state = claim(spec, &state_dir, &state_file, log)?;
    let served = run(&mut state, &state_file, &signals, ready);
    let finished = finish(&state, &state_file);
    served.and(finished)
}

/// 64 random bits, in hexadecimal.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; 8];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// Claims the state file, after removing the objects of a dead server of that name.
fn claim(spec: &ServeSpec, dir: &Path, state_file: &Path, log: Option<PathBuf>) -> Result<State, Error> {
    let Identity { pid, started_ticks } = Identity::own();
    let name = &spec.name;
    let mountpoint = dir.join(format!("{name}.mnt"));
    let state = State {
        spec: spec.clone(),
        pid,
        pid_started_ticks: started_ticks,
        token: format!("weir-{}", random_token().map_err(Error::system("read /dev/urandom"))?),
        file: mountpoint.join(FILE_NAME),
        mountpoint,
        socket: dir.join(format!("{name}.sock")),
        log,
        device: None,
        class_devices: Vec::new(),
        ready: false,
        added_loop: None,
        queue: None,
        nbd: None,
    };
    loop {
        match state.claim(state_file) {
            Ok(()) => return Ok(state),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::path("write the state file", state_file)(error)),
        }
        let other = State::load(state_file)?;
        if other.process().is_some() {
            return Err(Error::Running {
                name: name.clone(),
                pid: other.pid,
                state: state_file.to_path_buf(),
            });
        }
        for action in down(state_file)?.done {
            eprintln!("left by process {}: {action}", other.pid);
        }
    }
}

/// Makes all exports, reports readiness, and serves until a signal, or until another process unmounts the file system.
fn run(
    state: &mut State,
    state_file: &Path,
    signals: &libc::sigset_t,
    ready: impl FnOnce(&State),
) -> Result<(), Error> {
    let engines = Arc::new(Engines::new(&state.spec)?);
    // While it serves, this process must not wait for memory that is freed by writing to its own device.
    if configure_io_flusher_behavior(true).is_err() {
        eprintln!(
            "note: without CAP_SYS_RESOURCE the server cannot mark itself as an I/O flusher. Keep memory free"
        );
    }
    let threads = engines.start().map_err(Error::system("start a thread"))?;
    let control = Arc::clone(&engines);
    control_server::listen(&state.socket, control).map_err(Error::path("listen on", &state.socket))?;
    let nbd = listen_for_nbd(state, &engines)?;
    let session = has_file(&state.spec).then(|| mount(state, &engines)).transpose()?;

    let has_loop = state.spec.has_export(ExportKind::Loop);
    let attached = has_loop.then(|| attach_loop(state, state_file)).transpose();
    let outcome = attached.and_then(|device| {
        if let Some(device) = &device {
            record_loop(device, state, state_file)?;
            prepare_queue(device, queue::loop_depth(), &state.spec);
        }
        let served = start_ublk(state, &engines)?;
        state.ready = true;
        state.save(state_file).map_err(Error::path("write the state file", state_file))?;
        ready(state);
        wait_for_signal(signals, session.as_ref(), &served);
        Ok(served)
    });

    // The rest is written back without service times.
    engines.set_timing(false);
    drop(nbd);
    release_devices(state);
    // This removes ublk devices.
    let outcome = outcome.map(drop);
    let _ = mounts::unmount(&state.mountpoint, UnmountFlags::DETACH);
    if let Some(session) = &session
        && state.device.as_ref().is_none_or(|device| !loop_device::is_ours(device, &state.token))
    {
        // The file is unused: the kernel ends the session.
        wait_until(Duration::from_secs(5), || session.guard.is_finished());
    }
    engines.stop();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    outcome
}

/// Why this host cannot serve a specification; `None` if it can.
pub fn unable(spec: &ServeSpec) -> Option<String> {
    // NBD alone needs no kernel support.
    let without_file = || has_file(spec).then(missing_capability).flatten();
    let without_ublk = || spec.has_export(ExportKind::Ublk).then(ublk::missing).flatten();
    without_file().or_else(without_ublk)
}

fn has_file(spec: &ServeSpec) -> bool {
    spec.has_export(ExportKind::Loop) || spec.has_export(ExportKind::File)
}

/// Starts the NBD listener, if the specification has one, and records its address.
fn listen_for_nbd(state: &mut State, engines: &Engines) -> Result<Option<Listener>, Error> {
    let live = state.spec.live.as_ref().filter(|live| live.exports.contains(&ExportKind::Nbd));
    let (Some(live), Engines::Scheduled { exports, .. }) = (live, engines) else { return Ok(None) };
    let path = state.nbd_socket();
    let address = match live.nbd_address() {
        Ok(Some(address)) => Address::Loopback(address),
        Ok(None) => Address::Unix(path),
        Err(message) => {
            return Err(Error::Spec {
                file: state.spec.name.clone(),
                message: format!("field `live.nbd` {message}"),
            });
        }
    };
    if let Some(warning) = live.nbd_warning(&state.spec.name) {
        eprintln!("warning: {warning}");
    }
    let clients = live.nbd_connections as usize;
    let listener =
        Listener::start(&address, clients, Arc::new(exports.clone())).map_err(|error| match &address {
            Address::Unix(path) => Error::path("listen on", path)(error),
            Address::Loopback(address) => Error::system(format!("listen on {address}"))(error),
        })?;
    state.nbd = Some(listener.uri().to_owned());
    Ok(Some(listener))
}

/// Makes ublk block devices, if the specification has any, and records them: one for the whole, or one for each class.
fn start_ublk(state: &mut State, engines: &Engines) -> Result<Vec<ublk::Device>, Error> {
    let Engines::Scheduled { exports, .. } = engines else { return Ok(Vec::new()) };
    let (Some(mark), true) = (state.mark(), state.spec.has_export(ExportKind::Ublk)) else {
        return Ok(Vec::new());
    };
    let is_partitioned = state.spec.live.as_ref().is_some_and(|live| live.layout == Layout::Partitioned);
    let wanted = if is_partitioned { exports.as_slice() } else { &exports[..1] };
    let mut served = Vec::new();
    for export in wanted {
        let made = ublk::Device::start(export, mark)?;
        let device = made.device.clone();
        served.push(made);
        prepare_queue(&device, ublk::depth(), &state.spec);
        match is_partitioned {
            true => state.class_devices.push(ClassDevice { class: export.name.clone(), device }),
            false => state.device = Some(device),
        }
    }
    Ok(served)
}

/// Attaches the server's file to a loop device that is added to the host's, or to a free one if the kernel adds none.
///
/// The workers of an idle loop device keep the control groups of its last requests for up to two minutes. They end with the device.
fn attach_loop(state: &mut State, state_file: &Path) -> Result<BlockDevice, Error> {
    let mut number = 0;
    for _ in 0..loop_device::ATTEMPTS {
        number = loop_device::unused_number(number);
        let asked_unix_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        state.added_loop = Some(AddedLoop { number, asked_unix_ns, inode: None });
        state.save(state_file).map_err(Error::path("write the state file", state_file))?;
        match loop_device::add(number) {
            Ok(()) => {}
            // Another program was faster, or this one does not see all devices.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number += 1;
                continue;
            }
            Err(_) => break,
        }
        let added = AddedLoop { number, asked_unix_ns, inode: loop_device::inode(number) };
        match loop_device::attach(number, &state.file, &state.token) {
            Ok(Some(device)) => {
                state.added_loop = Some(added);
                return Ok(device);
            }
            Err(error @ Error::Unable(_)) => {
                loop_device::remove(&added);
                return Err(error);
            }
            // Without devtmpfs it has no node, or another program has taken it.
            Ok(None) | Err(_) => {
                loop_device::remove(&added);
                break;
            }
        }
    }
    state.added_loop = None;
    loop_device::attach_free(&state.file, &state.token)
}

/// Records a new loop device and its queue settings, before these are changed.
fn record_loop(device: &BlockDevice, state: &mut State, state_file: &Path) -> Result<(), Error> {
    state.device = Some(device.clone());
    let name = device.path.file_name().unwrap_or_default().to_string_lossy();
    state.queue = queue::QueueSettings::read(&name).ok();
    state.save(state_file).map_err(Error::path("write the state file", state_file))
}

fn prepare_queue(device: &BlockDevice, depth: u32, spec: &ServeSpec) {
    if let Err(error) = queue::prepare(device, depth, spec.is_disk()) {
        eprintln!("note: the queue of {} keeps old settings: {error}", device.path.display());
    }
}

fn mount(state: &State, engines: &Engines) -> Result<BackgroundSession, Error> {
    (DirBuilder::new().recursive(true).mode(0o700).create(&state.mountpoint))
        .map_err(Error::path("make the folder", &state.mountpoint))?;
    let mut config = Config::default();
    // Access is decided by the block device's permissions; the file belongs to root (mode 0600).
    config.acl = SessionACL::All;
    config.mount_options = vec![
        MountOption::FSName(state.token.clone()),
        MountOption::Subtype("weir".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::CUSTOM(format!("max_read={MAX_REQUEST_BYTES}")),
    ];
    fuser::spawn_mount(DiskFile::new(engines.file()), &state.mountpoint, &config)
        .map_err(Error::path("mount FUSE at", &state.mountpoint))
}

/// Unmounts the devices' file systems and detaches a loop device, in other processes: a process that waits for I/O of its own
/// device could not be killed.
fn release_devices(state: &State) {
    for device in state.block_devices().filter(|device| state.is_ours(device)) {
        for mount in mounts::of_device(device.number()).unwrap_or_default() {
            eprintln!("unmounting {}", mount.point.display());
            run_briefly(Command::new("umount").arg(&mount.point));
        }
        if !ublk::is_of_driver(device) {
            run_briefly(Command::new("losetup").arg("--detach").arg(&device.path));
            wait_until(Duration::from_secs(2), || !state.is_ours(device));
        }
    }
}

/// Removes the server's own files, unless the device is still in use: then the state file stays for `down`.
fn finish(state: &State, state_file: &Path) -> Result<(), Error> {
    let busy = state.block_devices().find(|device| state.is_ours(device));
    if let Some(device) = busy {
        eprintln!(
            "{} is still in use, and its I/O fails from now on. Finish with: weir serve --down {}",
            device.path.display(),
            state_file.display()
        );
        return Ok(());
    }
    if let Err(error) = state.give_back_loop() {
        eprintln!("note: {error}");
    }
    let _ = fs::remove_dir(&state.mountpoint);
    remove_socket(&state.nbd_socket()).map_err(Error::path("remove", &state.nbd_socket()))?;
    remove_socket(&state.socket).map_err(Error::path("remove", &state.socket))?;
    remove_if_there(state_file)
}

fn run_briefly(command: &mut Command) {
    let Ok(mut child) = command.spawn() else { return };
    let ended = wait_until(Duration::from_secs(10), || !matches!(child.try_wait(), Ok(None)));
    if !ended {
        let _ = child.kill();
    }
}

fn block_signals() -> libc::sigset_t {
    // SAFETY: an empty set is made and filled by the calls below; the mask of the calling thread is replaced.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

/// Waits for a signal, or until another process ends the FUSE session or removes a ublk device.
fn wait_for_signal(signals: &libc::sigset_t, session: Option<&BackgroundSession>, served: &[ublk::Device]) {
    let half_second = libc::timespec { tv_sec: 0, tv_nsec: 500_000_000 };
    loop {
        // SAFETY: both pointers are valid; no signal information is wanted.
        let signal = unsafe { libc::sigtimedwait(signals, std::ptr::null_mut(), &half_second) };
        if signal > 0 {
            return;
        }
        if session.is_some_and(|session| session.guard.is_finished()) {
            eprintln!("the FUSE file system was unmounted by another process");
            return;
        }
        if let Some(ended) = served.iter().find(|device| device.has_ended()) {
            eprintln!("{} was removed by another process", ended.device.path.display());
            return;
        }
    }
}
