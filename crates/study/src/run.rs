//! A resolved run: `run.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use weir_vocabulary::{IoPriority, TrafficKind};
use weir_workload::sessions::AnyWorkload;

use crate::access::RunAccess;
use crate::contract::Contract;
use crate::control_group::ControlGroup;
use crate::hosts::{Hosts, Lost};
use crate::label::LABEL;
use crate::level::Scheduler;
use crate::name;
use crate::site::Site;
use crate::spec::{Capture, Objective, Placement, Records, Settings};
use crate::testbed::Testbed;

/// Version of the layout of a run.
pub const FORMAT: u32 = 1;
/// The kernel's scheduler that does not change the order of requests.
const PASS_THROUGH: &str = "none";
/// Tags of a loop device.
pub(crate) const MOST_TAGS: u32 = 128;

/// Name of the one device of an integrated server.
pub(crate) const SHARED_DEVICE: &str = "shared";

/// One repetition of a cell. It is complete: a runner reads nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of this layout.
    pub format: u32,
    /// Hash of everything that decides the outcome. The name of the folder of the run.
    #[serde(deserialize_with = "name::id")]
    pub id: String,
    /// Name of the study.
    #[serde(deserialize_with = "name::study")]
    pub study: String,
    /// Label that keeps it apart from runs of other kernels or commits, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The question of the study.
    pub question: String,
    /// Its testbed.
    pub testbed: Testbed,
    /// Hash of the levels: the same for all repetitions of a cell.
    pub cell: String,
    /// Level of each varied factor, as shown in tables.
    pub levels: BTreeMap<String, Value>,
    /// Settings of the host for this run.
    pub settings: Settings,
    /// Repetition of the cell, from 0.
    pub repetition: u32,
    /// Block of runs that has every cell once. Comparisons are paired within it.
    pub block: u32,
    /// Whether its block has the same cell once more, and this run is the second of the two (A/A).
    #[serde(default, skip_serializing_if = "is_false")]
    pub duplicate: bool,
    /// Place in the order of execution, from 0.
    pub order: u32,
    /// Seed of its workloads: the same for all cells of a block, which therefore have the same requests.
    pub seed: u64,
    /// Time before the measured interval, in seconds.
    pub warmup_s: f64,
    /// Length of the measured interval, in seconds.
    pub duration_s: f64,
    /// Whether block requests are captured.
    pub capture: Capture,
    /// Share of block requests that may be lost.
    pub allowed_loss: f64,
    /// Whether completions that BPF misses are taken from the kernel's `blk` trace.
    pub fill_losses: bool,
    /// Simulator: records that are kept.
    #[serde(default, skip_serializing_if = "Records::is_requests")]
    pub records: Records,
    /// Simulator: interval of `series.json`, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_s: Option<f64>,
    /// Simulator: placement of files on the disks.
    #[serde(default, skip_serializing_if = "Placement::is_packed")]
    pub placement: Placement,
    /// Client hosts that carry it out together. One host if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Its classes.
    pub classes: Vec<RunClass>,
    /// Its devices.
    pub devices: Vec<RunDevice>,
    /// Daemons that run during it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<RunService>,
    /// Whether one of weir's own schedulers orders the requests of its block devices. The kernel's scheduler is then
    /// `none`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub live: bool,
    /// Measurement of the cost of opening and reading files. Its classes are in `classes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<RunAccess>,
}

/// A daemon of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunService {
    /// Its name within the study.
    #[serde(deserialize_with = "name::service")]
    pub name: String,
    /// The server program (`weir service list`). Absent if it is a site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The web site. Absent if it is a `service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// Its TCP port on loopback.
    pub port: u16,
    /// Its settings that differ from its defaults.
    pub settings: BTreeMap<String, String>,
    /// The daemon that it forwards requests to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Size of the memory file system for its most popular files, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_mib: Option<u64>,
    /// Its memory limit, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Its limit on reads from the disks, in MB/s (10^6 bytes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_mb_s: Option<f64>,
}

/// One class of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunClass {
    /// Its name.
    #[serde(deserialize_with = "name::class")]
    pub name: String,
    /// Name of the workload (`weir list workloads`).
    pub workload: String,
    /// The workload with the study's replacements. Runs share it.
    #[serde(serialize_with = "inner", deserialize_with = "shared")]
    pub recipe: Arc<AnyWorkload>,
    /// Number of clients.
    pub clients: u32,
    /// The load generator of its requests.
    pub engine: Engine,
    /// I/O priority. The kernel's default if absent.
    pub priority: Option<IoPriority>,
    /// Values of its control group. If absent, its processes stay in the group of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<ControlGroup>,
    /// Whether each client has a control group of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cgroup_per_client: bool,
    /// Its objective.
    pub objective: Option<Objective>,
    /// Name of its device.
    #[serde(deserialize_with = "name::asked_device")]
    pub device: String,
    /// The daemon that serves its files. If absent, clients read the files themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// With `through`: mean think time, in ms. Open loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_ms: Option<f64>,
    /// Parameters for the simulator and for weir's own schedulers on devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedClass>,
}

/// Parameters of a class for the simulator and for weir's own schedulers on devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedClass {
    /// Its traffic kind.
    pub wants: TrafficKind,
    /// Its weight.
    pub weight: f64,
    /// Its contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// The scheduler of its disks.
    pub scheduler: Scheduler,
    /// Stripe unit of its files.
    pub stripe_unit_kib: u64,
    /// The disks of its files: consecutive numbers. All disks of its device if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<Vec<u32>>,
    /// Offset on each disk from which its packed files are placed, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_mib: Option<u64>,
    /// Size of its buffer cache, in MiB.
    pub cache_mib: u64,
}

/// Load generator of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// weir's own replayer: open loop.
    Replay,
    /// fio: closed loop.
    Fio,
    /// HTTP clients of a web server: open or closed loop.
    Web,
    /// Emulated browsers of a web site with a database: closed loop.
    Site,
    /// The benchmark of opening and reading files: one reader.
    Access,
}

/// One device of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
    /// Whether its block server can have weir's own schedulers: some run of the study has one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub live: bool,
}

fn inner<S: Serializer>(recipe: &Arc<AnyWorkload>, serializer: S) -> Result<S::Ok, S::Error> {
    recipe.as_ref().serialize(serializer)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<AnyWorkload>, D::Error> {
    AnyWorkload::deserialize(deserializer).map(Arc::new)
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

    /// The part of one client host, by its place from 0: the same run with its own random streams.
    pub fn part(&self, client: usize) -> Run {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 is a study's own use of its seed.
        rng.set_stream(client as u64 + 1);
        Run { seed: rand::RngExt::random(&mut rng), ..self.clone() }
    }
    /// The scheduler of a device: that of the class whose own device it is, or the scheduler of the study.
    pub fn scheduler_of(&self, device: &str) -> &Scheduler {
        let asker = self.classes.iter().find(|class| class.device == device);
        let own = asker.and_then(|class| class.simulated.as_ref());
        own.map_or(&self.settings.scheduler, |simulated| &simulated.scheduler)
    }

    /// Settings of the kernel's queue of a device. Where one of weir's own schedulers decides, the kernel passes requests
    /// through: its scheduler is `none`, with the largest number of tags.
    pub fn kernel_settings(&self, device: &str) -> Settings {
        let scheduler = self.scheduler_of(device);
        if scheduler.is_of_kernel() {
            return Settings { scheduler: scheduler.clone(), ..self.settings.clone() };
        }
        Settings {
            scheduler: Scheduler::named(PASS_THROUGH),
            queue_depth: MOST_TAGS,
            ..self.settings.clone()
        }
    }

    /// The content that decides the id of the run. Descriptive fields are left out: rewording a question or adding a
    /// cell invalidates no finished run.
    pub(crate) fn content(&self) -> Run {
        let mut content = self.clone();
        content.id = String::new();
        content.question = String::new();
        content.order = 0;
        content.levels = BTreeMap::new();
        if let Some(hosts) = &mut content.hosts {
            // It decides how the study goes on, not the outcome of the run.
            hosts.lost = Lost::default();
        }
        content.cell = String::new();
        for class in &mut content.classes {
            class.objective = None;
            Arc::make_mut(&mut class.recipe).forget_words();
        }
        content
    }

    /// Gives it a label, which is also a level. Its id then differs from that of the same run with another label or without one.
    pub(crate) fn set_label(&mut self, label: &str) {
        self.id = hash(&(&self.id, label));
        self.cell = hash(&(&self.cell, label));
        self.levels.insert(LABEL.to_owned(), Value::from(label));
        self.label = Some(label.to_owned());
    }
}

/// The first 12 hex digits of the SHA-256 of a value's JSON.
pub(crate) fn hash(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
