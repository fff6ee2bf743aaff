//! Latencies of a recording by process, control group, device or operation.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use weir_records::{BlockRequest, TableReader};

/// What requests are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Name and number of the process that submitted the request.
    Process,
    /// Control group that the request is accounted to.
    Cgroup,
    /// Disk.
    Device,
    /// Operation.
    Op,
}

/// Requests of one group.
struct Group {
    requests: u64,
    bytes: u64,
    failed: u64,
    /// From the arrival at the block layer to the issue to the device, and from there to the completion.
    queueing: Times,
    service: Times,
}

/// Times in ns.
struct Times {
    sum_ns: u128,
    histogram: Histogram<u64>,
}

/// Longest time that a histogram tells apart.
const LONGEST_NS: u64 = 1_000_000_000_000;
/// Groups that are printed.
const SHOWN: usize = 40;

impl Times {
    fn new() -> anyhow::Result<Self> {
        Ok(Times { sum_ns: 0, histogram: Histogram::new_with_bounds(1, LONGEST_NS, 3)? })
    }

    fn add(&mut self, from_ns: Option<i64>, to_ns: Option<i64>) {
        let Some(ns) = from_ns.zip(to_ns).and_then(|(from, to)| u64::try_from(to - from).ok()) else {
            return;
        };
        self.sum_ns += u128::from(ns);
        self.histogram.saturating_record(ns.max(1));
    }

    /// Mean, median, 99th percentile and maximum in us; `None` without any time.
    fn us(&self) -> Option<[f64; 4]> {
        let count = self.histogram.len();
        let quantile = |q| self.histogram.value_at_quantile(q) as f64 / 1e3;
        (count > 0).then(|| {
            let mean_ns = self.sum_ns as f64 / count as f64;
            [mean_ns / 1e3, quantile(0.5), quantile(0.99), self.histogram.max() as f64 / 1e3]
        })
    }
}

/// Groups of a table of block requests, the one with the most requests first.
///
/// # Errors
/// The table cannot be read.
pub fn groups(table: &Path, by: By) -> anyhow::Result<Groups> {
    let names = if by == By::Cgroup { cgroups() } else { HashMap::new() };
    let mut found: HashMap<String, Group> = HashMap::new();
    let mut names_of: HashMap<(u32, std::sync::Arc<str>), String> = HashMap::new();
    for row in TableReader::<BlockRequest>::open(table)? {
        let row = row?;
        let key = match by {
            By::Process => {
                let process = (row.pid, std::sync::Arc::clone(&row.comm));
                names_of.entry(process).or_insert_with(|| process_name(&row)).clone()
            }
            By::Cgroup => match row.cgroup {
                Some(id) => {
                    names.get(&id).map_or_else(|| format!("id {id}"), |path| path.display().to_string())
                }
                None => "not known".to_owned(),
            },
            By::Device => row.device.to_string(),
            By::Op => row.op.name().to_owned(),
        };
        if !found.contains_key(&key) {
            let group =
                Group { requests: 0, bytes: 0, failed: 0, queueing: Times::new()?, service: Times::new()? };
            found.insert(key.clone(), group);
        }
        let Some(group) = found.get_mut(&key) else { continue };
        group.requests += 1;
        group.bytes += u64::from(row.size_bytes);
        group.failed += u64::from(row.status != 0);
        group.queueing.add(row.queued_ns, row.issued_ns);
        group.service.add(row.issued_ns, row.completed_ns);
    }
    let mut groups: Vec<(String, Group)> = found.into_iter().collect();
    groups.sort_by(|(a, one), (b, other)| other.requests.cmp(&one.requests).then_with(|| a.cmp(b)));
    Ok(Groups { by, groups })
}

fn process_name(row: &BlockRequest) -> String {
    if row.pid == 0 && row.comm.is_empty() {
        "not known".to_owned()
    } else {
        format!("{} ({})", row.comm, row.pid)
    }
}

/// Groups in the order of their requests.
pub struct Groups {
    by: By,
    groups: Vec<(String, Group)>,
}

impl Groups {
    /// As lines of text: times in us.
    pub fn text(&self) -> String {
        let title = match self.by {
            By::Process => "process",
            By::Cgroup => "control group",
            By::Device => "device",
            By::Op => "operation",
        };
        let width = self.groups.iter().take(SHOWN).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let width = width.max(title.len()).min(48);
        let mut text = format!(
            "{title:width$} {:>9} {:>9} {:>6}   {:>35}   {:>35}\n",
            "requests",
            "MB",
            "failed",
            "queueing, us: mean, p50, p99, max",
            "service, us: mean, p50, p99, max"
        );
        for (name, group) in self.groups.iter().take(SHOWN) {
            let mb = group.bytes as f64 / 1e6;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name:width$} {:>9} {mb:>9.1} {:>6}   {}   {}",
                group.requests,
                group.failed,
                cells(group.queueing.us()),
                cells(group.service.us())
            );
        }
        if self.groups.len() > SHOWN {
            let _ = writeln!(text, "{} more: see --json", self.groups.len() - SHOWN);
        }
        text
    }

    /// All groups as JSON: times in us.
    pub fn json(&self) -> Value {
        let times = |times: &Times| {
            times.us().map(|[mean, p50, p99, max]| json!({"mean": mean, "p50": p50, "p99": p99, "max": max}))
        };
        self.groups
            .iter()
            .map(|(name, group)| {
                json!({
                    "name": name,
                    "requests": group.requests,
                    "bytes": group.bytes,
                    "failed": group.failed,
                    "queueing_us": times(&group.queueing),
                    "service_us": times(&group.service),
                })
            })
            .collect()
    }
}

fn cells(times: Option<[f64; 4]>) -> String {
    match times {
        Some(times) => times.map(|us| format!("{us:>8.1}")).join(" "),
        None => format!("{:>35}", "-"),
    }
}

/// Control groups of this host by id, which is the number of the folder's inode.
fn cgroups() -> HashMap<u64, PathBuf> {
    let mut found = HashMap::new();
    let Ok(mounts) = fs::read_to_string("/proc/self/mounts") else { return found };
    for mount in mounts.lines() {
        let fields: Vec<&str> = mount.split(' ').collect();
        // Requests are accounted in version 2, or in the hierarchy of blkio.
        let of_requests = match fields[..] {
            [_, _, "cgroup2", ..] => true,
            [_, _, "cgroup", options, ..] => options.split(',').any(|option| option == "blkio"),
            _ => false,
        };
        if of_requests && let Some(root) = fields.get(1) {
            collect(Path::new(root), Path::new("/"), 0, &mut found);
        }
    }
    found
}

/// Depth at which a hierarchy is no longer followed.
const DEEPEST: usize = 32;

fn collect(folder: &Path, name: &Path, depth: usize, into: &mut HashMap<u64, PathBuf>) {
    let Ok(metadata) = fs::symlink_metadata(folder) else { return };
    into.entry(metadata.ino()).or_insert_with(|| name.to_owned());
    if depth == DEEPEST {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), &name.join(entry.file_name()), depth + 1, into);
        }
    }
}
