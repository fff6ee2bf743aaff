//! Real devices for the tests, and fio to load them.
#![allow(dead_code)] // Not every test program uses all of it.

pub mod slow_file;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use weir_collectors::Disk;
use weir_collectors::block::{Collector, Options};

/// Why tests on real devices cannot run here; printed, so that a skipped test says so.
pub fn must_skip(tools: &[&str]) -> bool {
    let reason = missing(tools);
    if let Some(reason) = &reason {
        eprintln!("skipped: {reason}");
    }
    reason.is_some()
}

fn missing(tools: &[&str]) -> Option<String> {
    if let Some(reason) = weir_collectors::capability::missing_for_bpf() {
        return Some(reason);
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there is no /dev/loop-control".to_owned());
    }
    ["fio", "losetup"].iter().chain(tools).find_map(|tool| {
        let found = Command::new(tool)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.is_err().then(|| format!("{tool} is not installed"))
    })
}

/// A loop device; it goes when it is dropped.
pub struct Loop {
    pub path: PathBuf,
    /// Settings that were changed, and what they were: the next user of the device would inherit them.
    before: RefCell<Vec<(PathBuf, String)>>,
    _file: Option<tempfile::NamedTempFile>,
}

impl Loop {
    /// Over a file in memory.
    pub fn in_memory(mib: u64) -> Self {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        file.as_file().set_len(mib << 20).unwrap();
        let path = attach(file.path());
        Loop { path, before: RefCell::default(), _file: Some(file) }
    }

    /// Over a file that someone else keeps.
    pub fn over(file: &Path) -> Self {
        Loop { path: attach(file), before: RefCell::default(), _file: None }
    }

    pub fn disk(&self) -> Disk {
        Disk::find(self.path.to_str().unwrap()).unwrap()
    }

    /// Writes a setting of its queue, until it is dropped.
    pub fn set(&self, setting: &str, value: &str) {
        let queue = self.disk().sysfs().join("queue");
        // The kernel fits the read-ahead to the largest request.
        for name in ["read_ahead_kb", setting] {
            let path = queue.join(name);
            let text = fs::read_to_string(&path).unwrap();
            // Of a choice, the one in brackets.
            let before = text.split(['[', ']']).nth(1).unwrap_or(text.trim()).to_owned();
            self.before.borrow_mut().push((path, before));
        }
        fs::write(queue.join(setting), value).unwrap();
    }
}

/// Others may take the free device before us.
fn attach(file: &Path) -> PathBuf {
    for _ in 0..50 {
        let output =
            Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file).output().unwrap();
        if output.status.success() {
            let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
            let disk = Disk::find(path.to_str().unwrap()).unwrap();
            // A device that was used before keeps what was set.
            let queue = disk.sysfs().join("queue");
            fs::write(queue.join("scheduler"), "none").unwrap();
            fs::write(queue.join("nr_requests"), "127").unwrap();
            fs::write(queue.join("nr_requests"), "128").unwrap();
            fs::write(queue.join("nomerges"), "0").unwrap();
            return path;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("no free loop device");
}

impl Drop for Loop {
    fn drop(&mut self) {
        // The read-ahead last: what comes before it changes it.
        let mut before = self.before.borrow_mut();
        before.reverse();
        before.sort_by_key(|(path, _)| path.ends_with("read_ahead_kb"));
        for (path, before) in before.iter() {
            if path.ends_with("nr_requests") {
                // Writing what the queue holds already does nothing, and the depth would stay.
                let _ = fs::write(path, "127");
            }
            let _ = fs::write(path, before);
        }
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

/// Runs fio on a device and returns its report.
pub fn fio(target: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new("fio")
        .args(["--name=test", "--output-format=json", "--group_reporting"])
        .arg(format!("--filename={}", target.display()))
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let start = text.find('{').unwrap_or_else(|| panic!("fio: {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&text[start..]).unwrap()
}

/// The number of reads (`read`) or writes (`write`) in a report.
pub fn count(report: &serde_json::Value, direction: &str) -> u64 {
    report["jobs"][0][direction]["total_ios"].as_u64().unwrap()
}

/// Records all disks in mode `full`.
pub fn start(disks: &[Disk]) -> Collector {
    Collector::start(disks, Options::spooled_to(&std::env::temp_dir())).unwrap()
}
