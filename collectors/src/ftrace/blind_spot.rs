//! Completions that a kernel hides from BPF.
//!
//! Some kernels run no BPF program, of whatever kind, while a thread of process 1 is current. A completion is handled in the
//! context of whichever thread the interrupt met, so now and then one meets such a thread, and every BPF program misses it:
//! comparing BPF with the `block_rq_complete` event of ftrace showed all misses in that context, and none in
//! any other. Ftrace itself is not affected. So ftrace is asked for exactly these: an instance of its own records
//! completions while a thread of process 1 is current and nothing else, which costs next to nothing.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_records::BlockRequest;

use super::tracefs::Tracefs;
use crate::{Disk, Error};

const PREFIX: &str = "weir-blind-spot-";

/// Watches the blind spot of BPF. Dropping it ends the watch.
#[derive(Debug)]
pub struct BlindSpot {
    instance: PathBuf,
    disks: Vec<Disk>,
    _tracefs: Tracefs,
}

/// Completions that were seen there.
#[derive(Debug, Default)]
pub struct HiddenCompletions {
    by_place: HashMap<(String, u64, u32), Vec<Completion>>,
    /// Events that ftrace had no room for.
    pub overruns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Completion {
    at_ns: i64,
    status: i32,
}

impl BlindSpot {
    /// Begins to watch some disks.
    ///
    /// # Errors
    /// Tracing is not to be had.
    pub fn watch(disks: &[Disk]) -> Result<Self, Error> {
        let tracefs = Tracefs::open()?;
        let instances = tracefs.root.join("instances");
        remove_abandoned(&instances);
        let instance = instances.join(format!("{PREFIX}{}", std::process::id()));
        let watch = BlindSpot { instance, disks: disks.to_vec(), _tracefs: tracefs };
        match fs::create_dir(&watch.instance) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::io(&watch.instance)(error))
            }
            _ => watch.begin().map(|()| watch),
        }
    }

    fn begin(&self) -> Result<(), Error> {
        let filter: Vec<String> =
            self.disks.iter().map(|disk| format!("dev == {}", disk.kernel_dev())).collect();
        let threads: Vec<String> = fs::read_dir("/proc/1/task")
            .map_err(Error::io(Path::new("/proc/1/task")))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        self.set("trace_clock", "mono")?;
        self.set("buffer_size_kb", "1024")?;
        // Threads that process 1 starts later are followed.
        self.set("options/event-fork", "1")?;
        self.set("set_event_pid", &threads.join(" "))?;
        self.set("events/block/block_rq_complete/filter", &filter.join(" || "))?;
        self.set("events/block/block_rq_complete/enable", "1")?;
        self.set("tracing_on", "1")
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = self.instance.join(file);
        fs::write(&path, value).map_err(Error::io(&path))
    }

    /// Ends the watch.
    ///
    /// # Errors
    /// What was recorded cannot be read.
    pub fn end(self) -> Result<HiddenCompletions, Error> {
        self.set("events/block/block_rq_complete/enable", "0")?;
        let path = self.instance.join("trace");
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let mut found = HiddenCompletions { overruns: self.overruns(), ..HiddenCompletions::default() };
        for (dev, sector, bytes, completion) in text.lines().filter_map(parse) {
            if let Some(disk) = self.disks.iter().find(|disk| disk.kernel_dev() == dev) {
                let key = (disk.name.to_string(), sector, bytes);
                found.by_place.entry(key).or_default().push(completion);
            }
        }
        Ok(found)
    }

    fn overruns(&self) -> u64 {
        let cpus = fs::read_dir(self.instance.join("per_cpu")).into_iter().flatten().flatten();
        cpus.filter_map(|cpu| fs::read_to_string(cpu.path().join("stats")).ok())
            .filter_map(|stats| {
                let line = stats.lines().find(|line| line.starts_with("overrun:"))?;
                line.split_once(':')?.1.trim().parse::<u64>().ok()
            })
            .sum()
    }
}

impl Drop for BlindSpot {
    fn drop(&mut self) {
        let _ = self.set("events/block/block_rq_complete/enable", "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

/// Removes instances of processes that are no more.
fn remove_abandoned(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl HiddenCompletions {
    /// Gives a row without a completion the one that was seen here; says whether there was one. `epoch_ns` is what the
    /// row's times are relative to. The stamp has microseconds.
    pub fn fill(&mut self, row: &mut BlockRequest, epoch_ns: i64) -> bool {
        if row.completed_ns.is_some() {
            return false;
        }
        let Some(issued_ns) = row.issued_ns else { return false };
        let key = (row.device.to_string(), row.sector, row.size_bytes);
        let Some(candidates) = self.by_place.get_mut(&key) else { return false };
        // In order of time: the first one behind the issue is the request's own. A microsecond may be cut off.
        let Some(at) = candidates.iter().position(|seen| seen.at_ns - epoch_ns + 1000 > issued_ns) else {
            return false;
        };
        let seen = candidates.remove(at);
        row.completed_ns = Some((seen.at_ns - epoch_ns).max(issued_ns));
        row.status = seen.status;
        row.source = format!("{}+ftrace", row.source).into();
        true
    }
}

/// `<...>-70 [000] ..s1. 7105.276489: block_rq_complete: 7,0 R () 975168 + 8 be,0,4 [0]` as device, sector, bytes.
fn parse(line: &str) -> Option<(u32, u64, u32, Completion)> {
    let (before, event) = line.split_once(": block_rq_complete: ")?;
    let (seconds, micros) = before.rsplit(' ').next()?.split_once('.')?;
    let at_ns = seconds.parse::<i64>().ok()? * 1_000_000_000 + micros.parse::<i64>().ok()? * 1000;
    let (major, minor) = event.split(' ').next()?.split_once(',')?;
    let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    // What stands in parentheses is a driver's command and may hold blanks.
    let mut place = event.split_once(") ")?.1.split(' ');
    let sector = place.next()?.parse().ok()?;
    let sectors: u32 = place.nth(1)?.parse().ok()?;
    let error = event.rsplit('[').next()?.trim_end().trim_end_matches(']').parse::<i32>().ok()?;
    Some((dev, sector, sectors.checked_mul(512)?, Completion { at_ns, status: error.abs() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        " tokio rt-70      [000] ..s1.  7105.276489: block_rq_complete: 7,3 R () 975168 + 8 be,0,4 [-5]";

    #[test]
    fn a_line_of_the_trace_is_read() {
        let completion = Completion { at_ns: 7_105_276_489_000, status: 5 };
        assert_eq!(parse(LINE), Some((7 << 20 | 3, 975_168, 4096, completion)));
        assert_eq!(parse("# tracer: nop"), None);
        assert_eq!(parse(&LINE[..70]), None);
    }

    fn row(issued_ns: i64) -> BlockRequest {
        BlockRequest {
            device: "loop3".into(),
            sector: 8,
            size_bytes: 4096,
            op: weir_records::BlockOp::Read,
            flags: "".into(),
            priority: None,
            pid: 1,
            comm: "".into(),
            cgroup: None,
            queued_ns: None,
            inserted_ns: None,
            issued_ns: Some(issued_ns),
            completed_ns: None,
            status: 0,
            source: "bpf".into(),
        }
    }

    #[test]
    fn the_first_completion_behind_the_issue_fills_and_is_used_once() {
        let mut hidden = HiddenCompletions::default();
        let seen = [10_000, 50_000].map(|at_ns| Completion { at_ns, status: 0 });
        hidden.by_place.insert(("loop3".to_owned(), 8, 4096), seen.to_vec());
        let mut late = row(19_000);
        assert!(hidden.fill(&mut late, 1000));
        assert_eq!((late.completed_ns, &*late.source), (Some(49_000), "bpf+ftrace"));
        assert!(!hidden.fill(&mut row(19_000), 1000));
    }
}
