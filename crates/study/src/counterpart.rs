//! Counterparts of kernel settings in virtual time, for studies of both testbeds.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use crate::cells::{TESTBED, cross, is_excluded, levels_by_factor};
use crate::filesystem::FileSystem;
use crate::fs_option;
use crate::level::Scheduler;
use crate::spec::{Settings, Study};
use crate::testbed::Testbed;

/// Name of the file system of the simulator, which places files one after the other.
const FILE_SYSTEM: &str = "raw";
/// Kernel factors without a counterpart in virtual time.
const KERNEL_ONLY: [&str; 10] = [
    "kernel",
    "priority",
    "cgroup",
    "io_cost",
    "wbt_lat_usec",
    "read_ahead_kib",
    "buffered",
    "warm_start",
    "memory_mib",
    "server_memory_mib",
];

/// Counterparts in virtual time of the settings of a run on devices. One of weir's own schedulers is kept.
pub(crate) fn settings(on_device: &Settings) -> Settings {
    let Scheduler { name, tunables } = &on_device.scheduler;
    let policy = weir_scheduler::kernel_scheduler(name).map_or(name.as_str(), |found| found.counterpart);
    Settings {
        kernel: None,
        scheduler: Scheduler { name: policy.to_owned(), tunables: tunables.clone() },
        filesystem: FILE_SYSTEM.to_owned(),
        filesystem_options: BTreeMap::new(),
        buffered: false,
        warm_start: false,
        cgroup: BTreeMap::new(),
        io_cost: None,
        memory_mib: None,
        server_memory_mib: None,
        ..on_device.clone()
    }
}

/// Whether a factor has no counterpart in virtual time.
pub(crate) fn is_kernel_only(factor: &str) -> bool {
    KERNEL_ONLY.contains(&factor) || fs_option::is_one(factor)
}

/// The cells of a study on one of its testbeds, in the order of their levels.
///
/// In a study with both, the testbed is the last level of each cell. Cells that differ in the file system only are one
/// cell in virtual time. Cells of a file system without a device (tmpfs) are left out there.
pub(crate) fn cells(study: &Study, testbed: Testbed) -> Vec<Map<String, Value>> {
    let all = cross(&levels_by_factor(study)).into_iter();
    if !study.testbed.are_two() {
        return all.filter(|cell| !is_excluded(study, cell)).collect();
    }
    let mut cells: Vec<Map<String, Value>> = Vec::new();
    let mut known = HashSet::new();
    for mut cell in all {
        cell.insert(TESTBED.to_owned(), testbed.name().into());
        if is_excluded(study, &cell) {
            continue;
        }
        if testbed == Testbed::Simulator
            && let Some(level) = cell.get_mut("filesystem")
        {
            let found = level.as_str().and_then(FileSystem::load);
            if found.is_some_and(|filesystem| !filesystem.on_device) {
                continue;
            }
            *level = FILE_SYSTEM.into();
        }
        if known.insert(Value::Object(cell.clone()).to_string()) {
            cells.push(cell);
        }
    }
    cells
}

/// Factors of a study with their levels, the testbed among them if it has two.
pub(crate) fn factors(study: &Study) -> Vec<(String, Vec<Value>)> {
    let mut factors = levels_by_factor(study);
    if study.testbed.are_two() {
        let named = study.testbed.all().iter().map(|testbed| testbed.name().into()).collect();
        factors.push((TESTBED.to_owned(), named));
    }
    factors
}
