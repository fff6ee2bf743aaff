//! Taking a device away, whatever state it is in: nothing hangs, nothing is left, nothing of anyone else is touched.

mod common;

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use common::{Server, command, lacks, read_at, skip, sysfs_inode, write_at};
use weir_blockserver::{
    AddedLoop, Error, ServeSpec, State, down, down_all, serve_in_background, state_path, status,
};

/// From <linux/loop.h>.
const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
const YAML: &str = "{name: down, profile: hdd-7200, size_mib: 128}";

fn signal(server: &Server, signal: libc::c_int) {
    // SAFETY: a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(server.child.id() as i32, signal) }, 0);
}

fn is_eio(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// Makes and mounts ext4 on the server's device, with data that are not yet written back.
fn mount_with_dirty_data(server: &Server) -> std::path::PathBuf {
    server.control().timing(false).unwrap();
    let made = Command::new("mkfs.ext4").arg("-q").arg(server.device()).status().unwrap();
    let mountpoint = server.folder().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    let mounted = Command::new("mount").arg(server.device()).arg(&mountpoint).status().unwrap();
    assert!(made.success() && mounted.success());
    server.control().timing(true).unwrap();
    fs::write(mountpoint.join("dirty"), vec![1; 20 << 20]).unwrap();
    mountpoint
}

fn is_mounted(path: &std::path::Path) -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains(path.to_str().unwrap())
}

#[test]
fn a_signal_ends_the_server_and_leaves_nothing() {
    if skip("a_signal_ends_the_server_and_leaves_nothing") {
        return;
    }
    for number in [libc::SIGTERM, libc::SIGINT] {
        let mut server = Server::start(YAML);
        signal(&server, number);
        let status = server.child.wait().unwrap();
        assert!(status.success(), "{status}");
        server.assert_gone();
    }
}

#[test]
fn a_signal_unmounts_what_is_mounted() {
    let test = "a_signal_unmounts_what_is_mounted";
    if skip(test) || lacks(test, "mkfs.ext4") {
        return;
    }
    let mut server = Server::start(YAML);
    let mountpoint = mount_with_dirty_data(&server);
    signal(&server, libc::SIGTERM);
    assert!(server.child.wait().unwrap().success());
    assert!(!is_mounted(&mountpoint));
    server.assert_gone();
}

#[test]
fn down_takes_everything_away_and_may_be_repeated() {
    if skip("down_takes_everything_away_and_may_be_repeated") {
        return;
    }
    let server = Server::start(YAML);
    let listed = status(server.folder()).unwrap();
    assert!(listed.len() == 1 && listed[0].running && listed[0].stats.is_some(), "{listed:?}");
    let reports = down_all(server.folder()).unwrap();
    let report = reports[0].1.as_ref().unwrap();
    assert!(
        report.left.is_empty() && report.done.iter().any(|line| line.starts_with("detached")),
        "{report:?}"
    );
    server.assert_gone();
    assert!(down(&server.state_file).unwrap().done.is_empty());
    assert!(status(server.folder()).unwrap().is_empty());
}

#[test]
fn a_killed_server_gives_eio_at_once_and_down_cleans_up() {
    let test = "a_killed_server_gives_eio_at_once_and_down_cleans_up";
    if skip(test) || lacks(test, "mkfs.ext4") {
        return;
    }
    let mut server = Server::start(YAML);
    let mountpoint = mount_with_dirty_data(&server);
    let device = server.open();
    let failed = thread::scope(|scope| {
        // Sixteen readers with I/O in flight while the server dies.
        let readers: Vec<_> = (0..16u64)
            .map(|reader| {
                let device = &device;
                scope.spawn(move || {
                    (0..1000u64)
                        .find_map(|i| read_at(device, (reader * 1000 + i) * 4096, 4096).err())
                        .unwrap()
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        server.kill();
        let start = Instant::now();
        let errors: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        errors
    });
    assert!(failed.iter().all(is_eio), "{failed:?}");
    assert!(is_eio(&write_at(&device, 0, &[0; 4096]).unwrap_err()));
    drop(device);
    let start = Instant::now();
    let report = down(&server.state_file).unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(report.left.is_empty(), "{report:?}");
    assert!(!is_mounted(&mountpoint));
    server.assert_gone();
    assert!(down(&server.state_file).unwrap().done.is_empty());
}

#[test]
fn down_with_io_in_flight_does_not_wait_for_the_model() {
    let test = "down_with_io_in_flight_does_not_wait_for_the_model";
    if skip(test) || lacks(test, "mkfs.ext4") {
        return;
    }
    let server = Server::start(YAML);
    let mountpoint = mount_with_dirty_data(&server);
    let start = Instant::now();
    let report = down(&server.state_file).unwrap();
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(report.left.is_empty(), "{report:?}");
    assert!(!is_mounted(&mountpoint));
    server.assert_gone();
}

#[test]
fn down_ends_a_server_that_hangs() {
    let test = "down_ends_a_server_that_hangs";
    if skip(test) || lacks(test, "mkfs.ext4") {
        return;
    }
    let server = Server::start(YAML);
    let mountpoint = mount_with_dirty_data(&server);
    signal(&server, libc::SIGSTOP);
    let report = down(&server.state_file).unwrap();
    assert!(report.left.is_empty(), "{report:?}");
    assert!(report.done.iter().any(|line| line.contains("aborted all I/O")), "{report:?}");
    assert!(!is_mounted(&mountpoint));
    server.assert_gone();
}

#[test]
fn down_never_touches_what_was_given_to_others() {
    let test = "down_never_touches_what_was_given_to_others";
    if skip(test) || lacks(test, "losetup") {
        return;
    }
    let mut server = Server::start(YAML);
    server.kill();
    // The loop device now belongs to someone else's file, and the pid to this very process.
    let losetup = |arguments: &[&str]| Command::new("losetup").args(arguments).status().unwrap().success();
    let device = server.device().to_str().unwrap().to_owned();
    let other = server.folder().join("other.img");
    fs::write(&other, vec![0; 1 << 20]).unwrap();
    assert!(losetup(&["--detach", &device]));
    if !losetup(&[&device, other.to_str().unwrap()]) {
        eprintln!("{test}: skipped: another program took {device} meanwhile");
        return;
    }
    let mut state = State::load(&server.state_file).unwrap();
    state.pid = std::process::id();
    fs::write(&server.state_file, serde_json::to_vec(&state).unwrap()).unwrap();
    let report = down(&server.state_file).unwrap();
    assert!(report.left.is_empty(), "{report:?}");
    assert!(
        !report.done.iter().any(|line| line.contains("process") || line.contains("detached")),
        "{report:?}"
    );
    let number = device.trim_start_matches("/dev/");
    let backing = fs::read_to_string(format!("/sys/block/{number}/loop/backing_file")).unwrap();
    assert!(losetup(&["--detach", &device]));
    assert!(backing.contains("other.img"), "{backing}");
    if let Some(added) = state.added_loop {
        loop_control(LOOP_CTL_REMOVE, added.number);
    }
}

/// Adds or removes a loop device; the kernel removes none that is in use.
fn loop_control(request: libc::c_ulong, number: u32) -> bool {
    let control = fs::File::options().write(true).open("/dev/loop-control").unwrap();
    // SAFETY: takes a number.
    unsafe { libc::ioctl(control.as_raw_fd(), request, libc::c_ulong::from(number)) >= 0 }
}

#[test]
fn a_loop_device_goes_if_its_server_added_it_and_no_other() {
    if skip("a_loop_device_goes_if_its_server_added_it_and_no_other") {
        return;
    }
    let mut server = Server::start(YAML);
    server.kill();
    let state = State::load(&server.state_file).unwrap();
    assert!(down(&server.state_file).unwrap().left.is_empty());
    let unix_ns = || UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    // The number is out of the way of other tests.
    let number = (5000..).find(|&number| sysfs_inode(number).is_none()).unwrap();
    let before_ns = unix_ns();
    assert!(loop_control(LOOP_CTL_ADD, number));
    let inode = sysfs_inode(number).unwrap();
    // Server killed before the second record: the device was made within a second of the first one.
    let recorded = |asked_unix_ns, inode| {
        let added_loop = Some(AddedLoop { number, asked_unix_ns, inode });
        let state = State { device: None, queue: None, ready: false, added_loop, ..state.clone() };
        fs::write(&server.state_file, serde_json::to_vec(&state).unwrap()).unwrap();
        let report = down(&server.state_file).unwrap();
        assert!(report.left.is_empty(), "{report:?}");
        sysfs_inode(number).is_none()
    };
    assert!(!recorded(before_ns, Some(inode + 1)), "it was another device with this number");
    assert!(!recorded(before_ns - 2_000_000_000, None), "it was made later");
    assert!(!recorded(unix_ns() + 1_000_000_000, None), "it was made before");
    assert!(recorded(before_ns, None));
    // Server killed after it.
    assert!(loop_control(LOOP_CTL_ADD, number));
    assert!(recorded(0, sysfs_inode(number)));
}

#[test]
fn a_new_server_cleans_up_after_a_dead_one_of_its_name() {
    if skip("a_new_server_cleans_up_after_a_dead_one_of_its_name") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let spec = ServeSpec::parse(YAML, "test.yml", folder.path()).unwrap();
    let start = || serve_in_background(&spec, folder.path(), command(folder.path(), &spec));
    let first = start().unwrap();
    // A living one is not disturbed.
    let Err(Error::Running { pid, .. }) = start() else { panic!("a second server was started") };
    assert_eq!(pid, first.pid);
    let again = command(folder.path(), &spec).output().unwrap();
    let message = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(message.contains(&format!("is being served by process {}", first.pid)), "{message}");
    // SAFETY: the process that was just made by this test.
    assert_eq!(unsafe { libc::kill(first.pid as i32, libc::SIGKILL) }, 0);
    let gone = Instant::now() + Duration::from_secs(5);
    while status(folder.path()).unwrap()[0].running {
        assert!(Instant::now() < gone);
        thread::sleep(Duration::from_millis(5));
    }
    let second = start().unwrap();
    assert_ne!(first.token, second.token);
    let report = down(&state_path(folder.path(), "down")).unwrap();
    assert!(report.left.is_empty(), "{report:?}");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&first.token) && !mounts.contains(&second.token));
}

#[test]
fn a_server_that_cannot_start_says_why_and_leaves_nothing() {
    if skip("a_server_that_cannot_start_says_why_and_leaves_nothing") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let yaml = "{name: broken, profile: \"null\", size_mib: 16, backing: /nowhere/at/all/disk.img}";
    let spec = ServeSpec::parse(yaml, "test.yml", folder.path()).unwrap();
    let error =
        serve_in_background(&spec, folder.path(), command(folder.path(), &spec)).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all/disk.img") && error.contains("No such file"), "{error}");
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["broken.log"]);
}
