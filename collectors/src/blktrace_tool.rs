//! blktrace(8) as a source of block requests.
//!
//! Under kernel lockdown blktrace cannot open its relay files in debugfs, and ends with status 0 and no output: success means
//! that there are events.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_trace::blktrace::{Reader, Record};

use crate::Error;
use crate::assemble::{Assembly, Recorded};
use crate::capability;
use crate::disk::{Disk, DiskStatistics};

/// Time within which blktrace fails, if it fails.
const SETTLE: Duration = Duration::from_millis(500);
/// Time limit for blktrace to write its events and end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running collection. Dropping it ends it; the files stay.
pub struct Collector {
    child: Option<Child>,
    devices: Vec<Disk>,
    starts: Vec<DiskStatistics>,
    folder: PathBuf,
}

/// Recording of a collection.
pub struct Capture {
    devices: Vec<Disk>,
    starts: Vec<DiskStatistics>,
    stops: Vec<DiskStatistics>,
    folder: PathBuf,
    dropped: u64,
}

impl Collector {
    /// Starts blktrace(8); its files `DISK.blktrace.CPU` go to `folder`.
    ///
    /// # Errors
    /// blktrace is not installed, or ended at once.
    pub fn start(devices: &[Disk], folder: &Path) -> Result<Self, Error> {
        let starts = devices.iter().map(Disk::statistics).collect::<Result<_, _>>()?;
        let mut command = Command::new("blktrace");
        for disk in devices {
            command.arg("-d").arg(Path::new("/dev").join(&*disk.name));
        }
        let mut child = command
            .arg("-D")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Error::Blktrace(format!("it cannot be started: {error}")))?;
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(Error::Blktrace(why_it_ended(status, &output_of(&mut child))));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Collector { child: Some(child), devices: devices.to_vec(), starts, folder: folder.to_owned() })
    }

    /// Ends the collection and checks that it recorded events.
    ///
    /// # Errors
    /// blktrace did not end, or wrote no file, or a device's statistics cannot be read.
    pub fn stop(mut self) -> Result<Capture, Error> {
        let stops = self.devices.iter().map(Disk::statistics).collect::<Result<_, _>>()?;
        let Some(mut child) = self.child.take() else {
            return Err(Error::Blktrace("it has ended already".to_owned()));
        };
        let status = end(&mut child)?;
        let output = output_of(&mut child);
        if files_of(&self.folder, &self.devices).is_empty() {
            return Err(Error::Blktrace(why_it_ended(status, &output)));
        }
        Ok(Capture {
            devices: std::mem::take(&mut self.devices),
            starts: std::mem::take(&mut self.starts),
            stops,
            folder: self.folder.clone(),
            dropped: dropped(&output),
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = end(&mut child);
        }
    }
}

impl Capture {
    /// Events in order of time.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub fn records(&self) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        for file in files_of(&self.folder, &self.devices) {
            for record in Reader::open(&file)? {
                records.push(record?);
            }
        }
        records.sort_by_key(|record| record.time_ns);
        Ok(records)
    }

    /// Rows and their reconciliation.
    ///
    /// # Errors
    /// As [`Capture::records`].
    pub fn into_rows(self, epoch_ns: i64) -> Result<Recorded, Error> {
        let mut assembly = Assembly::new(&self.devices, "blktrace", epoch_ns);
        self.records()?.iter().for_each(|record| assembly.add(record));
        Ok(assembly.finish(&self.starts, &self.stops, self.dropped))
    }
}

/// Files with events.
fn files_of(folder: &Path, devices: &[Disk]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = devices.iter().any(|disk| name.starts_with(&format!("{}.blktrace.", disk.name)));
            is_ours && entry.metadata().is_ok_and(|metadata| metadata.len() > 0)
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn end(child: &mut Child) -> Result<std::process::ExitStatus, Error> {
    let refuse = |error: std::io::Error| Error::Blktrace(error.to_string());
    // The process is our child and not yet waited for, so the number is still its own.
    let _ = kill_process(Pid::from_child(child), Signal::INT);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(refuse)? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill().map_err(refuse)?;
            child.wait().map_err(refuse)?;
            return Err(Error::Blktrace(format!("it did not end within {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Output of the ended process.
fn output_of(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        let _ = out.read_to_string(&mut text);
    }
    if let Some(mut error) = child.stderr.take() {
        let _ = error.read_to_string(&mut text);
    }
    text
}

fn why_it_ended(status: std::process::ExitStatus, output: &str) -> String {
    let complaint = output.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
    let lockdown = match capability::lockdown_mode().as_deref() {
        None | Some("none") => String::new(),
        Some(mode) => format!("; kernel lockdown ({mode}) forbids its files in debugfs"),
    };
    format!("it recorded nothing ({status}, {complaint:?}{lockdown})")
}

/// Dropped events, from the last line: `Total: 100 events (dropped 3), 5 KiB data`.
fn dropped(output: &str) -> u64 {
    let total = output.lines().rev().find(|line| line.contains("Total:"));
    total.and_then(|line| line.split_once("(dropped ")?.1.split_once(')')?.0.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_events_are_read_from_the_total() {
        let output = "=== loop0 ===\n  CPU  0:   10 events,  1 KiB data\n  Total:  10 events (dropped 3), 1 KiB data\n";
        assert_eq!(dropped(output), 3);
        assert_eq!(dropped(""), 0);
    }
}
