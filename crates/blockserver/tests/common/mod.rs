//! Common parts of the tests of real devices: a server in its own process, and direct I/O to its block device.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use weir_blockserver::{
    Control, ServeSpec, State, down, missing_capability, serve, state_path, wait_until_ready,
};

/// Why tests of real devices cannot run here; printed once for each test that is skipped.
pub fn skip(test: &str) -> bool {
    match missing_capability() {
        Some(reason) => {
            eprintln!("{test}: skipped: {reason}");
            true
        }
        None => false,
    }
}

/// Whether a program can be run; prints why a test is skipped otherwise.
pub fn lacks(test: &str, program: &str) -> bool {
    let missing = Command::new(program).arg("-V").output().is_err();
    if missing {
        eprintln!("{test}: skipped: {program} is not installed");
    }
    missing
}

/// A server in its own process: this test binary, running only `serve_child`.
pub struct Server {
    pub child: Child,
    pub state: State,
    pub state_file: PathBuf,
    folder: tempfile::TempDir,
}

impl Server {
    pub fn start(yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder, yaml)
    }

    pub fn start_in(folder: tempfile::TempDir, yaml: &str) -> Self {
        let spec = ServeSpec::parse(yaml, "test.yml", folder.path()).unwrap();
        let mut child = command(folder.path(), &spec).stdout(Stdio::null()).spawn().unwrap();
        let state = wait_until_ready(&spec, folder.path(), &mut child).unwrap();
        let state_file = state_path(folder.path(), &spec.name);
        Self { child, state, state_file, folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn device(&self) -> &Path {
        &self.state.device.as_ref().unwrap().path
    }

    pub fn control(&self) -> Control {
        Control::connect(&self.state).unwrap()
    }

    /// The block device, past the page cache.
    pub fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(self.device()).unwrap()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Bytes of memory that the server holds.
    pub fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Nothing of it is left: no mount, no loop device, no file but a log.
    pub fn assert_gone(&self) {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&self.state.token), "still mounted:\n{mounts}");
        let number = self.device().file_name().unwrap().to_str().unwrap();
        let backing = std::fs::read_to_string(format!("/sys/block/{number}/loop/backing_file"));
        // Another test may have taken the loop device meanwhile.
        let folder = self.folder.path().to_str().unwrap();
        assert!(!backing.is_ok_and(|file| file.contains(folder)), "{number} is still attached");
        let stays =
            (self.state.added_loop.as_ref()).is_some_and(|added| added.inode == sysfs_inode(added.number));
        assert!(!stays, "{number} was added, and is still there");
        for path in [&self.state_file, &self.state.socket, &self.state.mountpoint] {
            assert!(!path.exists(), "{} still exists", path.display());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let report = down(&self.state_file);
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let report = report.unwrap();
            assert!(report.left.is_empty(), "{report:?}");
        }
    }
}

pub fn command(folder: &Path, spec: &ServeSpec) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["common::serve_child", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("WEIR_TEST_SPEC", serde_json::to_string(spec).unwrap()).env("WEIR_TEST_STATE_DIR", folder);
    // The server runs in a thread of the test harness, whose main thread must leave the signals to it.
    // SAFETY: only calls that are safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Ok(())
        });
    }
    command
}

#[test]
#[ignore = "the server's process of the other tests"]
fn serve_child() {
    let (Ok(spec), Ok(folder)) = (std::env::var("WEIR_TEST_SPEC"), std::env::var("WEIR_TEST_STATE_DIR"))
    else {
        eprintln!("serve_child: skipped: it is run by the other tests");
        return;
    };
    let spec: ServeSpec = serde_json::from_str(&spec).unwrap();
    if let Err(error) = serve(&spec, Path::new(&folder), None, |_| ()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// A page for direct I/O.
#[derive(Clone, Copy)]
#[repr(align(4096))]
pub struct Page(pub [u8; 4096]);

/// A buffer of whole pages.
pub struct Pages(Vec<Page>);

impl Pages {
    pub fn new(bytes: usize) -> Self {
        Self(vec![Page([0; 4096]); bytes.div_ceil(4096)])
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        let length = self.0.len() * 4096;
        // SAFETY: `Page` is exactly its 4096 bytes, and the vector is borrowed for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), length) }
    }
}

pub fn read_at(device: &File, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut pages = Pages::new(length);
    device.read_exact_at(&mut pages.bytes()[..length], offset)?;
    Ok(pages.bytes()[..length].to_vec())
}

pub fn write_at(device: &File, offset: u64, data: &[u8]) -> std::io::Result<()> {
    let mut pages = Pages::new(data.len());
    pages.bytes()[..data.len()].copy_from_slice(data);
    device.write_all_at(&pages.bytes()[..data.len()], offset)
}

/// Distinguishes a loop device from a later one with its number.
pub fn sysfs_inode(number: u32) -> Option<u64> {
    std::fs::metadata(format!("/sys/block/loop{number}")).ok().map(|folder| folder.ino())
}
