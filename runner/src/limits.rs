//! Memory that a run may use, and what it used: memory, processor time, network.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_fsbench::Residency;
use weir_network::{Counters, Network, counters};
use weir_services::cgroup::{Cpu, Memory};
use weir_services::{Group, process};
use weir_studies::{FileSystem, Run};

use crate::Error;
use crate::journal::{Change, Journal};
use crate::place::Place;

/// The control group of a run: this process, and whatever it starts.
pub(crate) struct Limits {
    group: Group,
    memory_bytes: Option<u64>,
    /// Where this process was before.
    came_from: Vec<(PathBuf, PathBuf)>,
}

fn failed(error: weir_services::Error) -> Error {
    Error::Failed(error.to_string())
}

impl Limits {
    pub(crate) fn new(run: &Run, state: &Path) -> Self {
        let memory_bytes = run.settings.memory_mib.map(|mib| mib << 20);
        Limits { group: Group::of_state(state).within("run"), memory_bytes, came_from: Group::here() }
    }

    /// Puts this process into the run's group, where the study limits memory; else it stays where it is.
    pub(crate) fn enter(&self, journal: &mut Journal) -> Result<(), Error> {
        let Some(bytes) = self.memory_bytes else { return Ok(()) };
        journal.note(Change::Group(self.group.clone()))?;
        // Processes lie in groups within it: in version 2 a group that hands on controllers has none of its own.
        let driver = self.group.within("driver");
        driver
            .make()
            .and_then(|()| self.group.limit_memory(bytes))
            .and_then(|()| driver.join())
            .map_err(failed)
    }

    /// Goes back to where this process was, so that the group can be removed.
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

    /// What is not as it was set.
    pub(crate) fn problem(&self) -> Option<String> {
        let bytes = self.memory_bytes?;
        let found = self.group.memory().and_then(|memory| memory.limit_bytes);
        (found != Some(bytes)).then(|| format!("the memory limit is {found:?}, not {bytes} bytes"))
    }
}

/// Bytes of the files of each class in the page cache; empty where files are not read through it.
pub(crate) fn residency(run: &Run, places: &[Place]) -> Result<BTreeMap<String, Residency>, Error> {
    let cached = |place: &&Place| run.settings.buffered && !place.is_raw();
    let of = |place: &Place| {
        let found = weir_fsbench::residency(&place.path).map_err(|error| Error::Failed(error.to_string()))?;
        Ok((place.class.name.clone(), found))
    };
    places.iter().filter(cached).map(of).collect()
}

/// What was used until now, or between two such moments.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Use {
    /// By host of the test network, where the file system is on one.
    pub(crate) network: BTreeMap<String, Counters>,
    /// Processor time: `driver` is this process; others by their name in the state folder.
    pub(crate) cpu: BTreeMap<String, Cpu>,
    /// At the end: of the run's group, where memory is limited.
    pub(crate) memory: Option<Memory>,
    /// At the end: of each process, by its name in the state folder.
    pub(crate) memory_of: BTreeMap<String, Memory>,
}

impl Use {
    pub(crate) fn now(state: &Path, filesystem: &FileSystem, limits: &Limits) -> Result<Self, Error> {
        let mut found =
            Use { network: BTreeMap::new(), cpu: BTreeMap::new(), memory: None, memory_of: BTreeMap::new() };
        if filesystem.network.is_some()
            && let Some(network) = Network::load(state).map_err(|error| Error::Failed(error.to_string()))?
        {
            for host in &network.hosts {
                let moved =
                    counters(&host.namespace.path()).map_err(|error| Error::Failed(error.to_string()))?;
                found.network.insert(host.name.clone(), moved);
            }
        }
        found.cpu.insert("driver".to_owned(), own_cpu());
        for process in process::all(state).map_err(failed)? {
            if let Some(memory) = process.launch.group.memory() {
                found.memory_of.insert(process.launch.name.clone(), memory);
            }
            if let Some(cpu) = process.launch.group.cpu() {
                found.cpu.insert(process.launch.name, cpu);
            }
        }
        found.memory = limits.memory_bytes.and_then(|_| limits.group.memory());
        Ok(found)
    }

    pub(crate) fn since(mut self, before: Use) -> Use {
        for (host, moved) in &mut self.network {
            *moved = *moved - before.network.get(host).copied().unwrap_or_default();
        }
        for (name, cpu) in &mut self.cpu {
            if let Some(before) = before.cpu.get(name) {
                cpu.user_ns = cpu.user_ns.saturating_sub(before.user_ns);
                cpu.system_ns = cpu.system_ns.saturating_sub(before.system_ns);
            }
        }
        self
    }
}

/// Of this process and of its children that have ended, such as fio.
fn own_cpu() -> Cpu {
    let mut cpu = Cpu { user_ns: 0, system_ns: 0 };
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: rusage is plain numbers; the kernel fills it in.
        let used = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut used);
            used
        };
        let ns = |time: libc::timeval| {
            u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_usec * 1000).unwrap_or(0)
        };
        cpu.user_ns += ns(used.ru_utime);
        cpu.system_ns += ns(used.ru_stime);
    }
    cpu
}
