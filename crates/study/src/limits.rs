//! Limits of a plan and of the demand of each run. Limits of a workload are in `weir_workload::limits`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::{Document, Problem};
use weir_workload::limits::{Demand, MOST_MEMORY_BYTES, MOST_REQUESTS};

use crate::cells::levels_by_factor;
use crate::run::{Engine, MOST_TAGS, Run, RunClass};
use crate::spec::Study;
use crate::testbed::Testbed;

/// Most runs of a plan. `weir plan` takes 21 s and 3.5 GB of memory for a plan of this size, with two factors and two classes.
pub const MOST_RUNS: f64 = 100_000.0;
/// Most levels of a factor. They are compared in pairs.
pub const MOST_LEVELS: usize = 1000;
/// Most bytes that a run writes to block devices before it measures: 4 TiB, 5 hours at 250 MB/s.
pub const MOST_DATA_BYTES: f64 = (4_u64 << 40) as f64;
/// Most clients of a class in fio. Each is a job, and fio has at most 4096 (`REAL_MAX_JOBS`).
pub const MOST_FIO_CLIENTS: u32 = 4096;
/// Most clients of a class of a server. Each has a connection, and a host has about 28,000 ports for one address.
pub const MOST_CONNECTIONS: u32 = 25_000;
/// Longest warm-up and measured interval, in seconds: a day.
pub const LONGEST_S: f64 = 86_400.0;
/// Most intervals of `series.json`, which has 64 bytes for each interval and class.
pub const MOST_INTERVALS: f64 = 1e6;
/// Most disks of a run on devices: each is a process or a file of the host.
const MOST_DEVICE_HEADS: u32 = 64;
/// Most disks of a run in virtual time.
const MOST_VIRTUAL_HEADS: u32 = 4096;
/// Largest disk: 16 TiB.
pub const LARGEST_DISK_MIB: u64 = 16 << 20;

/// Memory for a row of `requests.parquet` of a run on devices and for its row of `block.parquet`, with room for as many again while
/// a vector grows. A run in virtual time writes rows as they come.
pub const DEVICE_ROW_BYTES: f64 = 800.0;
/// Memory for all these rows: others are in files until the run is over. 512 MiB of them are for block requests.
pub const MOST_DEVICE_ROWS_BYTES: f64 = (1_u64 << 30) as f64;
/// Memory of fio for the log of a request, until the run is over. Measured: 40 bytes.
const FIO_LOG_BYTES: f64 = 64.0;
/// Bytes of a row in a table. Measured in virtual time: 12 to 18; on devices there is a row of `block.parquet` besides.
const TABLE_ROW_BYTES: f64 = 40.0;
/// Memory of a simulated buffer cache for each stripe unit of its class's files: its last request, and its share of the queue.
const CACHE_UNIT_BYTES: f64 = 16.0;
/// Memory that fio takes for a request under way, besides its data.
const FIO_REQUEST_BYTES: f64 = 1024.0;

/// Most disks of a run on a testbed.
#[must_use]
pub fn most_heads(testbed: Testbed) -> u32 {
    if testbed.is_virtual() { MOST_VIRTUAL_HEADS } else { MOST_DEVICE_HEADS }
}

/// Estimated demand of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Rows of `requests.parquet`.
    pub requests: u64,
    /// Memory of the load generators, in bytes, without modelled disks.
    pub memory_bytes: u64,
    /// Bytes written to block devices, with the files before the run.
    pub device_bytes: u64,
    /// Size of the run's tables, in bytes.
    pub table_bytes: u64,
}

impl Estimate {
    /// The larger value of each field.
    #[must_use]
    pub fn max(self, other: Estimate) -> Estimate {
        Estimate {
            requests: self.requests.max(other.requests),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            device_bytes: self.device_bytes.max(other.device_bytes),
            table_bytes: self.table_bytes.max(other.table_bytes),
        }
    }
}

/// Memory for rows of a run on devices.
fn rows_bytes(requests: f64) -> f64 {
    (requests * DEVICE_ROW_BYTES).min(MOST_DEVICE_ROWS_BYTES)
}

/// A limit that a run exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// The class that contributes most; empty for the run as a whole.
    pub class: String,
    /// The field within the class or the run.
    pub field: &'static str,
    /// Found value, limit and remedy.
    pub message: String,
}

impl Run {
    /// Estimated demand of the run.
    pub fn estimate(&self) -> Estimate {
        let all = self.classes.iter().map(|class| self.demand(class)).fold(Demand::default(), Demand::with);
        let on_device = self.testbed == Testbed::Device;
        let rows_bytes = if on_device { rows_bytes(all.requests) } else { 0.0 };
        let is_kept = on_device || self.records.is_requests();
        // A cast saturates at the largest number.
        Estimate {
            requests: all.requests as u64,
            memory_bytes: (all.memory_bytes + rows_bytes) as u64,
            device_bytes: if on_device { all.file_bytes as u64 } else { 0 },
            table_bytes: if is_kept { (all.requests * TABLE_ROW_BYTES) as u64 } else { 0 },
        }
    }

    /// Estimated demand of one class, on each host.
    fn demand(&self, class: &RunClass) -> Demand {
        if self.testbed == Testbed::Admission || class.engine == Engine::Access {
            return Demand::default();
        }
        let mut demand = class.recipe.demand(class.clients, self.warmup_s + self.duration_s);
        if let Some(think_ms) = class.think_ms {
            // Closed loop through a server: at most one request of a client per think time.
            let per_s = 1.0 / (think_ms / 1e3).max(1e-3);
            demand.requests = f64::from(class.clients) * per_s * (self.warmup_s + self.duration_s);
        }
        if let (Testbed::Device, Some((depth, bytes))) = (self.testbed, class.closed_loop()) {
            demand.memory_bytes += f64::from(class.clients) * depth * (bytes + FIO_REQUEST_BYTES);
            demand.memory_bytes += demand.requests * FIO_LOG_BYTES;
        }
        if let Some(simulated) = class.simulated.as_ref().filter(|simulated| simulated.cache_mib > 0) {
            let units = demand.file_bytes / (simulated.stripe_unit_kib.max(1) << 10) as f64;
            demand.memory_bytes += units * CACHE_UNIT_BYTES;
        }
        demand
    }

    /// The first limit that the run exceeds. Runners check this before they allocate or change anything.
    ///
    /// # Errors
    /// Limit, found value and remedy.
    pub fn check_limits(&self) -> Result<(), Excess> {
        self.check_numbers()?;
        for class in &self.classes {
            self.check_clients(class)?;
        }
        let estimate = self.estimate();
        let gib = |bytes: f64| format!("{:.1} GiB", bytes / f64::from(1 << 30));
        let of = |part: fn(&Demand) -> f64| {
            let parts = self.classes.iter().map(|class| (part(&self.demand(class)), class));
            parts.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(String::new(), |(_, class)| class.name.clone())
        };
        if estimate.requests as f64 > MOST_REQUESTS {
            return Err(Excess {
                class: of(|demand| demand.requests),
                field: "clients",
                message: format!(
                    "make about {:.3e} requests in one run; at most {MOST_REQUESTS:.0e} are carried out: use fewer \
                     clients, a lower load or a shorter duration_s",
                    estimate.requests
                ),
            });
        }
        if estimate.memory_bytes as f64 > MOST_MEMORY_BYTES {
            return Err(Excess {
                class: of(|demand| demand.memory_bytes + rows_bytes(demand.requests)),
                field: "clients",
                message: format!(
                    "and their {:.3e} requests need about {} of memory in one run; at most {} are used: use fewer \
                     clients or files, a lower load or a shorter duration_s",
                    estimate.requests,
                    gib(estimate.memory_bytes as f64),
                    gib(MOST_MEMORY_BYTES)
                ),
            });
        }
        if estimate.device_bytes as f64 > MOST_DATA_BYTES {
            return Err(Excess {
                class: of(|demand| demand.file_bytes),
                field: "with.files.count",
                message: format!(
                    "makes files of about {} that each run writes to devices; at most {} are written: use fewer or \
                     smaller files",
                    gib(estimate.device_bytes as f64),
                    gib(MOST_DATA_BYTES)
                ),
            });
        }
        Ok(())
    }

    /// Checks of the numbers that times and offsets are computed from. The plan of a valid study passes them.
    fn check_numbers(&self) -> Result<(), Excess> {
        let bad = |field: &'static str, found: String, limit: String| {
            let message = format!("is {found}; it must be {limit}");
            Err(Excess { class: String::new(), field, message })
        };
        if !(0.0..=LONGEST_S).contains(&self.warmup_s) {
            return bad("warmup_s", self.warmup_s.to_string(), format!("from 0 to {LONGEST_S}"));
        }
        if !(0.0..=LONGEST_S).contains(&self.duration_s) {
            return bad("duration_s", self.duration_s.to_string(), format!("from 0 to {LONGEST_S}"));
        }
        // Servers without a scheduler of the kernel's may have more.
        if self.settings.queue_depth > MOST_TAGS {
            return bad("queue_depth", self.settings.queue_depth.to_string(), format!("at most {MOST_TAGS}"));
        }
        for device in &self.devices {
            let most_heads = most_heads(self.testbed);
            if !(1..=most_heads).contains(&device.heads) {
                return bad("devices.heads", device.heads.to_string(), format!("from 1 to {most_heads}"));
            }
            let most_mib = LARGEST_DISK_MIB * u64::from(device.heads);
            if device.size_mib > most_mib {
                return bad("devices.size_mib", device.size_mib.to_string(), format!("at most {most_mib}"));
            }
            if !(1..=16 * 1024).contains(&device.stripe_unit_kib) {
                return bad(
                    "devices.stripe_unit_kib",
                    device.stripe_unit_kib.to_string(),
                    "from 1 to 16384".to_owned(),
                );
            }
        }
        Ok(())
    }

    fn check_clients(&self, class: &RunClass) -> Result<(), Excess> {
        if class.cgroup_per_client && class.engine != Engine::Fio {
            let message =
                "is for closed loops on devices, whose clients are processes: leave it out".to_owned();
            return Err(Excess { class: class.name.clone(), field: "cgroup_per_client", message });
        }
        let (most, why) = match (self.testbed, class.engine) {
            (Testbed::Device, Engine::Fio) => (MOST_FIO_CLIENTS, "closed loops are jobs of fio"),
            (Testbed::Device, Engine::Site) => (MOST_CONNECTIONS, "each has a connection of its own"),
            (Testbed::Device, Engine::Web) if class.think_ms.is_some() => {
                (MOST_CONNECTIONS, "each has a connection of its own")
            }
            _ => return Ok(()),
        };
        if class.clients <= most {
            return Ok(());
        }
        let message = format!("are {} in one run; at most {most} can be ({why}): use fewer", class.clients);
        Err(Excess { class: class.name.clone(), field: "clients", message })
    }
}

impl RunClass {
    /// Requests that a client of a closed loop keeps under way, and the size of each, in bytes.
    fn closed_loop(&self) -> Option<(f64, f64)> {
        let workload = self.recipe.requests()?;
        match workload.arrivals {
            weir_workload::Arrivals::Closed { depth, .. } => {
                Some((f64::from(depth), workload.largest_request_bytes() as f64))
            }
            _ => None,
        }
    }
}

/// The problem of a study with too many levels or runs, which is not expanded.
pub(crate) fn too_many(study: &Study, document: &Document) -> Option<Problem> {
    let mut runs = f64::from(study.most_repetitions().max(1)) * study.testbed.all().len() as f64;
    for (name, levels) in levels_by_factor(study) {
        if levels.len() > MOST_LEVELS {
            let message =
                format!("has {} levels; a factor has at most {MOST_LEVELS}: use fewer", levels.len());
            return Some(document.problem(format!("factors.{name}"), message));
        }
        runs *= levels.len().max(1) as f64;
    }
    (runs > MOST_RUNS).then(|| {
        let message = format!(
            "make {runs} runs with {} repetitions; more than {MOST_RUNS} are refused: use fewer levels, or make \
             several studies",
            study.most_repetitions()
        );
        document.problem("factors", message)
    })
}

/// Problems of runs that exceed a limit: each field once, at its place in the study.
pub(crate) fn beyond(runs: &[Run], study: &Study, document: &Document) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for excess in runs.iter().filter_map(|run| run.check_limits().err().map(|excess| (run, excess))) {
        let (run, Excess { class, field, message }) = excess;
        let place = place(study, run, &class, field);
        if !problems.iter().any(|known| known.field == place) {
            problems.push(document.problem(place, message));
        }
    }
    problems
}

/// The field of a study that sets the number of clients of a class, or another value of a run.
fn place(study: &Study, run: &Run, class: &str, field: &str) -> String {
    let varied = &study.factors;
    let is_counted = |counts: &std::collections::BTreeMap<String, Vec<u32>>| counts.contains_key(class);
    match field {
        _ if class.is_empty() => field.to_owned(),
        "clients" if varied.client_counts.as_ref().is_some_and(is_counted) => {
            format!("factors.client_counts.{class}")
        }
        "clients" if varied.clients.is_some() && run.settings.clients.contains_key(class) => {
            "factors.clients".to_owned()
        }
        "clients" if run.settings.clients.contains_key(class) => format!("hold.clients.{class}"),
        "clients" if varied.load.is_some() && run.settings.load > 1.0 => "factors.load".to_owned(),
        _ => format!("classes.{class}.{field}"),
    }
}
