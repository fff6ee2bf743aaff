//! Runs of several hosts at once.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::FileSystem;
use crate::plan::{apply, cross, is_excluded, levels_by_factor};
use crate::run::Run;
use crate::spec::Study;
use crate::testbed::Testbed;

/// Fewest and most client hosts of one run.
const CLIENTS: std::ops::RangeInclusive<u32> = 2..=256;
/// What a run sets on disks of its own host.
const OF_DISKS: [&str; 4] = ["scheduler", "queue_depth", "wbt_lat_usec", "read_ahead_kib"];

/// Several client hosts ask one storage at the same time: each asks all classes, with requests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Number of client hosts of each run: the first so many of the inventory's group `weir_clients`. Hosts of its group
    /// `weir_servers` record what their disks do meanwhile.
    pub clients: u32,
    /// What becomes of the study when a host is lost. The run is invalid in either case.
    #[serde(default)]
    pub lost: Lost,
}

/// What becomes of a study of several hosts when one of them is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// It ends; the same command goes on with what is missing.
    #[default]
    Stop,
    /// It goes on without the host, as long as the inventory's other clients are enough; without a server it ends.
    Continue,
}

impl Run {
    /// The part of a client of a run of several hosts, by its place from 0: the same run with random streams of its own.
    pub fn part(&self, client: usize) -> Run {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 is a study's own use of its seed.
        rng.set_stream(client as u64 + 1);
        Run { seed: rand::RngExt::random(&mut rng), ..self.clone() }
    }
}

/// What is wrong, by field.
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
        let message =
            "is given, but services run beside the one client that asks them: leave one of them out";
        problem("hosts", message.to_owned());
    }
    let levels = levels_by_factor(study);
    let own = cross(&levels).into_iter().filter(|cell| !is_excluded(study, cell)).find_map(|cell| {
        let name = apply(&study.hold, &cell).filesystem;
        (!FileSystem::load(&name)?.mounted).then_some(name)
    });
    if let Some(name) = own {
        let message = format!(
            "is {name}, which each client would make for itself: name one that all see, mounted before ({})",
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
            let message = "is varied, but the disks are those of servers, which a run of several hosts does not set: leave it out";
            problem(&format!("factors.{name}"), message.to_owned());
        }
    }
    found
}
