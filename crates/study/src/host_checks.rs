//! Checks of the field `hosts` of a study.

use crate::cells::{levels_by_factor, settings_of_cells};
use crate::filesystem::FileSystem;
use crate::spec::Study;
use crate::testbed::Testbed;

/// Fewest and most client hosts of one run.
const CLIENTS: std::ops::RangeInclusive<u32> = 2..=256;
/// Settings that a run makes on disks of its own host.
const OF_DISKS: [&str; 4] = ["scheduler", "queue_depth", "wbt_lat_usec", "read_ahead_kib"];

/// Problems, by field.
pub(crate) fn check(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    let Some(hosts) = study.hosts else { return Vec::new() };
    let mut found = Vec::new();
    let mut problem = |field: &str, message: String| found.push((field.to_owned(), message));
    if !CLIENTS.contains(&hosts.clients) {
        let (fewest, most) = (CLIENTS.start(), CLIENTS.end());
        let message =
            format!("is {}; it must be from {fewest} to {most}: leave `hosts` out for one", hosts.clients);
        problem("hosts.clients", message);
    }
    if testbed.is_virtual() {
        let message = format!("is given, but testbed {} has no hosts: leave it out", testbed.name());
        problem("hosts", message);
    }
    if study.access.is_some() {
        problem("hosts", "is given, but `access` measures one client: leave one of them out".to_owned());
    }
    if !study.services.is_empty() {
        let message = "is given, but `services` run on the host of a single client: leave one of them out";
        problem("hosts", message.to_owned());
    }
    let levels = levels_by_factor(study);
    if settings_of_cells(study).any(|settings| settings.kernel.is_some()) {
        let field = if study.factors.kernel.is_some() { "factors.kernel" } else { "hold.kernel" };
        let message = "is given, but a study with `hosts` boots none of its hosts: run it once under each kernel, each time with a label";
        problem(field, message.to_owned());
    }
    let own = settings_of_cells(study).find_map(|settings| {
        let name = settings.filesystem;
        (!FileSystem::load(&name)?.mounted).then_some(name)
    });
    if let Some(name) = own {
        let message = format!(
            "is {name}, which each client would make on its own disks: use one that all clients mount ({})",
            FileSystem::names()
                .filter(|name| FileSystem::load(name).is_some_and(|known| known.mounted))
                .collect::<Vec<_>>()
                .join(", ")
        );
        problem(
            if study.factors.filesystem.is_some() { "factors.filesystem" } else { "hold.filesystem" },
            message,
        );
    }
    for (name, levels) in &levels {
        if OF_DISKS.contains(&name.as_str()) && levels.len() > 1 {
            let message = "is varied, but a run of several hosts does not change settings of its servers' disks: leave it out";
            problem(&format!("factors.{name}"), message.to_owned());
        }
    }
    found
}
