//! Limits of a run, its daemons and the servers of its file system: memory, and read bandwidth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use weir_daemons::cgroup::Memory;
use weir_daemons::{Disk, Group};
use weir_study::{Run, RunService};

use crate::Error;
use crate::context::journal::{Change, Journal};
use crate::device::block_device::BlockDevice;

/// No memory limit: more than any host has, and accepted by both versions of control groups.
const UNLIMITED: u64 = 1 << 50;

/// Control groups and limits of a run: this process, and all processes that it starts.
pub(crate) struct Limits {
    group: Group,
    memory_bytes: Option<u64>,
    /// Former groups of this process.
    came_from: Vec<(PathBuf, PathBuf)>,
    /// Limits of daemons that have their own.
    services: Vec<OfService>,
    /// Servers of a network file system: process, group, limit in bytes.
    servers: Vec<(String, Group, u64)>,
}

/// Limits of one daemon.
struct OfService {
    name: String,
    group: Group,
    memory_bytes: Option<u64>,
    /// Read limit for each disk, in bytes per second.
    read_bytes_per_s: Option<u64>,
    disks: Vec<Disk>,
    since: Instant,
}

/// Reads of a daemon with a read limit.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Reads {
    /// Read limit, in MB/s.
    pub(crate) limit_mb_s: f64,
    /// Bytes read since the daemon was started, by its group's count.
    pub(crate) read_bytes: u64,
    /// Time since the daemon was started, in seconds.
    pub(crate) seconds: f64,
}

/// Memory use of groups with a memory limit.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MemoryUse {
    /// The run's group, if limited: all processes that it starts on this host.
    #[serde(flatten)]
    pub(crate) run: Option<Memory>,
    /// Daemons with their own limit, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) services: BTreeMap<String, Memory>,
    /// Servers of a network file system, by process.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) servers: BTreeMap<String, Memory>,
}

/// Burst above a read limit, in seconds of the limit and in bytes: the limit holds on average.
const READ_BURST_S: f64 = 1.0;
const READ_BURST_BYTES: f64 = 1048576.0;

impl Limits {
    pub(crate) fn new(run: &Run, state: &Path) -> Self {
        let memory_bytes = run.settings.memory_mib.map(|mib| mib << 20);
        Limits {
            group: Group::of_state(state).within("run"),
            memory_bytes,
            came_from: Group::here(),
            services: Vec::new(),
            servers: Vec::new(),
        }
    }

    /// Moves this process into the run's group, if the study limits memory.
    pub(crate) fn enter(&self, journal: &mut Journal) -> Result<(), Error> {
        let Some(bytes) = self.memory_bytes else { return Ok(()) };
        journal.note(Change::Group(self.group.clone()))?;
        // Processes are in subgroups: in version 2 a group that enables controllers for subgroups has no processes.
        let driver = self.group.within("driver");
        driver
            .make()
            .and_then(|()| self.group.limit_memory(bytes))
            .and_then(|()| driver.join())
            .map_err(Error::failed)
    }

    /// Moves this process back to its former group. The run's group can then be removed.
    pub(crate) fn leave(&self) {
        if self.memory_bytes.is_some()
            && let Err(error) = Group::leave(&self.came_from)
        {
            eprintln!("cannot leave the run's control group: {error}");
        }
    }

    /// Group of a process that the run starts.
    pub(crate) fn group(&self, name: &str) -> Group {
        self.group.within(name)
    }

    /// Lifts the memory limit: later requests to the servers are not part of the run.
    pub(crate) fn lift(&self) -> Result<(), Error> {
        if self.memory_bytes.is_some() {
            self.group.limit_memory(UNLIMITED).map_err(Error::failed)
        } else {
            Ok(())
        }
    }

    /// Sets the limits of a daemon before it is started.
    pub(crate) fn limit_daemon(
        &mut self,
        service: &RunService,
        devices: &[BlockDevice],
        journal: &mut Journal,
    ) -> Result<(), Error> {
        if service.memory_mib.is_none() && service.read_mb_s.is_none() {
            return Ok(());
        }
        let group = self.group(&service.name);
        journal.note(Change::Group(group.clone()))?;
        group.make().map_err(Error::failed)?;
        let memory_bytes = service.memory_mib.map(|mib| mib << 20);
        if let Some(bytes) = memory_bytes {
            group.limit_memory(bytes).map_err(Error::failed)?;
        }
        let disks = devices
            .iter()
            .map(|device| Disk::of(&device.node))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Error::failed)?;
        let read_bytes_per_s = service.read_mb_s.map(|rate| (rate * 1e6).round() as u64);
        if let Some(rate) = read_bytes_per_s {
            if disks.is_empty() {
                return Err(Error::Refused(format!(
                    "service {}: read_mb_s: the file system has no disk. Leave the field out",
                    service.name
                )));
            }
            disks.iter().try_for_each(|disk| group.limit_reads(*disk, rate)).map_err(Error::failed)?;
        }
        let (name, since) = (service.name.clone(), Instant::now());
        self.services.push(OfService { name, group, memory_bytes, read_bytes_per_s, disks, since });
        Ok(())
    }

    /// Limits each server of a network file system to `mib` MiB for file pages, in addition to the present memory of its process,
    /// which would otherwise be most of a scaled-down memory.
    pub(crate) fn limit_servers(
        &mut self,
        servers: BTreeMap<String, Group>,
        mib: u64,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        for (name, group) in servers {
            let found = group.memory().ok_or_else(|| {
                Error::Refused(format!("{name}: this host does not report the memory of the control group"))
            })?;
            let bytes = (found.anonymous_bytes + (mib << 20)).next_multiple_of(1 << 20);
            journal.note(Change::MemoryLimit { group: group.clone(), before_bytes: found.limit_bytes })?;
            group.shrink_memory(bytes).map_err(Error::failed)?;
            self.servers.push((name, group, bytes));
        }
        Ok(())
    }

    /// Memory use of all groups with a limit; `None` without limits.
    pub(crate) fn memory(&self) -> Option<MemoryUse> {
        let limited = |service: &&OfService| service.memory_bytes.is_some();
        let services = self.services.iter().filter(limited);
        let services = services.filter_map(|one| Some((one.name.clone(), one.group.memory()?))).collect();
        let servers =
            self.servers.iter().filter_map(|(name, group, _)| Some((name.clone(), group.memory()?)));
        let run = self.memory_bytes.and_then(|_| self.group.memory());
        let found = MemoryUse { run, services, servers: servers.collect() };
        (found.run.is_some() || !found.services.is_empty() || !found.servers.is_empty()).then_some(found)
    }

    /// Reads of daemons with a read limit, by name.
    pub(crate) fn reads(&self) -> BTreeMap<String, Reads> {
        let of = |one: &OfService| {
            let limit = one.read_bytes_per_s?;
            let read_bytes = one.disks.iter().filter_map(|disk| one.group.read_bytes(*disk)).sum();
            let reads = Reads {
                limit_mb_s: limit as f64 / 1e6,
                read_bytes,
                seconds: one.since.elapsed().as_secs_f64(),
            };
            Some((one.name.clone(), reads))
        };
        self.services.iter().filter_map(of).collect()
    }

    /// Differences from the limits that were set.
    pub(crate) fn problems(&self) -> Vec<String> {
        let memory = |what: &str, group: &Group, bytes: u64| {
            let found = group.memory().and_then(|memory: Memory| memory.limit_bytes);
            // The kernel rounds to pages.
            let same = found.is_some_and(|found| found.abs_diff(bytes) < 1 << 20);
            (!same).then(|| format!("wrong memory limit of {what} (found {found:?} bytes, expected {bytes})"))
        };
        let mut found: Vec<String> = Vec::new();
        found.extend(self.memory_bytes.and_then(|bytes| memory("the run", &self.group, bytes)));
        for (name, group, bytes) in &self.servers {
            found.extend(memory(name, group, *bytes));
        }
        for one in &self.services {
            found.extend(one.memory_bytes.and_then(|bytes| memory(&one.name, &one.group, bytes)));
            let Some(rate) = one.read_bytes_per_s else { continue };
            for disk in &one.disks {
                let limit = one.group.read_limit(*disk);
                if limit != Some(rate) {
                    found.push(format!(
                        "wrong read limit of {} (found {limit:?} bytes/s, expected {rate})",
                        one.name
                    ));
                }
                let allowed =
                    rate as f64 * (one.since.elapsed().as_secs_f64() + READ_BURST_S) + READ_BURST_BYTES;
                match one.group.read_bytes(*disk) {
                    Some(read) if read as f64 <= allowed => {}
                    Some(read) => found.push(format!(
                        "{} exceeded its read limit (found {read} bytes in {:.1} s, expected at most {rate} bytes/s)",
                        one.name,
                        one.since.elapsed().as_secs_f64()
                    )),
                    None => found.push(format!("reads of {} are not counted on this host", one.name)),
                }
            }
        }
        found
    }
}
