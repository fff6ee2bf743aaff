//! Network namespaces of the test network, in the layout of ip-netns(8).

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Error;
use crate::state::Namespace;

/// Largest packet that one interface passes to another, by segmentation offload (GSO).
const LARGEST_PACKET_BYTES: u64 = 64 << 10;

/// Folder of named network namespaces.
pub const FOLDER: &str = "/run/netns";

impl Namespace {
    /// Path of the namespace.
    pub fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// The inode behind the name now; `None` if the name is free.
    pub(crate) fn present(&self) -> Option<u64> {
        self.path().metadata().ok().map(|metadata| metadata.ino())
    }

    /// Whether the namespace of this name is the one that was made.
    pub(crate) fn is_ours(&self) -> bool {
        self.inode.is_some() && self.present() == self.inode
    }

    pub(crate) fn make(&mut self) -> Result<(), Error> {
        ip(&["netns", "add", &self.name], "")?;
        self.inode = self.present();
        Ok(())
    }

    /// Removes the namespace, unless it is absent or the name now belongs to another one.
    pub(crate) fn remove(&self) -> Result<bool, Error> {
        // Without an inode it was about to be made when the name was free.
        if self.present().is_none() || (self.inode.is_some() && !self.is_ours()) {
            return Ok(false);
        }
        ip(&["netns", "delete", &self.name], "")?;
        Ok(true)
    }

    /// Limits what an interface sends, in 10^6 bits a second, by a token bucket: tc-tbf(8).
    pub(crate) fn limit(&self, interface: &str, rate_mbit: u32) -> Result<(), Error> {
        // 10 ms of the rate, at least the largest packet before segmentation.
        let burst_bytes = (u64::from(rate_mbit) * 1_000_000 / 8 / 100).max(LARGEST_PACKET_BYTES);
        let (rate, burst) = (format!("{rate_mbit}mbit"), burst_bytes.to_string());
        let bucket = ["root", "tbf", "rate", &rate, "burst", &burst, "latency", "50ms"];
        run("tc", &[&["-n", &self.name, "qdisc", "replace", "dev", interface], &bucket[..]].concat(), "")
    }

    /// Runs lines of ip(8) in the namespace.
    pub(crate) fn ip(&self, lines: &str) -> Result<(), Error> {
        ip(&["-n", &self.name, "-batch", "-"], lines)
    }
}

fn ip(arguments: &[&str], input: &str) -> Result<(), Error> {
    run("ip", arguments, input)
}

fn run(program: &str, arguments: &[&str], input: &str) -> Result<(), Error> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Failed(format!("{program}: not installed. Install the package iproute2"))
        }
        _ => Error::Failed(format!("{program}: {error}")),
    };
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early prints why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Error::Failed(format!("{program} {} failed: {}", arguments.join(" "), words.trim())))
}

/// Runs a function in the network namespace at a path, in a thread of its own. Files, mounts and processes stay the same.
///
/// # Errors
/// The namespace is absent, or cannot be entered (only root can).
pub fn within<T: Send>(namespace: &Path, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let file = File::open(namespace).map_err(Error::io("cannot open namespace", namespace))?;
    let entered = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // The thread ends with this closure: no other work runs in the namespace.
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        thread.join()
    });
    match entered {
        Ok(done) => done.map_err(Error::io("cannot enter namespace", namespace)),
        Err(_) => {
            Err(Error::Failed(format!("worker thread in network namespace {} panicked", namespace.display())))
        }
    }
}
