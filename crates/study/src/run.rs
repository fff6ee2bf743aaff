//! One run, resolved: `run.json`.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use weir_vocabulary::{IoPriority, TrafficKind};
use weir_workload::sessions::AnyWorkload;

use crate::access::RunAccess;
use crate::contract::Contract;
use crate::control_group::ControlGroup;
use crate::hosts::{Hosts, Lost};
use crate::level::Scheduler;
use crate::name;
use crate::site::Site;
use crate::spec::{Capture, Objective, Placement, Records, Settings};
use crate::testbed::Testbed;

/// Version of the layout of `run.json`.
pub const FORMAT: u32 = 1;
/// The kernel's scheduler that leaves requests as they come.
const HANDS_ON: &str = "none";
/// Tags of a loop device.
pub(crate) const MOST_TAGS: u32 = 128;

/// Name of the one device of an integrated server.
pub(crate) const SHARED_DEVICE: &str = "shared";

/// One repetition of a cell. Whoever carries it out needs nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of this layout.
    pub format: u32,
    /// Hash of everything that decides the outcome; names the run's folder.
    #[serde(deserialize_with = "name::id")]
    pub id: String,
    /// Name of the study.
    #[serde(deserialize_with = "name::study")]
    pub study: String,
    /// The study's question.
    pub question: String,
    /// Where it is carried out.
    pub testbed: Testbed,
    /// Hash of the levels; the same for all repetitions of a cell.
    pub cell: String,
    /// Level of each varied factor, as shown in tables.
    pub levels: BTreeMap<String, Value>,
    /// The state the machine is put in.
    pub settings: Settings,
    /// Repetition of the cell, from 0.
    pub repetition: u32,
    /// Block of runs in which every cell comes once; comparisons are paired within it.
    pub block: u32,
    /// Place in the order of execution, from 0.
    pub order: u32,
    /// Seed of its workloads; the same for all cells of a block, so that they are asked the same.
    pub seed: u64,
    /// Time before the measured interval, in seconds.
    pub warmup_s: f64,
    /// Length of the measured interval, in seconds.
    pub duration_s: f64,
    /// Whether block requests are captured.
    pub capture: Capture,
    /// Share of block requests that may be lost.
    pub allowed_loss: f64,
    /// Whether completions that BPF misses are filled in from a second source.
    pub fill_losses: bool,
    /// Simulator: what is kept.
    #[serde(default, skip_serializing_if = "Records::is_requests")]
    pub records: Records,
    /// Simulator: length of what `series.json` tells apart, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_s: Option<f64>,
    /// Simulator: placement of files on the disks.
    #[serde(default, skip_serializing_if = "Placement::is_packed")]
    pub placement: Placement,
    /// Several hosts carry it out together; one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Who asks.
    pub classes: Vec<RunClass>,
    /// What is asked.
    pub devices: Vec<RunDevice>,
    /// Services that run meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<RunService>,
    /// Its scheduler is a policy of weir's own in front of the disks of block devices; the kernel's before them is none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub live: bool,
    /// What opening and reading a file costs; its classes are among `classes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<RunAccess>,
}

/// A service of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunService {
    /// Its name within the study.
    #[serde(deserialize_with = "name::service")]
    pub name: String,
    /// What it is (`weir service list`); absent if it is a site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The site that it is; absent if it is one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// Its port on loopback.
    pub port: u16,
    /// Its settings, where they differ from its description's.
    pub settings: BTreeMap<String, String>,
    /// The service that it passes on to what it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Memory for the most popular files, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_mib: Option<u64>,
    /// Memory that it may use, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// MB (10^6 bytes) a second that it may read from the disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_mb_s: Option<f64>,
}

/// One class of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunClass {
    /// Its name.
    #[serde(deserialize_with = "name::class")]
    pub name: String,
    /// Name of the workload (`weir list workloads`).
    pub workload: String,
    /// The workload with the study's replacements.
    pub recipe: AnyWorkload,
    /// Number of clients.
    pub clients: u32,
    /// What carries it out.
    pub engine: Engine,
    /// I/O priority; absent: the kernel's default.
    pub priority: Option<IoPriority>,
    /// Values of its control group; absent: its processes stay where the run is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<ControlGroup>,
    /// What it was promised.
    pub objective: Option<Objective>,
    /// Name of the device it asks.
    #[serde(deserialize_with = "name::asked_device")]
    pub device: String,
    /// The service that is asked for its files; absent: they are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Then, mean time between an answer and the next request of a client, in ms; absent: an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_ms: Option<f64>,
    /// Simulator, and devices with policies: what it wants, its weight and scheduler; of the simulator its buffer cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedClass>,
}

/// What a simulator, or a server with a policy, has to know of a class besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedClass {
    /// What it wants of schedulers.
    pub wants: TrafficKind,
    /// Its weight with schedulers.
    pub weight: f64,
    /// What its clients are promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// The scheduler of the disks that it asks.
    pub scheduler: Scheduler,
    /// Stripe unit of its files.
    pub stripe_unit_kib: u64,
    /// The disks of its files, one behind the other; all of its device if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<Vec<u32>>,
    /// The first place of each disk where its packed files may begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_mib: Option<u64>,
    /// Its buffer cache.
    pub cache_mib: u64,
}

/// What carries a class out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// weir's own replayer: open loop.
    Replay,
    /// fio: closed loop.
    Fio,
    /// Browsers that ask a web server: either loop.
    Web,
    /// Browsers that visit a site with a database behind it: closed loop.
    Site,
    /// The benchmark of opening and reading files: one reader.
    Access,
}

/// One device of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunDevice {
    /// Its name within the study.
    #[serde(deserialize_with = "name::device")]
    pub name: String,
    /// Model of each head.
    pub profile: String,
    /// Number of heads striped together.
    pub heads: u32,
    /// Stripe unit, in KiB.
    pub stripe_unit_kib: u64,
    /// Size of all heads together, in MiB.
    pub size_mib: u64,
    /// Whether its server can put policies of weir's own in front of the heads: some run of the study has one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub live: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Run {
    /// Length of the whole run, in ns.
    pub fn length_ns(&self) -> i64 {
        ((self.warmup_s + self.duration_s) * 1e9).round() as i64
    }

    /// Length of the warm-up, in ns.
    pub fn warmup_ns(&self) -> i64 {
        (self.warmup_s * 1e9).round() as i64
    }

    /// The part of a client of a run of several hosts, by its place from 0: the same run with random streams of its own.
    pub fn part(&self, client: usize) -> Run {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 is a study's own use of its seed.
        rng.set_stream(client as u64 + 1);
        Run { seed: rand::RngExt::random(&mut rng), ..self.clone() }
    }
    /// The scheduler of a device: that of the class which has it for itself, or the study's.
    pub fn scheduler_of(&self, device: &str) -> &Scheduler {
        let asker = self.classes.iter().find(|class| class.device == device);
        let own = asker.and_then(|class| class.simulated.as_ref());
        own.map_or(&self.settings.scheduler, |simulated| &simulated.scheduler)
    }

    /// The state of the kernel's queue before a device. Where a policy of weir's own decides, the kernel hands everything on:
    /// its scheduler is none, and it has as many tags as there are.
    pub fn kernel_settings(&self, device: &str) -> Settings {
        let scheduler = self.scheduler_of(device);
        if scheduler.is_of_kernel() {
            return Settings { scheduler: scheduler.clone(), ..self.settings.clone() };
        }
        Settings { scheduler: Scheduler::named(HANDS_ON), queue_depth: MOST_TAGS, ..self.settings.clone() }
    }

    /// Gives the run the id that its content has. What only describes it is left out, so that rewording a
    /// question or adding a cell discards no finished work.
    pub(crate) fn name_by_content(&mut self) {
        let mut content = self.clone();
        content.id = String::new();
        content.question = String::new();
        content.order = 0;
        content.levels = BTreeMap::new();
        if let Some(hosts) = &mut content.hosts {
            // It says what becomes of the study, not of the run.
            hosts.lost = Lost::default();
        }
        content.cell = String::new();
        for class in &mut content.classes {
            class.objective = None;
            class.recipe.forget_words();
        }
        self.id = hash(&content);
    }
}

/// The first 12 hex digits of the SHA-256 of a value's JSON.
pub(crate) fn hash(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
