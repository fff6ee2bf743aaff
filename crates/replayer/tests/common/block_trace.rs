//! An observer outside the replayer: the kernel's own block tracepoints on one device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of an event in the buffer, at most.
const EVENT_BYTES: usize = 96;

/// One event of the block layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEvent {
    /// Its name: `block_bio_queue`, `block_rq_issue`, ...
    pub name: String,
    /// When, ns of `CLOCK_MONOTONIC`, in steps of 1 us.
    pub at_ns: i64,
    /// First sector, 512 bytes each.
    pub sector: u64,
    /// Everything that the event says.
    pub text: String,
}

/// A recording in progress; nothing is left behind when it goes out of scope.
pub struct BlockTrace {
    instance: PathBuf,
    /// A mount of our own, where the system has none.
    mounted: Option<PathBuf>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl BlockTrace {
    /// Records `events` of the device `major:minor`, about so many in all.
    pub fn start(numbers: &str, events: &[&str], expected: usize) -> io::Result<Self> {
        let name = format!("weir-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (root, mounted) = tracefs(&name)?;
        let instance = root.join("instances").join(name);
        let trace = BlockTrace { instance, mounted };
        fs::create_dir(&trace.instance)?;
        let (major, minor) = numbers.split_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
        let device = number(major)? << 20 | number(minor)?;
        trace.write("trace_clock", "mono")?;
        // The buffer is that of one CPU, and all events may fall on one.
        let kib = (expected * EVENT_BYTES / 1024).max(8192);
        trace.write("buffer_size_kb", &kib.to_string())?;
        for event in events {
            trace.write(&format!("events/block/{event}/filter"), &format!("dev == {device}"))?;
            trace.write(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.instance.join(file);
        fs::write(&path, value).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
    }

    /// Ends the recording and returns the recorded requests, in order of time.
    pub fn stop(self) -> io::Result<Vec<BlockEvent>> {
        self.write("tracing_on", "0")?;
        for cpu in fs::read_dir(self.instance.join("per_cpu"))? {
            let stats = fs::read_to_string(cpu?.path().join("stats"))?;
            for line in stats.lines() {
                if let Some((what @ ("overrun" | "dropped events"), count)) = line.split_once(": ")
                    && count != "0"
                {
                    return Err(io::Error::other(format!("events were lost: {what} {count}")));
                }
            }
        }
        let text = fs::read_to_string(self.instance.join("trace"))?;
        let mut events: Vec<BlockEvent> =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(parse).collect();
        events.sort_by_key(|event| event.at_ns);
        Ok(events)
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
        if let Some(mounted) = &self.mounted {
            let _ = std::process::Command::new("umount").arg(mounted).status();
            let _ = fs::remove_dir(mounted);
        }
    }
}

fn tracefs(name: &str) -> io::Result<(PathBuf, Option<PathBuf>)> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut points = mounts
        .lines()
        .filter(|line| line.split(' ').nth(2) == Some("tracefs"))
        .filter_map(|l| l.split(' ').nth(1));
    if let Some(point) = points.find(|point| Path::new(point).starts_with("/sys")) {
        return Ok((PathBuf::from(point), None));
    }
    let point = std::env::temp_dir().join(format!("{name}-tracefs"));
    fs::create_dir(&point)?;
    let mounted = std::process::Command::new("mount").args(["-t", "tracefs", "none"]).arg(&point).output()?;
    if mounted.status.success() {
        Ok((point.clone(), Some(point)))
    } else {
        let _ = fs::remove_dir(&point);
        Err(io::Error::other(String::from_utf8_lossy(&mounted.stderr).trim().to_owned()))
    }
}

/// `  task-123 [001] d.... 4653.052026: block_bio_queue: 7,0 R 123 + 8 [task]`; a request's event has
/// its bytes and a command in parentheses before the sector.
fn parse(line: &str) -> Option<BlockEvent> {
    let at = line.find(": block_")?;
    let stamp = line[..at].rsplit(' ').next()?;
    let (seconds, micros) = stamp.split_once('.')?;
    let (name, text) = line[at + 2..].split_once(": ")?;
    let at_ns = seconds.parse::<i64>().ok()? * 1_000_000_000 + micros.parse::<i64>().ok()? * 1000;
    let words: Vec<&str> = text.split_whitespace().collect();
    let plus = words.iter().position(|word| *word == "+")?;
    Some(BlockEvent {
        name: name.to_owned(),
        at_ns,
        sector: words.get(plus.checked_sub(1)?)?.parse().ok()?,
        text: text.to_owned(),
    })
}
