//! Versions of the tools of a run.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::fact::Fact;

/// Program, and what makes it tell its version. All answer within a few ms: every run asks.
const TOOLS: [(&str, &[&str]); 13] = [
    ("fio", &["--version"]),
    ("blktrace", &["-V"]),
    ("blkparse", &["-V"]),
    ("mkfs.ext4", &["-V"]),
    ("mkfs.xfs", &["-V"]),
    ("mkfs.btrfs", &["--version"]),
    ("losetup", &["--version"]),
    ("mount", &["--version"]),
    ("bpftool", &["version"]),
    ("bpftrace", &["--version"]),
    ("python3", &["--version"]),
    ("mariadbd", &["--version"]),
    ("nginx", &["-v"]),
];

/// A program that takes longer than this does not tell its version.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn versions() -> BTreeMap<String, Fact<String>> {
    let started: Vec<_> = TOOLS
        .iter()
        .map(|(name, arguments)| {
            let child = Command::new(name)
                .args(*arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            (*name, child)
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    started
        .into_iter()
        .map(|(name, child)| {
            let fact = match child {
                Ok(child) => first_line(child, deadline),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Fact::missing("not installed"),
                Err(error) => Fact::missing(error.to_string()),
            };
            (name.to_owned(), fact)
        })
        .collect()
}

/// The first line that is not empty; some print it on the standard error.
fn first_line(mut child: Child, deadline: Instant) -> Fact<String> {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Fact::missing("did not answer");
            }
            Err(error) => return Fact::missing(error.to_string()),
        }
    }
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        let _ = out.read_to_string(&mut text);
    }
    if let Some(mut error) = child.stderr.take() {
        let _ = error.read_to_string(&mut text);
    }
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    Fact::from_option(line, "printed nothing")
}
