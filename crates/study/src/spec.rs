//! Study specification: `studies/NAME.yml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_vocabulary::{IoPriority, TrafficKind};

use crate::access::StudyAccess;
use crate::admission::{AdmissionFactors, AdmissionSettings};
use crate::comparison::Comparison;
use crate::contract::Contract;
use crate::control_group::ControlGroup;
use crate::fs_option;
use crate::hosts::Hosts;
use crate::io_cost::IoCost;
use crate::level::{Architecture, Scheduler};
use crate::precision::Precision;
use crate::site::Site;
use crate::testbed::{Testbed, Testbeds};

/// Repetitions from which on a study of several cells has duplicates unless it says otherwise: of fewer blocks the interval of their
/// ratio is too wide to tell anything.
const FEWEST_WITH_DUPLICATES: u32 = 3;

/// A study: a question, its classes, factors and objectives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study: the file name without `.yml`.
    pub name: String,
    /// The question that the study answers, in a sentence.
    pub question: String,
    /// Further explanation for readers.
    #[serde(default)]
    pub description: String,
    /// Testbed, or both to compare them: `device` (real time, block devices), `simulator` (virtual time), `[device,
    /// simulator]`. `admission` simulates admission control only.
    pub testbed: Testbeds,
    /// Comparison that answers the question. Summary and report begin with it. If absent: the first factor of names, with
    /// its first level as the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Label of the runs, such as the version of the kernel that they run on. Runs with different labels are kept apart in one
    /// results folder, and labels are levels of the factor `label`. `weir plan --label` and `make study LABEL=` replace it. No
    /// label if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Seed of all random numbers: workloads and the order of runs.
    pub seed: u64,
    /// Independent runs of each cell. With `precision`, the first decision is made after these.
    pub repetitions: u32,
    /// Precision at which the study stops. If absent, the number of repetitions is fixed in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Testbed `device`: whether each block has its first cell twice (A/A). Summary and report print the ratio of the two beside the
    /// effects, because equal cells differ by as much. If absent: `true` in studies of two or more cells and three or more
    /// repetitions, except those with `access`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<bool>,
    /// Warm-up before the measured interval of each run, in seconds. Its requests are marked, not dropped.
    pub warmup_s: f64,
    /// Length of the measured interval of each run, in seconds. On testbed `admission`: length of videos without an end.
    pub duration_s: f64,
    /// Whether requests are captured at the block layer.
    #[serde(default)]
    pub capture: Capture,
    /// Share of block requests that may be lost before a run is invalid.
    #[serde(default = "default_allowed_loss")]
    pub allowed_loss: f64,
    /// Whether completions that BPF misses are taken from the kernel's trace events of completions, which are then kept in
    /// memory beside BPF and read after a miss.
    #[serde(default = "yes")]
    pub fill_losses: bool,
    /// Simulator: what is kept of each run.
    #[serde(default)]
    pub records: Records,
    /// Simulator: interval of the time series of each class in `series.json`, in seconds. No time series if absent.
    #[serde(default)]
    pub series_s: Option<f64>,
    /// Client hosts that carry out each run together, on a file system that all of them mount. One host if absent.
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
    /// Cells to leave out: an entry matches the cells that have all of its levels.
    #[serde(default)]
    pub exclude: Vec<BTreeMap<String, Value>>,
}

impl Study {
    /// Repetitions of each cell that a plan has: the most that `precision` allows.
    pub(crate) fn most_repetitions(&self) -> u32 {
        self.precision.as_ref().map_or(self.repetitions, |precision| precision.at_most)
    }

    /// Whether each block has one of its cells twice.
    pub(crate) fn has_duplicates(&self, testbed: Testbed, cells: usize) -> bool {
        let by_default =
            || cells > 1 && self.most_repetitions() >= FEWEST_WITH_DUPLICATES && self.access.is_none();
        testbed == Testbed::Device && self.duplicate.unwrap_or_else(by_default)
    }
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
    /// Every request, as on testbed `device`. On testbed `admission`: the load of each disk in each round.
    #[default]
    Requests,
    /// Only counts, means and quantiles: for studies with a thousand runs.
    Summary,
}

impl Records {
    /// Whether it is the default.
    pub fn is_requests(&self) -> bool {
        *self == Records::Requests
    }
}

/// Placement of files on simulated disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One file after the other from the outer edge, one class after the other, as on testbed `device`.
    #[default]
    Packed,
    /// Files in random order at equal distances over each whole disk.
    Spread,
    /// Stripe units at random positions of the disks, and the units of each stripe on the disks in random order.
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
    /// A run does not start without the capture.
    #[default]
    Required,
    /// Captured where the kernel allows it. A run without the capture says so.
    Optional,
    /// Not captured.
    None,
}

/// Disks of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Model of each head: a profile's name or file (`weir list profiles`).
    pub profile: String,
    /// Number of disks, at most 64; in virtual time at most 4096.
    pub heads: u32,
    /// Size of each disk, in MiB.
    pub size_mib: u64,
    /// Stripe unit of arrays, in KiB.
    #[serde(default = "default_stripe_unit_kib")]
    pub stripe_unit_kib: u64,
    /// Simulator: placement of files on the disks.
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
    /// Name of the workload (`weir list workloads`).
    pub workload: String,
    /// Fields of the workload to replace, by dotted path.
    #[serde(default)]
    pub with: BTreeMap<String, Value>,
    /// Number of clients at load 1. With admission control: how often this class requests streams, relative to the
    /// others.
    pub clients: u32,
    /// The daemon (an entry of `services`) that serves the files over HTTP. If absent, clients read the files themselves.
    #[serde(default)]
    pub through: Option<String>,
    /// With `through`: closed loop with this mean think time, in ms (exponential distribution; 0 is no think time). If
    /// absent, open loop: requests are sent at the times of the workload.
    #[serde(default)]
    pub think_ms: Option<f64>,
    /// With `architecture: partitioned`: number of disks of this class. An equal share if absent.
    #[serde(default)]
    pub heads: Option<u32>,
    /// I/O priority of the requests of this class.
    #[serde(default)]
    pub priority: Option<IoPriority>,
    /// Settings of the control group of the class's processes, such as `io.weight=800`. If any class of a run has settings,
    /// each class has a control group of its own.
    #[serde(default)]
    pub cgroup: Option<ControlGroup>,
    /// Each client of this class is a process with a control group of its own, which has the settings of `cgroup` if there are
    /// any. Closed loops on devices only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cgroup_per_client: bool,
    /// Objective: the quality of service that this class needs.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// Traffic kind, for weir's own schedulers. If absent: `real_time` if the workload has deadlines, else `interactive`.
    #[serde(default)]
    pub wants: Option<TrafficKind>,
    /// Weight, for those of weir's own schedulers that share a disk by weight. 1 if absent.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Contract, for those of weir's own schedulers that have contracts: service time on each disk in each period. It
    /// holds for each client, or for all clients together if the class is not `real_time`.
    #[serde(default)]
    pub contract: Option<Contract>,
    /// With `architecture: partitioned`: one of weir's own schedulers for the disks of this class. The scheduler of the
    /// study if absent.
    #[serde(default)]
    pub scheduler: Option<Scheduler>,
    /// Simulator: stripe unit of the files of this class, in KiB. `storage.stripe_unit_kib` if absent.
    #[serde(default)]
    pub stripe_unit_kib: Option<u64>,
    /// Simulator, with `architecture: integrated`: the disks that the files of this class are striped over. Consecutive
    /// numbers from 0. All disks if absent.
    #[serde(default)]
    pub disks: Option<Vec<u32>>,
    /// Simulator, with `placement: packed`: offset of the files of this class on each disk, in MiB, or the first free
    /// space after it. The outer edge if absent.
    #[serde(default)]
    pub from_mib: Option<u64>,
    /// Simulator: size of the buffer cache of this class (LRU over stripe units), in MiB. No cache if absent.
    #[serde(default)]
    pub cache_mib: Option<u64>,
}

/// A daemon that runs during each run on loopback, in its own control group: either a `service` or a `site`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyService {
    /// The server program (`weir service list`), such as nginx. It serves the files of the classes that go `through` it.
    #[serde(default)]
    pub service: Option<String>,
    /// A web site with a database. The classes that go `through` it are emulated browsers with a workload of sessions.
    #[serde(default)]
    pub site: Option<Site>,
    /// TCP port on the loopback interface.
    pub port: u16,
    /// Settings that differ from the defaults of the daemon (`weir service list`).
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// For a proxy: the daemon (an entry of `services`) that it forwards requests to.
    #[serde(default)]
    pub before: Option<String>,
    /// Size of a memory file system (tmpfs) for the most popular files that this daemon serves, in MiB. No such file
    /// system if absent.
    #[serde(default)]
    pub hot_mib: Option<u64>,
    /// Memory limit of this daemon, page cache included, in MiB. Only the limit of the run if absent.
    #[serde(default)]
    pub memory_mib: Option<u64>,
    /// Limit on what this daemon reads from the disks, in MB/s (10^6 bytes). Not limited if absent.
    #[serde(default)]
    pub read_mb_s: Option<f64>,
}

/// Objective of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Objective {
    /// A quantile of response time is at most this long.
    ResponseMs {
        /// The quantile, between 0 and 1.
        quantile: f64,
        /// Its bound, in ms.
        at_most: f64,
    },
    /// Largest share of requests that miss their deadlines.
    DeadlineMissShare(f64),
    /// Lowest throughput, in MB/s (10^6 bytes).
    RateMbS(f64),
    /// Smallest share of the bytes of all classes.
    Share(f64),
}

/// Levels of each factor. Their order here is the order of columns in tables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// Kernels of the host, by their names in the inventory (`weir_kernels`). The playbook boots each host with the kernel of
    /// its next runs: one boot for each block and kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Vec<String>>,
    /// Variants of the study by name, each with the fields in which it differs, by dotted path, such as
    /// `no-cache: {classes.text.cache_mib: 0}` or `small: {classes.text.with.files.count: 10, storage.profile: ssd-sata}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<BTreeMap<String, BTreeMap<String, Value>>>,
    /// Schedulers: the kernel's or weir's own (`weir list schedulers`). On testbed `device`, weir's own schedulers order
    /// the requests of modelled disks in real time.
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
    /// Number of clients by class. Replaces `clients` of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<BTreeMap<String, u32>>>,
    /// As `clients`, but each class is a factor of its own, such as `{text: [0, 10], video: [0, 5]}`: all combinations
    /// are cells. A class of 0 clients is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_counts: Option<BTreeMap<String, Vec<u32>>>,
    /// I/O priority by class. Replaces `priority` of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Vec<BTreeMap<String, IoPriority>>>,
    /// Control groups by class, such as `{video: io.weight=800}`. Replaces `cgroup` of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Vec<BTreeMap<String, ControlGroup>>>,
    /// Cost model of the disks for `io.weight` (iocost).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_cost: Option<Vec<IoCost>>,
    /// Queue depth: requests that each head of a device works on at once (its tags).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<Vec<u32>>,
    /// Target latency of writeback throttling, in microseconds. 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbt_lat_usec: Option<Vec<u64>>,
    /// Read-ahead of buffered reads, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kib: Option<Vec<u64>>,
    /// Whether files are read through the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffered: Option<Vec<bool>>,
    /// Whether a run starts with its files in the page cache, as far as they fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_start: Option<Vec<bool>>,
    /// Memory limit of the processes of a run, page cache included, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<Vec<u64>>,
    /// Memory limit of each server of a network file system, page cache included, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory_mib: Option<Vec<u64>>,
    /// Parameters of admission control: each is a factor of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionFactors>,
}

/// One level of each factor: the settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Kernel of the host, by its name in the inventory (`weir_kernels`). The kernel that runs if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Scheduler: the kernel's or weir's own (`weir list schedulers`). The default is that of testbed `device`. On
    /// testbed `simulator` the default is `scan`.
    pub scheduler: Scheduler,
    /// File system.
    pub filesystem: String,
    /// Options of the file system that differ from its defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filesystem_options: BTreeMap<String, Value>,
    /// Partitioned or integrated.
    pub architecture: Architecture,
    /// Multiplier of every class's clients.
    pub load: f64,
    /// Number of clients by class, where it differs from `clients` of the class.
    pub clients: BTreeMap<String, u32>,
    /// I/O priority by class, where it differs from `priority` of the class.
    pub priority: BTreeMap<String, IoPriority>,
    /// Control group by class, where it differs from `cgroup` of the class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroup: BTreeMap<String, ControlGroup>,
    /// Cost model of the disks for `io.weight` (iocost). Measured before each run if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_cost: Option<IoCost>,
    /// Queue depth: requests that each head of a device works on at once (its tags). The default is the smallest number
    /// that the kernel allows. Where all schedulers are weir's own, and on testbed `simulator`, the default is 1.
    pub queue_depth: u32,
    /// Target latency of writeback throttling, in microseconds. 0 is off.
    pub wbt_lat_usec: u64,
    /// Read-ahead of buffered reads, in KiB.
    pub read_ahead_kib: u64,
    /// Whether files are read through the page cache. Direct I/O if absent.
    #[serde(skip_serializing_if = "is_false")]
    pub buffered: bool,
    /// Whether a run starts with its files in the page cache, as far as they fit: each was read once, the most popular
    /// ones last. If absent, no file is cached.
    #[serde(skip_serializing_if = "is_false")]
    pub warm_start: bool,
    /// Memory limit of the processes of a run, page cache included, in MiB (a control group). Not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Memory limit of each server of a network file system, page cache included, in MiB. `memory_mib` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_memory_mib: Option<u64>,
    /// Admission control of the video classes. A simulated server serves the streams that are admitted. No admission
    /// control if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<AdmissionSettings>,
}

impl Settings {
    /// The options of the file system that are set, as text.
    pub fn options(&self) -> BTreeMap<String, String> {
        let options = self.filesystem_options.iter();
        options.filter_map(|(name, value)| Some((name.clone(), fs_option::text(value)?))).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            kernel: None,
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
