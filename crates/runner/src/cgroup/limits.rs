//! Limits of a run, its daemons and the servers of its file system: memory, and reads of disks.

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

/// More bytes than a host has, and fewer than either version of control groups takes for a mistake.
const UNLIMITED: u64 = 1 << 50;

/// The control group of a run: this process, and whatever it starts.
pub(crate) struct Limits {
    group: Group,
    memory_bytes: Option<u64>,
    /// Groups of this process before.
    came_from: Vec<(PathBuf, PathBuf)>,
    /// Of services that have some of their own.
    services: Vec<OfService>,
    /// Servers of a network file system: process, group, limit in bytes.
    servers: Vec<(String, Group, u64)>,
}

/// Limits of one service.
struct OfService {
    name: String,
    group: Group,
    memory_bytes: Option<u64>,
    /// Bytes a second of each disk.
    read_bytes_per_s: Option<u64>,
    disks: Vec<Disk>,
    since: Instant,
}

/// What a service with a limit read from disks.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Reads {
    /// What it may read, in MB/s.
    pub(crate) limit_mb_s: f64,
    /// What it read since it was started, by its group's own count.
    pub(crate) read_bytes: u64,
    /// That time, in seconds.
    pub(crate) seconds: f64,
}

/// What groups whose memory is limited hold.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MemoryUse {
    /// The run's own, if it is limited: all that it starts on this host.
    #[serde(flatten)]
    pub(crate) run: Option<Memory>,
    /// Services with a limit of their own, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) services: BTreeMap<String, Memory>,
    /// Servers of a network file system, by process.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) servers: BTreeMap<String, Memory>,
}

/// A limit of reads is kept on average: what may come at once besides, in seconds of the limit and in bytes.
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

    /// Puts this process into the run's group, where the study limits memory; else it stays where it is.
    pub(crate) fn enter(&self, journal: &mut Journal) -> Result<(), Error> {
        let Some(bytes) = self.memory_bytes else { return Ok(()) };
        journal.note(Change::Group(self.group.clone()))?;
        // Processes are in groups within it: in version 2 a group that enables controllers for others has no processes.
        let driver = self.group.within("driver");
        driver
            .make()
            .and_then(|()| self.group.limit_memory(bytes))
            .and_then(|()| driver.join())
            .map_err(Error::failed)
    }

    /// Moves this process back to its former group, so that the run's can be removed.
    pub(crate) fn leave(&self) {
        if self.memory_bytes.is_some()
            && let Err(error) = Group::leave(&self.came_from)
        {
            eprintln!("cannot leave the run's control group: {error}");
        }
    }

    /// The group of something that the run starts.
    pub(crate) fn group(&self, name: &str) -> Group {
        self.group.within(name)
    }

    /// Lifts the memory limit: requests to its servers from here on are not part of the run.
    pub(crate) fn lift(&self) -> Result<(), Error> {
        if self.memory_bytes.is_some() {
            self.group.limit_memory(UNLIMITED).map_err(Error::failed)
        } else {
            Ok(())
        }
    }

    /// Limits what one service may use, before it is started.
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
                    "service {}: read_mb_s limits reads of disks, and there are none below these files: leave it out",
                    service.name
                )));
            }
            disks.iter().try_for_each(|disk| group.limit_reads(*disk, rate)).map_err(Error::failed)?;
        }
        let (name, since) = (service.name.clone(), Instant::now());
        self.services.push(OfService { name, group, memory_bytes, read_bytes_per_s, disks, since });
        Ok(())
    }

    /// Gives each server of a network file system `mib` MiB for pages of files, in addition to what its program has now: that
    /// would otherwise be most of a scaled-down memory.
    pub(crate) fn limit_servers(
        &mut self,
        servers: BTreeMap<String, Group>,
        mib: u64,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        for (name, group) in servers {
            let found = group.memory().ok_or_else(|| {
                Error::Refused(format!("{name}: this host does not report the memory of its control group"))
            })?;
            let bytes = (found.anonymous_bytes + (mib << 20)).next_multiple_of(1 << 20);
            journal.note(Change::MemoryLimit { group: group.clone(), before_bytes: found.limit_bytes })?;
            group.shrink_memory(bytes).map_err(Error::failed)?;
            self.servers.push((name, group, bytes));
        }
        Ok(())
    }

    /// Memory in use by all groups with a limit; `None` where there is no limit.
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

    /// What services whose reads are limited have read, by name.
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

    /// What is not as it was set.
    pub(crate) fn problems(&self) -> Vec<String> {
        let memory = |what: &str, group: &Group, bytes: u64| {
            let found = group.memory().and_then(|memory: Memory| memory.limit_bytes);
            // The kernel rounds to pages.
            let same = found.is_some_and(|found| found.abs_diff(bytes) < 1 << 20);
            (!same).then(|| format!("the memory limit of {what} is {found:?}, not {bytes} bytes"))
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
                    found.push(format!("the read limit of {} is {limit:?}, not {rate} bytes/s", one.name));
                }
                let allowed =
                    rate as f64 * (one.since.elapsed().as_secs_f64() + READ_BURST_S) + READ_BURST_BYTES;
                match one.group.read_bytes(*disk) {
                    Some(read) if read as f64 <= allowed => {}
                    Some(read) => found.push(format!(
                        "{} read {read} bytes in {:.1} s, more than {rate} bytes/s",
                        one.name,
                        one.since.elapsed().as_secs_f64()
                    )),
                    None => found.push(format!("what {} read is not counted on this host", one.name)),
                }
            }
        }
        found
    }
}
