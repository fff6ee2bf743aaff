//! Plan of a study: all runs, in the order of execution.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_specs::{Document, Problems};
use weir_vocabulary::TrafficKind;
use weir_workload::Catalog;
use weir_workload::sessions::AnyWorkload;

use crate::cells::{VARIANT, apply, same};
use crate::comparison::Comparison;
use crate::context::Context;
use crate::devices::{devices, devices_of};
use crate::estimate::{estimate_s, largest};
use crate::label::{LABEL, plan_file};
use crate::level::Architecture;
use crate::limits::{self, Estimate};
use crate::load_check::clients_at;
use crate::precision::Precision;
use crate::run::{self, Engine, Run, RunClass, RunDevice, SHARED_DEVICE, SimulatedClass, hash};
use crate::spec::{Class, Settings, Study};
use crate::testbed::Testbed;
use crate::variant::{self, Variant};
use crate::{access_classes, alike, counterpart, daemon_checks, defaults, device_scheduler, recipe};

/// Streams of random numbers from this one on decide the places of duplicates.
const OF_DUPLICATES: u64 = 1 << 32;
/// Version of the layout of `plan.json`.
const FORMAT: u32 = 2;
/// Version of the layout in which every run is whole.
pub const WHOLE_FORMAT: u32 = 1;

/// All runs of a study, in the order of execution: `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of this layout.
    pub format: u32,
    /// Name of the study.
    #[serde(deserialize_with = "crate::name::study")]
    pub study: String,
    /// Label of all its runs, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::label::of_plan")]
    pub label: Option<String>,
    /// The question of the study.
    pub question: String,
    /// Further explanation for readers.
    pub description: String,
    /// The comparison that answers the question, if the study names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Testbeds of its runs.
    #[serde(default)]
    pub testbeds: Vec<Testbed>,
    /// The reason why this is a part of the study. Empty if it is the whole study.
    #[serde(default)]
    pub note: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Repetitions of each cell; the most of them, with `precision`.
    pub repetitions: u32,
    /// With `precision`: repetitions before the first decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_repetitions: Option<u32>,
    /// The precision at which the study stops, if the study names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Levels of each factor, in the order of columns.
    pub factors: Map<String, Value>,
    /// Estimated time of all runs, in seconds.
    pub estimate_s: f64,
    /// The largest demand of any run, for each resource.
    #[serde(default)]
    pub largest_run: Estimate,
    /// All devices of all runs.
    pub devices: Vec<RunDevice>,
    /// The runs. In `plan.json` each has only what differs from an earlier run.
    #[serde(with = "alike")]
    #[schemars(schema_with = "alike::schema")]
    pub runs: Vec<Run>,
}

impl Plan {
    /// Reads, checks and expands a study.
    ///
    /// # Errors
    /// All problems of the study and of the workloads that it names.
    pub fn from_file(file: &Path, context: &Context<'_>) -> Result<Self, Problems> {
        Self::from_document(&Document::read(file)?, context)
    }

    /// Checks and expands a study that has been read.
    ///
    /// # Errors
    /// As [`Plan::from_file`].
    pub fn from_document(document: &Document, context: &Context<'_>) -> Result<Self, Problems> {
        let mut study: Study = document.parse_all()?;
        defaults::apply(&mut study, document);
        let variants = variant::all(study.clone(), document, context)?;
        let mut plan = expand(&study, &variants, context.workloads);
        if let Some(label) = context.label.or(study.label.as_deref()) {
            if study.precision.is_some() {
                let message = format!(
                    "is given, but its decisions are of runs without a label (found `{label}`): leave out one of the two"
                );
                return Err(document.problem("precision", message).into());
            }
            plan.set_label(label);
        }
        Problems(limits::beyond(&plan.runs, &study, document)).or(plan)
    }

    fn set_label(&mut self, label: &str) {
        self.runs.iter_mut().for_each(|run| run.set_label(label));
        self.factors.insert(LABEL.to_owned(), Value::from(vec![label]));
        self.label = Some(label.to_owned());
    }

    /// Name of its file in the study's folder of results: `plan.json`, or `plan@LABEL.json`.
    pub fn file_name(&self) -> String {
        plan_file(self.label.as_deref())
    }

    /// The runs of the plan on one testbed, in unchanged order. `note` says why the others are left out.
    pub fn on(mut self, testbed: Testbed, note: &str) -> Self {
        if self.testbeds == [testbed] {
            return self;
        }
        self.testbeds.retain(|known| *known == testbed);
        self.runs.retain(|run| run.testbed == testbed);
        for (name, levels) in &mut self.factors {
            let occurs = |level: &Value| {
                self.runs.iter().any(|run| run.levels.get(name).is_some_and(|at| same(at, &label(level))))
            };
            if let Value::Array(levels) = levels {
                levels.retain(occurs);
            }
        }
        self.devices = devices_of(&self.runs);
        note.clone_into(&mut self.note);
        self.of_runs(|_| true)
    }

    /// The plan with some of its runs and with their estimates. It keeps the devices of the study.
    pub fn of_runs(mut self, keep: impl FnMut(&Run) -> bool) -> Self {
        self.runs.retain(keep);
        self.estimate_s = estimate_s(&self.runs);
        self.largest_run = largest(&self.runs);
        self
    }
}

/// A cell of the plan.
struct Cell {
    /// Its run, without the fields of a repetition.
    run: Run,
    /// What decides the ids of its runs.
    content: Run,
}

impl Cell {
    fn new(mut run: Run, workloads: &Catalog) -> Self {
        let content = run.content();
        // The content has the path as the workload has it: a run has the same name wherever the repository lies.
        for class in &mut run.classes {
            recipe::make_absolute(Arc::make_mut(&mut class.recipe), workloads.folder_of(&class.workload));
        }
        Cell { run, content }
    }

    /// The run of a block, or its duplicate; without its place in the order.
    fn repetition(&mut self, block: u32, seed: u64, duplicate: bool) -> Run {
        (self.content.repetition, self.content.block, self.content.seed) = (block, block, seed);
        self.content.duplicate = duplicate;
        Run { id: hash(&self.content), repetition: block, block, seed, duplicate, ..self.run.clone() }
    }
}

/// Puts the runs of a block in the order of their kernels: a kernel is booted once in each block. Every other block has the reverse
/// order, so that a linear drift affects all kernels alike. Runs of one kernel keep their random order.
fn by_kernel(runs: &mut [Run], kernels: &[Option<String>], block: u32) {
    let place = |run: &Run| kernels.iter().position(|kernel| *kernel == run.settings.kernel);
    runs.sort_by_key(place);
    if !block.is_multiple_of(2) {
        runs.sort_by_key(|run| Reverse(place(run)));
    }
}

/// The runs of a study: blocks of all cells, each block in its own random order. With kernels, the runs of a kernel are together.
fn expand(study: &Study, variants: &[Variant], workloads: &Catalog) -> Plan {
    let mut runs: Vec<Run> = Vec::new();
    for &testbed in study.testbed.all() {
        let cells = counterpart::cells(study, testbed);
        let mut cells: Vec<Cell> = cells
            .iter()
            .filter_map(|cell| {
                let name = cell.get(VARIANT).and_then(Value::as_str);
                let variant = variants.iter().find(|variant| variant.name.as_deref() == name)?;
                Some(Cell::new(resolve(variant, testbed, cell), workloads))
            })
            .collect();
        let mut kernels: Vec<Option<String>> = Vec::new();
        for Cell { run, .. } in &cells {
            if !kernels.contains(&run.settings.kernel) {
                kernels.push(run.settings.kernel.clone());
            }
        }
        let has_duplicates = study.has_duplicates(testbed, cells.len());
        for block in 0..study.most_repetitions() {
            // The same for each testbed: both have the same requests.
            let mut rng = ChaCha8Rng::seed_from_u64(study.seed);
            rng.set_stream(u64::from(block));
            let seed = rand::RngExt::random(&mut rng);
            let mut order: Vec<&mut Cell> = cells.iter_mut().collect();
            order.shuffle(&mut rng);
            let first = runs.len();
            runs.extend(order.into_iter().map(|cell| cell.repetition(block, seed, false)));
            if has_duplicates && let Some(cell) = cells.first_mut() {
                // From a stream of its own: the order of the other runs does not depend on it.
                rng.set_stream(u64::from(block) | OF_DUPLICATES);
                let place = rand::RngExt::random_range(&mut rng, first..=runs.len());
                runs.insert(place, cell.repetition(block, seed, true));
            }
            by_kernel(&mut runs[first..], &kernels, block);
            for (order, run) in runs.iter_mut().enumerate().skip(first) {
                run.order = u32::try_from(order).unwrap_or(u32::MAX);
            }
        }
    }
    let devices = devices_of(&runs);
    let mut factors = counterpart::factors(study);
    for (name, levels) in &mut factors {
        // Counterparts in virtual time are levels of their own. The first block has every cell.
        let mut known: Vec<Value> = levels.iter().map(label).collect();
        for level in runs.iter().filter(|run| run.block == 0).filter_map(|run| run.levels.get(name)) {
            if !known.iter().any(|known| same(known, level)) {
                known.push(level.clone());
                levels.push(level.clone());
            }
        }
    }
    Plan {
        format: FORMAT,
        study: study.name.clone(),
        label: None,
        question: study.question.clone(),
        description: study.description.clone(),
        comparison: study.comparison.clone(),
        testbeds: study.testbed.all().to_vec(),
        note: String::new(),
        seed: study.seed,
        repetitions: study.most_repetitions(),
        first_repetitions: study.precision.as_ref().map(|_| study.repetitions),
        precision: study.precision.clone(),
        factors: factors.into_iter().map(|(name, levels)| (name, Value::Array(levels))).collect(),
        estimate_s: estimate_s(&runs),
        largest_run: largest(&runs),
        devices,
        runs,
    }
}

/// The run of a cell of a variant, without the fields of a repetition.
fn resolve(variant: &Variant, testbed: Testbed, cell: &Map<String, Value>) -> Run {
    let Variant { study, workloads, .. } = variant;
    let mut settings = apply(&study.hold, cell);
    if study.testbed.are_two() && testbed == Testbed::Simulator {
        settings = counterpart::settings(&settings);
    }
    let is_live = testbed == Testbed::Device && device_scheduler::is_used(study);
    let mut devices = devices(study, &settings.filesystem, settings.architecture);
    devices.iter_mut().for_each(|device| device.live = is_live);
    let mut classes: Vec<RunClass> = study
        .classes
        .iter()
        .filter_map(|(name, class)| Some((name, class, workloads.get(name)?)))
        .map(|(name, class, workload)| {
            let clients = settings.clients.get(name).copied().unwrap_or(class.clients);
            (name, class, workload, clients)
        })
        .filter(|(.., clients)| *clients > 0)
        .map(|(name, class, workload, clients)| RunClass {
            simulated: (is_live || testbed == Testbed::Simulator)
                .then(|| simulated(study, class, workload, &settings)),
            name: name.clone(),
            workload: class.workload.clone(),
            recipe: workload.clone(),
            clients: clients_at(clients, settings.load),
            engine: match (workload.as_ref(), &class.through) {
                (AnyWorkload::Sessions(_), _) => Engine::Site,
                (_, Some(_)) => Engine::Web,
                (AnyWorkload::Requests(workload), None) if workload.is_closed_loop() => Engine::Fio,
                _ => Engine::Replay,
            },
            through: class.through.clone(),
            think_ms: class.think_ms,
            priority: settings.priority.get(name).copied().or(class.priority),
            cgroup: settings.cgroup.get(name).copied().or(class.cgroup),
            cgroup_per_client: class.cgroup_per_client,
            objective: class.objective.clone(),
            device: match settings.architecture {
                Architecture::Partitioned => name.clone(),
                Architecture::Integrated => SHARED_DEVICE.to_owned(),
            },
        })
        .collect();
    classes.extend(access_classes::classes(study, &settings));
    Run {
        format: run::FORMAT,
        id: String::new(),
        study: study.name.clone(),
        label: None,
        question: study.question.clone(),
        testbed,
        live: is_live && !settings.scheduler.is_of_kernel(),
        cell: hash(cell),
        levels: cell.iter().map(|(name, level)| (name.clone(), label(level))).collect(),
        settings,
        duplicate: false,
        repetition: 0,
        block: 0,
        order: 0,
        seed: 0,
        warmup_s: study.warmup_s,
        duration_s: study.duration_s,
        capture: study.capture,
        allowed_loss: study.allowed_loss,
        fill_losses: study.fill_losses,
        records: study.records,
        series_s: study.series_s.filter(|_| testbed == Testbed::Simulator),
        placement: study.storage.placement,
        hosts: study.hosts,
        classes,
        devices,
        services: if testbed == Testbed::Device { daemon_checks::services(study) } else { Vec::new() },
        access: access_classes::resolved(study),
    }
}

fn simulated(study: &Study, class: &Class, workload: &AnyWorkload, settings: &Settings) -> SimulatedClass {
    let own = match settings.architecture {
        Architecture::Partitioned => class.scheduler.as_ref(),
        Architecture::Integrated => None,
    };
    let has_deadline = workload.requests().is_some_and(|workload| workload.deadline.is_some());
    let inferred = if has_deadline { TrafficKind::RealTime } else { TrafficKind::Interactive };
    SimulatedClass {
        wants: class.wants.unwrap_or(inferred),
        weight: class.weight.unwrap_or(1.0),
        contract: class.contract,
        scheduler: own.unwrap_or(&settings.scheduler).clone(),
        stripe_unit_kib: class.stripe_unit_kib.unwrap_or(study.storage.stripe_unit_kib),
        disks: class.disks.clone(),
        from_mib: class.from_mib,
        cache_mib: class.cache_mib.unwrap_or(0),
    }
}

/// A level as shown in tables: scalars unchanged, maps as `text=10 video=4`.
fn label(level: &Value) -> Value {
    match level {
        Value::Object(fields) => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let parts: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
            Value::String(parts.join(" "))
        }
        scalar => scalar.clone(),
    }
}
