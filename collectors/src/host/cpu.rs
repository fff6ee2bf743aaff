//! CPUs of the host.

use std::collections::BTreeSet;
use std::fs;

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::{Fact, text};

/// CPUs of the host.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cpu {
    /// Model name.
    pub model: Fact<String>,
    /// CPUs online.
    pub online: Fact<String>,
    /// Their number.
    pub count: usize,
    /// Frequency governors in use, one name if all are the same.
    pub governor: Fact<String>,
    /// Revision of the microcode.
    pub microcode: Fact<String>,
    /// The hypervisor, if the CPU reports one.
    pub virtualisation: Fact<String>,
    /// Whether turbo frequencies are off, if the driver reports it.
    pub turbo_off: Fact<String>,
}

impl Cpu {
    pub(super) fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let missing = |name: &str| format!("/proc/cpuinfo has no {name:?}");
        Cpu {
            model: Fact::from_option(field("model name"), &missing("model name")),
            online: text("/sys/devices/system/cpu/online"),
            count: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            governor: governor(),
            microcode: Fact::from_option(field("microcode"), &missing("microcode")),
            virtualisation: virtualisation(&field("flags").unwrap_or_default()),
            turbo_off: text("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        }
    }
}

fn governor() -> Fact<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        if let Ok(name) = fs::read_to_string(entry.path().join("cpufreq/scaling_governor")) {
            found.insert(name.trim().to_owned());
        }
    }
    if found.is_empty() {
        return Fact::missing("none: no cpufreq");
    }
    Fact::Known(found.into_iter().collect::<Vec<_>>().join(", "))
}

fn virtualisation(flags: &str) -> Fact<String> {
    if !flags.split(' ').any(|flag| flag == "hypervisor") {
        return Fact::missing("the CPU reports no hypervisor");
    }
    let vendor = text("/sys/hypervisor/type");
    let product = text("/sys/class/dmi/id/product_name");
    match (vendor, product) {
        (Fact::Known(vendor), _) => Fact::Known(vendor),
        (_, Fact::Known(product)) => Fact::Known(format!("hypervisor, product {product}")),
        _ => Fact::Known("unknown hypervisor".to_owned()),
    }
}
