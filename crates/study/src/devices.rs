//! Devices of a study's runs, by architecture and file system.

use crate::filesystem::FileSystem;
use crate::level::Architecture;
use crate::run::{Run, RunDevice, SHARED_DEVICE};
use crate::spec::Study;

/// Devices of an architecture. A network file system has one disk for each of its servers.
pub(crate) fn devices(study: &Study, filesystem: &str, architecture: Architecture) -> Vec<RunDevice> {
    let device = |name: &str, heads: u32| RunDevice {
        name: name.to_owned(),
        profile: study.storage.profile.clone(),
        heads,
        stripe_unit_kib: study.storage.stripe_unit_kib,
        size_mib: study.storage.size_mib.saturating_mul(u64::from(heads)),
        live: false,
    };
    if let Some(access) = FileSystem::load(filesystem).and_then(|found| found.network) {
        return (0..study.storage.heads)
            .map(|index| device(&format!("{}-{index}", access.cluster), 1))
            .collect();
    }
    match architecture {
        Architecture::Integrated => vec![device(SHARED_DEVICE, study.storage.heads)],
        Architecture::Partitioned => {
            let share = study.storage.heads / study.classes.len().max(1) as u32;
            study.classes.iter().map(|(name, class)| device(name, class.heads.unwrap_or(share))).collect()
        }
    }
}

/// Devices of all runs, each once.
pub(crate) fn devices_of(runs: &[Run]) -> Vec<RunDevice> {
    let mut devices: Vec<RunDevice> = runs.iter().flat_map(|run| run.devices.iter().cloned()).collect();
    devices.sort();
    devices.dedup();
    // A device that can have weir's schedulers (`live`) also serves runs without them.
    let with_policies: Vec<RunDevice> = devices.iter().filter(|device| device.live).cloned().collect();
    devices
        .retain(|device| device.live || !with_policies.contains(&RunDevice { live: true, ..device.clone() }));
    devices
}
