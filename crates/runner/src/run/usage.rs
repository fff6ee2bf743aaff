//! Resource use of a run: memory, CPU time, network, CPU steal.

use std::collections::BTreeMap;
use std::path::Path;

use weir_daemons::cgroup::{Cpu, Memory};
use weir_daemons::process;
use weir_host::page_cache::{self, Residency};
use weir_network::{Counters, Network, counters};
use weir_study::{FileSystem, Run};

use crate::Error;
use crate::cgroup::limits::{Limits, MemoryUse};
use crate::files::placement::Placement;
use weir_host::steal::{Steal, Ticks};

/// Bytes of each class's files in the page cache; empty where files are not read through it.
pub(crate) fn residency(run: &Run, places: &[Placement]) -> Result<BTreeMap<String, Residency>, Error> {
    let cached = |place: &&Placement| run.settings.buffered && !place.is_raw();
    let of = |place: &Placement| {
        let found = page_cache::residency(&place.path).map_err(Error::failed)?;
        Ok((place.class.name.clone(), found))
    };
    places.iter().filter(cached).map(of).collect()
}

/// Resource use since boot, or between two points in time.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    /// By host of the test network, if the file system is on one.
    pub(crate) network: BTreeMap<String, Counters>,
    /// CPU time: `driver` is this process; others by their name in the state folder.
    pub(crate) cpu: BTreeMap<String, Cpu>,
    /// CPU steal of the machine.
    pub(crate) steal: Option<Steal>,
    /// All CPU ticks until now.
    ticks: Option<Ticks>,
    /// At the end: memory of groups with a limit.
    pub(crate) memory: Option<MemoryUse>,
    /// At the end: memory of each process, by its name in the state folder.
    pub(crate) memory_of: BTreeMap<String, Memory>,
}

impl Use {
    pub(crate) fn now(state: &Path, filesystem: &FileSystem, limits: &Limits) -> Result<Self, Error> {
        let mut found = Use {
            network: BTreeMap::new(),
            cpu: BTreeMap::new(),
            steal: None,
            ticks: Ticks::now(),
            memory: None,
            memory_of: BTreeMap::new(),
        };
        if filesystem.network.is_some()
            && let Some(network) = Network::load(state).map_err(Error::failed)?
        {
            for host in &network.hosts {
                let moved = counters(&host.namespace.path()).map_err(Error::failed)?;
                found.network.insert(host.name.clone(), moved);
            }
        }
        found.cpu.insert("driver".to_owned(), own_cpu());
        for process in process::all(state).map_err(Error::failed)? {
            if let Some(memory) = process.launch.group.memory() {
                found.memory_of.insert(process.launch.name.clone(), memory);
            }
            if let Some(cpu) = process.launch.group.cpu() {
                found.cpu.insert(process.launch.name, cpu);
            }
        }
        found.memory = limits.memory();
        Ok(found)
    }

    pub(crate) fn since(mut self, before: Use) -> Use {
        self.steal = self.ticks.zip(before.ticks).map(|(now, then)| now.since(then));
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

/// CPU time of this process and of its ended children, such as fio.
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
