//! Host record (`host.json`): facts of a host that a measurement may depend on.
//!
//! A fact that is not known is absent with a reason, never guessed.

mod cpu;
mod device;
mod fact;
mod kernel;
mod mounts;
mod system;
mod tools;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use cpu::Cpu;
pub use device::Device;
pub use fact::Fact;
pub use kernel::BootedKernel;
pub use mounts::FileSystem;
pub use system::{CgroupMode, Load, Pressure, System};

use crate::Disk;

/// The content of `host.json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HostRecord {
    /// Kernel, memory, clock, confinement and load.
    pub system: System,
    /// The kernel that the playbook booted for the run. Absent if the study names no kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<BootedKernel>,
    /// CPUs.
    pub cpu: Cpu,
    /// Disks of the run, by name.
    pub devices: BTreeMap<String, Device>,
    /// File systems of the run and those on its disks, by mount point.
    pub file_systems: BTreeMap<String, FileSystem>,
    /// Versions of the programs of a run, by program.
    pub tools: BTreeMap<String, Fact<String>>,
    /// This program.
    pub weir: Weir,
}

/// The program that made the record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Weir {
    /// Its version.
    pub version: &'static str,
    /// The git commit it was built from, `-dirty` appended if files differed from it.
    pub commit: Fact<&'static str>,
}

/// Reads the record. `mount_points` are paths on file systems to describe; those mounted from `disks` are
/// described in any case.
pub fn record(disks: &[Disk], mount_points: &[&std::path::Path]) -> HostRecord {
    let commit = match crate::GIT_COMMIT {
        "unknown" => Fact::missing("built outside a git repository"),
        commit => Fact::Known(commit),
    };
    HostRecord {
        system: System::read(),
        kernel: None,
        cpu: Cpu::read(),
        devices: disks.iter().map(|disk| (disk.name.to_string(), Device::read(disk))).collect(),
        file_systems: mounts::read(disks, mount_points),
        tools: tools::versions(),
        weir: Weir { version: env!("CARGO_PKG_VERSION"), commit },
    }
}
