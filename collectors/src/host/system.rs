//! System facts: kernel, memory, clock, confinement and load.

use std::collections::BTreeMap;
use std::fs;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, text};

/// The host as a whole.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct System {
    /// Name of the host.
    pub host_name: Fact<String>,
    /// `uname -r`.
    pub kernel_release: Fact<String>,
    /// `uname -v`.
    pub kernel_version: Fact<String>,
    /// The kernel's command line.
    pub command_line: Fact<String>,
    /// `PRETTY_NAME` of the distribution.
    pub distribution: Fact<String>,
    /// Memory in bytes.
    pub memory_bytes: Fact<u64>,
    /// Swap in bytes.
    pub swap_bytes: Fact<u64>,
    /// Clock source of the kernel.
    pub clock_source: Fact<String>,
    /// `none`, `integrity` or `confidentiality`.
    pub lockdown: Fact<String>,
    /// Preemption model: `none`, `voluntary`, `full` or `lazy`, if the kernel reports it.
    pub preemption: Fact<String>,
    /// Control-group hierarchies and their controllers.
    pub cgroup: Fact<CgroupMode>,
    /// Load at the time of the record.
    pub load: Fact<Load>,
    /// Pressure stall information, by resource.
    pub pressure: BTreeMap<String, Fact<Pressure>>,
}

/// Version of control groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CgroupMode {
    /// `v1`, `v2` or `hybrid`.
    pub mode: &'static str,
    /// Controllers of the unified hierarchy.
    pub v2_controllers: Vec<String>,
    /// Controllers with their own hierarchies.
    pub v1_controllers: Vec<String>,
}

/// `/proc/loadavg`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// Mean of the last minute.
    pub minutes_1: f64,
    /// Mean of the last 5 minutes.
    pub minutes_5: f64,
    /// Mean of the last 15 minutes.
    pub minutes_15: f64,
}

/// One file of `/proc/pressure`, in per cent of the last 10 s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Pressure {
    /// Share of time in which some task waited.
    pub some_avg10: f64,
    /// Share of time in which all tasks waited; absent for the CPU on some kernels.
    pub full_avg10: Option<f64>,
}

impl System {
    pub(super) fn read() -> Self {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = |name: &str| {
            let value = memory.lines().find_map(|line| {
                let rest = line.strip_prefix(name)?.strip_prefix(':')?;
                rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()
            });
            Fact::from_option(value.map(|kib| kib * 1024), &format!("/proc/meminfo has no {name}"))
        };
        System {
            host_name: text("/proc/sys/kernel/hostname"),
            kernel_release: text("/proc/sys/kernel/osrelease"),
            kernel_version: text("/proc/sys/kernel/version"),
            command_line: text("/proc/cmdline"),
            distribution: distribution(),
            memory_bytes: kib("MemTotal"),
            swap_bytes: kib("SwapTotal"),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            lockdown: lockdown(),
            preemption: preemption(),
            cgroup: cgroup_mode(),
            load: load(),
            pressure: ["cpu", "io", "memory"]
                .map(|resource| (resource.to_owned(), pressure(resource)))
                .into_iter()
                .collect(),
        }
    }
}

fn distribution() -> Fact<String> {
    text("/etc/os-release").map(|release| {
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        name.unwrap_or("unnamed").trim_matches('"').to_owned()
    })
}

fn lockdown() -> Fact<String> {
    let reason = "securityfs has no file lockdown, or cannot be mounted to look";
    Fact::from_option(crate::capability::lockdown_mode(), reason)
}

/// From the version (`PREEMPT_DYNAMIC` alone does not say which) and, where debugfs is there, the choice.
fn preemption() -> Fact<String> {
    match text("/sys/kernel/debug/sched/preempt") {
        Fact::Known(modes) => {
            let chosen = modes.split(' ').find(|mode| mode.starts_with('(')).unwrap_or(&modes);
            Fact::Known(chosen.trim_matches(['(', ')']).to_owned())
        }
        missing => missing,
    }
}

fn cgroup_mode() -> Fact<CgroupMode> {
    let Ok(mounts) = weir_host::mounts::own() else {
        return Fact::missing("/proc/self/mountinfo cannot be read");
    };
    let (mut v1, mut v2_at) = (Vec::new(), None);
    for mount in mounts {
        match mount.fs_type.as_str() {
            "cgroup2" => v2_at = Some(mount.point),
            "cgroup" => {
                let options = mount.super_options.split(',');
                let known = options.filter(|option| !matches!(*option, "rw" | "ro" | "xattr"));
                v1.extend(known.map(str::to_owned));
            }
            _ => {}
        }
    }
    let mode = match (v1.is_empty(), v2_at.is_some()) {
        (true, true) => "v2",
        (false, true) => "hybrid",
        (false, false) => "v1",
        (true, false) => return Fact::missing("no cgroup hierarchy is mounted"),
    };
    let v2_controllers = v2_at
        .and_then(|at| fs::read_to_string(at.join("cgroup.controllers")).ok())
        .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    Fact::Known(CgroupMode { mode, v2_controllers, v1_controllers: v1 })
}

fn load() -> Fact<Load> {
    text("/proc/loadavg").map(|line| {
        let mut values = line.split(' ').map_while(|value| value.parse().ok());
        let mut next = || values.next().unwrap_or(f64::NAN);
        Load { minutes_1: next(), minutes_5: next(), minutes_15: next() }
    })
}

fn pressure(resource: &str) -> Fact<Pressure> {
    let path = format!("/proc/pressure/{resource}");
    let average = |text: &str, kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        line.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
    };
    match text(&path) {
        Fact::Known(text) => match average(&text, "some") {
            Some(some_avg10) => Fact::Known(Pressure { some_avg10, full_avg10: average(&text, "full") }),
            None => Fact::missing(format!("{path} has no line some")),
        },
        Fact::Missing { value, reason } => Fact::Missing { value, reason },
    }
}
