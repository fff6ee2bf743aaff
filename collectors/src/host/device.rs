//! Disks of the host, and their queue settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, number, text};
use crate::Disk;

/// One disk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Device {
    /// `major:minor`.
    pub number: String,
    /// Model name.
    pub model: Fact<String>,
    /// Bytes.
    pub size_bytes: Fact<u64>,
    /// Whether it is rotational.
    pub rotational: Fact<bool>,
    /// Bytes.
    pub logical_block_bytes: Fact<u64>,
    /// Bytes.
    pub physical_block_bytes: Fact<u64>,
    /// `write back` or `write through`.
    pub write_cache: Fact<String>,
    /// Whether it supports FUA writes.
    pub fua: Fact<bool>,
    /// Largest discard in bytes; 0: none.
    pub discard_max_bytes: Fact<u64>,
    /// Hardware queues.
    pub hardware_queues: usize,
    /// The I/O scheduler in use.
    pub scheduler: Fact<String>,
    /// Available I/O schedulers.
    pub schedulers_available: Vec<String>,
    /// Its tunables.
    pub scheduler_tunables: BTreeMap<String, String>,
    /// Queue depth (`nr_requests`).
    pub nr_requests: Fact<u64>,
    /// KiB.
    pub read_ahead_kib: Fact<u64>,
    /// Target of write-back throttling in µs; 0: off.
    pub write_back_throttle_us: Fact<i64>,
    /// Largest request in KiB.
    pub max_sectors_kib: Fact<u64>,
    /// 0: merges, 1: simple ones only, 2: none.
    pub no_merges: Fact<u64>,
    /// Where completions run: 0 anywhere, 1 in the submitter's group, 2 on its CPU.
    pub rq_affinity: Fact<u64>,
    /// The file behind a loop device.
    pub loop_backing: Option<LoopBacking>,
}

/// Backing file of a loop device.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LoopBacking {
    /// Its path.
    pub file: Fact<String>,
    /// Whether it uses direct I/O.
    pub direct_io: Fact<bool>,
    /// File system type of the file.
    pub file_system: Fact<String>,
}

impl Device {
    pub(super) fn read(disk: &Disk) -> Self {
        let sysfs = disk.sysfs();
        let queue = sysfs.join("queue");
        let flag = |name: &str| number::<u8>(queue.join(name)).map(|value| value != 0);
        let (scheduler, schedulers_available) = scheduler(&queue);
        Device {
            number: format!("{}:{}", disk.major, disk.minor),
            model: match text(sysfs.join("device/model")) {
                Fact::Missing { .. } if disk.name.starts_with("loop") => {
                    Fact::missing("a loop device has no model")
                }
                other => other,
            },
            size_bytes: number::<u64>(sysfs.join("size")).map(|sectors| sectors * 512),
            rotational: flag("rotational"),
            logical_block_bytes: number(queue.join("logical_block_size")),
            physical_block_bytes: number(queue.join("physical_block_size")),
            write_cache: text(queue.join("write_cache")),
            fua: flag("fua"),
            discard_max_bytes: number(queue.join("discard_max_bytes")),
            hardware_queues: fs::read_dir(sysfs.join("mq")).map_or(0, Iterator::count),
            scheduler,
            schedulers_available,
            scheduler_tunables: tunables(&queue.join("iosched")),
            nr_requests: number(queue.join("nr_requests")),
            read_ahead_kib: number(queue.join("read_ahead_kb")),
            write_back_throttle_us: number(queue.join("wbt_lat_usec")),
            max_sectors_kib: number(queue.join("max_sectors_kb")),
            no_merges: number(queue.join("nomerges")),
            rq_affinity: number(queue.join("rq_affinity")),
            loop_backing: loop_backing(&sysfs),
        }
    }
}

fn scheduler(queue: &Path) -> (Fact<String>, Vec<String>) {
    match text(queue.join("scheduler")) {
        Fact::Known(line) => {
            let all = line.split(' ').map(|name| name.trim_matches(['[', ']']).to_owned()).collect();
            let chosen = line.split(['[', ']']).nth(1).unwrap_or(&line).to_owned();
            (Fact::Known(chosen), all)
        }
        missing => (missing, Vec::new()),
    }
}

/// Readable files of `iosched/`.
fn tunables(directory: &Path) -> BTreeMap<String, String> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let value = fs::read_to_string(entry.path()).ok()?;
            Some((entry.file_name().to_string_lossy().into_owned(), value.trim().to_owned()))
        })
        .collect()
}

fn loop_backing(sysfs: &Path) -> Option<LoopBacking> {
    let directory = sysfs.join("loop");
    if !directory.exists() {
        return None;
    }
    let file = text(directory.join("backing_file"));
    let file_system = match &file {
        Fact::Known(path) => super::mounts::type_of(Path::new(path)),
        Fact::Missing { reason, .. } => Fact::missing(reason.clone()),
    };
    let direct_io = number::<u8>(directory.join("dio")).map(|value| value != 0);
    Some(LoopBacking { file, direct_io, file_system })
}
