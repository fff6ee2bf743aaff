//! The study specification: `studies/NAME.yml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_vocabulary::{IoPriority, TrafficKind};

use crate::access::StudyAccess;
use crate::admission::{AdmissionFactors, AdmissionSettings};
use crate::contract::Contract;
use crate::control_group::ControlGroup;
use crate::fs_option;
use crate::hosts::Hosts;
use crate::io_cost::IoCost;
use crate::level::{Architecture, Scheduler};
use crate::site::Site;
use crate::testbed::Testbeds;

/// A question, and how it is to be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name: the file's name without `.yml`.
    pub name: String,
    /// The question that the study answers, in a sentence.
    pub question: String,
    /// Further explanation for readers.
    #[serde(default)]
    pub description: String,
    /// Where it is answered: on one testbed, or the same question on both, side by side.
    pub testbed: Testbeds,
    /// Seed of all random numbers: workloads and the order of runs.
    pub seed: u64,
    /// Independent runs of each cell, fixed in advance.
    pub repetitions: u32,
    /// Time before the measured interval of each run, in seconds: its requests are marked, not dropped.
    pub warmup_s: f64,
    /// Length of the measured interval of each run, in seconds; of admission control that of films without an end.
    pub duration_s: f64,
    /// Whether requests are captured at the block layer.
    #[serde(default)]
    pub capture: Capture,
    /// Share of block requests that may be lost before a run is invalid.
    #[serde(default = "default_allowed_loss")]
    pub allowed_loss: f64,
    /// Whether completions that BPF misses are filled in from the kernel's own `blk` trace, which runs beside it. That costs
    /// some 10 us of processor time per request: say `false` where devices answer 10,000 requests/s or more.
    #[serde(default = "yes")]
    pub fill_losses: bool,
    /// Simulator: what is kept of each run.
    #[serde(default)]
    pub records: Records,
    /// Simulator: interval in seconds at which the service of each class is recorded in `series.json`; not recorded if absent.
    #[serde(default)]
    pub series_s: Option<f64>,
    /// Each run is carried out by several client hosts at once, on a file system that all of them see; by one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// The disks under test.
    pub storage: Storage,
    /// Application classes by name; none if `access` is given.
    #[serde(default)]
    pub classes: BTreeMap<String, Class>,
    /// Daemons that run during each run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, StudyService>,
    /// Measures the cost of opening and reading a file, instead of classes.
    #[serde(default)]
    pub access: Option<StudyAccess>,
    /// Factors and their levels: every combination of levels is a cell.
    pub factors: Factors,
    /// Settings that are held at one level.
    #[serde(default)]
    pub hold: Settings,
    /// Cells to leave out: those that have all the levels of an entry.
    #[serde(default)]
    pub exclude: Vec<BTreeMap<String, Value>>,
}

fn yes() -> bool {
    true
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn default_allowed_loss() -> f64 {
    1e-4
}

/// What is kept of each simulated run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Records {
    /// Every request, as on the device testbed; of admission control the load of each disk in each round.
    #[default]
    Requests,
    /// Counts, means and quantiles only: for studies of a thousand runs.
    Summary,
}

impl Records {
    /// Whether it is the default.
    pub fn is_requests(&self) -> bool {
        *self == Records::Requests
    }
}

/// How simulated disks are filled with files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One file behind the other from the outer edge, one class behind the other: as on the device testbed.
    #[default]
    Packed,
    /// Over the whole of each disk at equal distances, in random order.
    Spread,
    /// Stripe unit by stripe unit at random places of the disks; each row of units, one for each disk, in random order.
    Scattered,
}

impl Placement {
    /// Whether it is the default.
    pub fn is_packed(&self) -> bool {
        *self == Placement::Packed
    }
}

/// Whether requests are captured at the block layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// Yes; a run without it is not begun.
    #[default]
    Required,
    /// Where the kernel allows it; a run without it says so.
    Optional,
    /// No.
    None,
}

/// The devices that are asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Model of each head: a profile's name or file (`weir list profiles`).
    pub profile: String,
    /// Disks in all.
    pub heads: u32,
    /// Size of each, in MiB.
    pub size_mib: u64,
    /// Stripe unit of arrays, in KiB.
    #[serde(default = "default_stripe_unit_kib")]
    pub stripe_unit_kib: u64,
    /// Simulator: where files lie on the disks.
    #[serde(default)]
    pub placement: Placement,
}

fn default_stripe_unit_kib() -> u64 {
    64
}

/// One application class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Name of its workload.
    pub workload: String,
    /// Fields of the workload to replace, by dotted path.
    #[serde(default)]
    pub with: BTreeMap<String, Value>,
    /// Clients at load 1; where streams are admitted, how often this kind asks relative to the others.
    pub clients: u32,
    /// The server (of `services`) that clients ask for the files over HTTP; if absent, clients read the files themselves.
    #[serde(default)]
    pub through: Option<String>,
    /// With `through`: each client waits for its answer and thinks this long before it asks again, in ms (mean of an
    /// exponential; 0: not at all). Absent: requests are sent at the times of the workload, answered or not.
    #[serde(default)]
    pub think_ms: Option<f64>,
    /// Number of disks of its own if the architecture is partitioned; an equal share if absent.
    #[serde(default)]
    pub heads: Option<u32>,
    /// I/O priority of its requests.
    #[serde(default)]
    pub priority: Option<IoPriority>,
    /// Settings of the control group of the class's processes, such as `io.weight=800`. If any class of a run has settings,
    /// each class has a control group of its own.
    #[serde(default)]
    pub cgroup: Option<ControlGroup>,
    /// Objective: the quality of service that the class was promised.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// Traffic kind, for weir's schedulers; if absent, `real_time` if the workload has deadlines and `interactive` if it
    /// has none.
    #[serde(default)]
    pub wants: Option<TrafficKind>,
    /// Weight, for those of weir's schedulers that share a disk by weight; 1 if absent.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Contract, for those of weir's schedulers that have contracts: time of each disk for each client, or for all clients
    /// together if the class is not `real_time`.
    #[serde(default)]
    pub contract: Option<Contract>,
    /// One of weir's schedulers for the class's own disks, if the architecture is partitioned; the study's if absent.
    #[serde(default)]
    pub scheduler: Option<Scheduler>,
    /// Simulator: stripe unit of its files, in KiB; the storage's if absent.
    #[serde(default)]
    pub stripe_unit_kib: Option<u64>,
    /// Simulator: the disks of an integrated server that its files are striped over, by number from 0, one behind the
    /// other; all if absent.
    #[serde(default)]
    pub disks: Option<Vec<u32>>,
    /// Simulator: packed files begin at this place of each disk, in MiB, or at the first one behind it where there is room;
    /// at the outer edge if absent.
    #[serde(default)]
    pub from_mib: Option<u64>,
    /// Simulator: size of its buffer cache (LRU over stripe units), in MiB; none if absent.
    #[serde(default)]
    pub cache_mib: Option<u64>,
}

/// A server that runs during each run, in a control group of its own, on loopback: either a `service` or a `site`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyService {
    /// The daemon (`weir service list`), such as nginx. It serves the files of the classes that go `through` it.
    #[serde(default)]
    pub service: Option<String>,
    /// A web site with a database. Its classes are emulated browsers, whose workload is one of sessions.
    #[serde(default)]
    pub site: Option<Site>,
    /// TCP port on the loopback interface.
    pub port: u16,
    /// Settings that differ from the defaults of the daemon (`weir service list`).
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// For a proxy: the server (of `services`) that it passes requests on to.
    #[serde(default)]
    pub before: Option<String>,
    /// The most popular files of the classes that it serves, up to this many MiB, lie in memory (tmpfs).
    #[serde(default)]
    pub hot_mib: Option<u64>,
    /// Memory that it may use, pages of its files among it, in MiB; only the run's own limit if absent.
    #[serde(default)]
    pub memory_mib: Option<u64>,
    /// MB (10^6 bytes) a second that it may read from the disks; not limited if absent.
    #[serde(default)]
    pub read_mb_s: Option<f64>,
}

/// What a class was promised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Objective {
    /// A quantile of response time.
    ResponseMs {
        /// The quantile, between 0 and 1.
        quantile: f64,
        /// Its bound, in ms.
        at_most: f64,
    },
    /// At most this share of requests misses its deadline.
    DeadlineMissShare(f64),
    /// At least this many MB (10^6 bytes) a second.
    RateMbS(f64),
    /// At least this share of all bytes.
    Share(f64),
}

/// Levels of each factor. Their order here is the order of columns in tables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// Variants of the study by name, each with the fields in which it differs, by dotted path, such as
    /// `no-cache: {classes.text.cache_mib: 0}` or `small: {classes.text.with.files.count: 10, storage.profile: ssd-sata}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<BTreeMap<String, BTreeMap<String, Value>>>,
    /// Scheduler: the kernel's, or one of weir's own, which on devices rules modelled disks in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Vec<Scheduler>>,
    /// File system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Vec<String>>,
    /// Options of the file system (`weir list filesystems --json`): each is a factor of its own, such as
    /// `{io_threads: [1, 16], quick_read_cache: [0MB, 128MB]}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem_options: Option<BTreeMap<String, Vec<Value>>>,
    /// Partitioned or integrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Vec<Architecture>>,
    /// Multiplier of every class's clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Vec<f64>>,
    /// Clients by class; replaces the class's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<BTreeMap<String, u32>>>,
    /// As `clients`, but each class is a factor of its own, such as `{text: [0, 10], video: [0, 5]}`: all combinations
    /// are cells. A class of 0 clients is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_counts: Option<BTreeMap<String, Vec<u32>>>,
    /// I/O priority by class; replaces the class's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Vec<BTreeMap<String, IoPriority>>>,
    /// Control groups by class, such as `{video: io.weight=800}`; replaces the class's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Vec<BTreeMap<String, ControlGroup>>>,
    /// Cost model of the disks behind `io.weight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_cost: Option<Vec<IoCost>>,
    /// Requests that each head of a device works on at once (its tags).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<Vec<u32>>,
    /// Target latency of writeback throttling in microseconds; 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbt_lat_usec: Option<Vec<u64>>,
    /// Read-ahead of buffered reads, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kib: Option<Vec<u64>>,
    /// Whether files are read through the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffered: Option<Vec<bool>>,
    /// Whether a run begins with its files in the page cache, as far as they fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_start: Option<Vec<bool>>,
    /// Memory of what a run starts, pages of its files among it, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<Vec<u64>>,
    /// Memory of each server of a network file system, pages of its files among it, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory_mib: Option<Vec<u64>>,
    /// Parameters of admission control: each is a factor of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionFactors>,
}

/// One level of each factor: the state a run finds the machine in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Scheduler, the kernel's or weir's own; if absent, mq-deadline on the device testbed and scan in the simulator.
    pub scheduler: Scheduler,
    /// File system.
    pub filesystem: String,
    /// Its options, where they differ from what it has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filesystem_options: BTreeMap<String, Value>,
    /// Partitioned or integrated.
    pub architecture: Architecture,
    /// Multiplier of every class's clients.
    pub load: f64,
    /// Clients by class, where they differ from the class's own.
    pub clients: BTreeMap<String, u32>,
    /// I/O priority by class, where it differs from the class's own.
    pub priority: BTreeMap<String, IoPriority>,
    /// Control group by class, where it differs from the class's own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroup: BTreeMap<String, ControlGroup>,
    /// Cost model of the disks behind `io.weight`; measured before each run if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_cost: Option<IoCost>,
    /// Requests that each head of a device works on at once (its tags): 4, the least a kernel grants, if absent; in the
    /// simulator, and where all schedulers are weir's own, 1.
    pub queue_depth: u32,
    /// Target latency of writeback throttling in microseconds; 0 is off.
    pub wbt_lat_usec: u64,
    /// Read-ahead of buffered reads, in KiB.
    pub read_ahead_kib: u64,
    /// Whether files are read through the page cache, as a server does that does not say otherwise; directly if absent.
    #[serde(skip_serializing_if = "is_false")]
    pub buffered: bool,
    /// Whether a run begins with its files in the page cache, as far as they fit: each was read once, the most popular ones
    /// last. If absent nothing of them is cached.
    #[serde(skip_serializing_if = "is_false")]
    pub warm_start: bool,
    /// Memory of what a run starts, pages of its files among it, in MiB (a control group); not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Memory of each server of a network file system, pages of its files among it, in MiB; as `memory_mib` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory_mib: Option<u64>,
    /// Admission control of the classes of video streams; absent: none. A simulated server serves those that are admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionSettings>,
}

impl Settings {
    /// The options of the file system that are set, as texts.
    pub fn options(&self) -> BTreeMap<String, String> {
        let options = self.filesystem_options.iter();
        options.filter_map(|(name, value)| Some((name.clone(), fs_option::text(value)?))).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            scheduler: Scheduler { name: "mq-deadline".to_owned(), tunables: BTreeMap::new() },
            filesystem: "raw".to_owned(),
            filesystem_options: BTreeMap::new(),
            architecture: Architecture::Integrated,
            load: 1.0,
            clients: BTreeMap::new(),
            priority: BTreeMap::new(),
            cgroup: BTreeMap::new(),
            io_cost: None,
            // Deep enough to keep a disk busy, shallow enough to leave the scheduler a choice.
            queue_depth: 4,
            wbt_lat_usec: 0,
            read_ahead_kib: 128,
            buffered: false,
            warm_start: false,
            memory_mib: None,
            server_memory_mib: None,
            admission: None,
        }
    }
}
