//! Validation of a study: values, references and combinations of fields.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_specs::{Document, Problems, label_problem, name_problem, one_of};
use weir_workload::sessions::AnyWorkload;
use weir_workload::{FileSet, Workload};

use crate::cells::{apply, levels_by_factor, same};
use crate::context::Context;
use crate::devices::devices;
use crate::filesystem::FileSystem;
use crate::level::{Architecture, Scheduler};
use crate::limits::{LARGEST_DISK_MIB, LONGEST_S, most_heads};
use crate::run::{MOST_TAGS, SHARED_DEVICE};
use crate::spec::{Class, Objective, Settings, Study};
use crate::testbed::Testbed;
use crate::{
    access_classes, admission_check, comparison_check, control_check, counterpart, daemon_chain,
    daemon_checks, defaults, device_scheduler, fs_option_checks, host_checks, label, limits, load_check,
    precision_check, recipe, simulated,
};

/// Share of a device that files may fill. The file system needs the rest.
const FILL_SHARE: f64 = 0.7;
/// The smallest number of tags that the kernel's block layer allows (`BLKDEV_MIN_RQ`).
const FEWEST_TAGS: u32 = 4;
/// Memory that the programs of a run need, about.
const LEAST_MEMORY_MIB: f64 = 32.0;
/// A file system whose devices depend on the architecture only.
const LOCAL: &str = "raw";

/// Checks a study and resolves the workload of each class, by class name.
pub(crate) fn check(
    study: &Study,
    document: &Document,
    context: &Context<'_>,
) -> Result<BTreeMap<String, AnyWorkload>, Problems> {
    if let Some(problem) = limits::too_many(study, document) {
        return Err(problem.into());
    }
    let mut all = Problems::default();
    let mut workloads = BTreeMap::new();
    for &testbed in study.testbed.all() {
        let mut check = Check { study, testbed, document, problems: Problems::default() };
        check.scalars(context);
        workloads = check.classes(context);
        check.factors();
        check.settings("hold", &study.hold);
        check.excludes();
        for (field, message) in daemon_checks::check(study, testbed, context)
            .into_iter()
            .chain(access_classes::check(study, testbed))
            .chain(host_checks::check(study, testbed))
            .chain(fs_option_checks::check(study, testbed))
            .chain(control_check::check(study))
            .chain(comparison_check::check(study))
            .chain(precision_check::check(study))
            .chain(load_check::check(study, testbed))
            .chain(device_scheduler::check(study, testbed))
        {
            check.problem(field, message);
        }
        let of_requests: BTreeMap<String, Workload> = workloads
            .iter()
            .filter_map(|(class, workload)| Some((class.clone(), workload.requests()?.clone())))
            .collect();
        for (field, message) in daemon_chain::check(study, testbed, &of_requests) {
            check.problem(field, message);
        }
        for (field, message) in admission_check::check(study, &of_requests) {
            check.problem(field, message);
        }
        for (field, message) in simulated::check_places(study) {
            check.problem(field, message);
        }
        check.space(&of_requests);
        // A problem on both testbeds is reported once.
        let new: Vec<_> = check.problems.0.into_iter().filter(|problem| !all.0.contains(problem)).collect();
        all.0.extend(new);
    }
    all.or(workloads)
}

struct Check<'a> {
    study: &'a Study,
    testbed: Testbed,
    document: &'a Document,
    problems: Problems,
}

impl Check<'_> {
    fn problem(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let problem = self.document.problem(field, message);
        self.problems.0.push(problem);
    }

    fn within(&mut self, field: &str, value: f64, low: f64, high: f64) {
        if !(low..=high).contains(&value) {
            self.problem(field, format!("is {value}; it must be from {low} to {high}"));
        }
    }

    fn scalars(&mut self, context: &Context<'_>) {
        let study = self.study;
        let stem = self.document.file().file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if study.name != stem {
            let message =
                format!("is `{}`, but the file is called `{stem}.yml`: make them the same", study.name);
            self.problem("name", message);
        }
        if let Some(message) = name_problem(&study.name) {
            self.problem("name", message);
        }
        if let Some(message) = study.label.as_deref().and_then(label::problem) {
            self.problem("label", message);
        }
        self.within("repetitions", f64::from(study.repetitions), 1.0, 1000.0);
        self.within("warmup_s", study.warmup_s, 0.0, LONGEST_S);
        self.within("duration_s", study.duration_s, 0.1, LONGEST_S);
        self.within("allowed_loss", study.allowed_loss, 0.0, 1.0);
        self.within(
            "storage.heads",
            f64::from(study.storage.heads),
            1.0,
            f64::from(most_heads(self.testbed)),
        );
        self.within("storage.size_mib", study.storage.size_mib as f64, 64.0, LARGEST_DISK_MIB as f64);
        let unit = study.storage.stripe_unit_kib;
        if unit == 0 || !unit.is_multiple_of(4) || unit > 16 * 1024 {
            self.problem(
                "storage.stripe_unit_kib",
                format!("is {unit}; it must be a multiple of 4, at most 16384"),
            );
        }
        let profile = study.storage.profile.as_str();
        if !context.profiles.contains(&profile) && !std::path::Path::new(profile).is_file() {
            self.problem("storage.profile", one_of("profile", profile, context.profiles.iter().copied()));
        }
        if study.classes.is_empty() && study.access.is_none() {
            self.problem("classes", "is empty: add a class, or give `access`");
        }
    }

    fn classes(&mut self, context: &Context<'_>) -> BTreeMap<String, AnyWorkload> {
        let mut workloads = BTreeMap::new();
        for (name, class) in &self.study.classes {
            let field = format!("classes.{name}");
            if let Some(message) = name_problem(name) {
                self.problem(&field, message);
            }
            if name == SHARED_DEVICE {
                self.problem(&field, "is the name of the integrated server's device: choose another");
            }
            if class.clients == 0 {
                self.problem(format!("{field}.clients"), "is 0; leave the class out instead");
            }
            match self.testbed {
                Testbed::Device => {
                    for (at, message) in device_scheduler::check_class(self.study, class) {
                        self.problem(format!("{field}.{at}"), message);
                    }
                    if let Some(scheduler) = class.scheduler.as_ref().filter(|own| !own.is_of_kernel()) {
                        self.scheduler(&format!("{field}.scheduler"), scheduler);
                    }
                }
                Testbed::Simulator | Testbed::Admission => {
                    for (at, message) in simulated::check_class(class) {
                        self.problem(format!("{field}.{at}"), message);
                    }
                    if let Some(scheduler) = &class.scheduler {
                        self.scheduler(&format!("{field}.scheduler"), scheduler);
                    }
                }
            }
            self.objective(&field, class);
            match recipe::resolve(self.study, class, &field, context, self.document) {
                Ok(workload) => drop(workloads.insert(name.clone(), workload)),
                Err(found) => self.problems.0.extend(found.0),
            }
        }
        workloads
    }

    fn objective(&mut self, field: &str, class: &Class) {
        match class.objective {
            Some(Objective::ResponseMs { quantile, at_most }) => {
                self.within(&format!("{field}.objective.response_ms.quantile"), quantile, 0.0, 1.0);
                self.within(&format!("{field}.objective.response_ms.at_most"), at_most, 1e-6, 1e9);
            }
            Some(Objective::DeadlineMissShare(share) | Objective::Share(share)) => {
                self.within(&format!("{field}.objective"), share, 0.0, 1.0);
            }
            Some(Objective::RateMbS(rate)) => self.within(&format!("{field}.objective"), rate, 1e-9, 1e6),
            None => {}
        }
    }

    fn factors(&mut self) {
        for (name, levels) in levels_by_factor(self.study) {
            let field = format!("factors.{name}");
            if levels.is_empty() {
                self.problem(&field, "has no levels: give some, or leave the factor out");
            }
            if self.testbed.is_virtual() && counterpart::is_kernel_only(&name) {
                self.problem(
                    &field,
                    "is a setting of the kernel without a counterpart in virtual time: leave it out",
                );
            }
            for (index, level) in levels.iter().enumerate() {
                let at = format!("{field}.{index}");
                if levels[..index].iter().any(|earlier| same(earlier, level)) {
                    self.problem(&at, "is given twice");
                }
                let only = std::iter::once((name.clone(), level.clone())).collect();
                self.settings(&at, &apply(&self.neutral(), &only));
            }
        }
    }

    /// Valid settings, to check one level at a time.
    fn neutral(&self) -> Settings {
        let mut settings = Settings::default();
        if self.study.testbed.are_virtual() {
            settings.scheduler = defaults::default_scheduler();
        }
        settings
    }

    fn settings(&mut self, field: &str, settings: &Settings) {
        let hold = |name: &str| if field == "hold" { format!("hold.{name}") } else { field.to_owned() };
        let simulated = self.testbed.is_virtual();
        let counterpart =
            (simulated && self.study.testbed.are_two()).then(|| counterpart::settings(settings));
        let settings = counterpart.as_ref().unwrap_or(settings);
        if FileSystem::load(&settings.filesystem).is_none() {
            self.problem(
                hold("filesystem"),
                one_of("file system", &settings.filesystem, FileSystem::names()),
            );
        }
        if let Some(kernel) = &settings.kernel {
            if simulated && field == "hold" {
                self.problem(hold("kernel"), "is given, but virtual time has no kernel: leave it out");
            } else if let Some(message) = label_problem(kernel) {
                self.problem(hold("kernel"), message);
            }
        }
        self.within(&hold("load"), settings.load, 1e-3, 1e6);
        self.scheduler(&hold("scheduler"), &settings.scheduler);
        let depth = settings.queue_depth;
        if simulated && field == "hold" && !settings.priority.is_empty() {
            let message = "is given, but the simulator has no I/O priorities: leave it out";
            self.problem(hold("priority"), message);
        }
        if simulated && settings.filesystem != "raw" {
            let message =
                format!("is {}; a simulated server has no kernel file system: use raw", settings.filesystem);
            self.problem(hold("filesystem"), message);
        }
        let is_free = simulated || device_scheduler::is_always(self.study);
        if is_free && !(1..=MOST_TAGS).contains(&depth) {
            self.problem(hold("queue_depth"), format!("is {depth}; it must be from 1 to {MOST_TAGS}"));
        } else if !is_free && !(FEWEST_TAGS..=MOST_TAGS).contains(&depth) {
            self.problem(
                hold("queue_depth"),
                format!("is {depth}; the kernel allows {FEWEST_TAGS} to {MOST_TAGS}"),
            );
        }
        for (name, mib) in
            [("memory_mib", settings.memory_mib), ("server_memory_mib", settings.server_memory_mib)]
        {
            if let Some(mib) = mib {
                self.within(&hold(name), mib as f64, LEAST_MEMORY_MIB, 1e7);
            }
        }
        for (name, given) in [
            ("buffered", settings.buffered),
            ("warm_start", settings.warm_start),
            ("memory_mib", settings.memory_mib.is_some()),
        ] {
            if simulated && given {
                let message = "is given, but the simulator has no page cache: leave it out";
                self.problem(hold(name), message);
            }
        }
        for (name, given) in
            [("cgroup", !settings.cgroup.is_empty()), ("io_cost", settings.io_cost.is_some())]
        {
            if simulated && given {
                self.problem(hold(name), "is given, but the simulator has no control groups: leave it out");
            }
        }
        let classes: Vec<&str> = self.study.classes.keys().map(String::as_str).collect();
        for name in settings.clients.keys().chain(settings.priority.keys()) {
            if !classes.contains(&name.as_str()) {
                self.problem(hold("clients"), one_of("class", name, classes.iter().copied()));
            }
        }
    }

    fn scheduler(&mut self, field: &str, scheduler: &Scheduler) {
        match self.testbed {
            Testbed::Device if scheduler.is_of_kernel() => {}
            Testbed::Device => {
                let known: Vec<&str> = weir_scheduler::names().collect();
                if !known.contains(&scheduler.name.as_str()) {
                    self.problem(field, one_of("scheduler", &scheduler.name, known));
                } else if let Err(message) = device_scheduler::check_scheduler(scheduler, self.study) {
                    self.problem(field, message);
                }
            }
            Testbed::Simulator | Testbed::Admission => {
                if let Err(message) = simulated::check_scheduler(scheduler, self.study.classes.iter()) {
                    self.problem(field, message);
                }
            }
        }
    }

    fn excludes(&mut self) {
        let factors = counterpart::factors(self.study);
        for (index, entry) in self.study.exclude.iter().enumerate() {
            if entry.is_empty() {
                self.problem(format!("exclude.{index}"), "is empty and would leave out every cell");
            }
            for (name, level) in entry {
                let field = format!("exclude.{index}.{name}");
                match factors.iter().find(|(factor, _)| factor == name) {
                    None => {
                        let known: Vec<&str> = factors.iter().map(|(factor, _)| factor.as_str()).collect();
                        self.problem(field, one_of("factor", name, known));
                    }
                    Some((_, levels)) if !levels.iter().any(|known| same(known, level)) => {
                        let text =
                            |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        let known: Vec<String> = levels.iter().map(text).collect();
                        self.problem(field, one_of("level", &text(level), known.iter().map(String::as_str)));
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Checks that the files fit on the devices, and that the disks suffice for the classes.
    fn space(&mut self, workloads: &BTreeMap<String, Workload>) {
        let study = self.study;
        let mut architectures = study.factors.architecture.clone().unwrap_or_default();
        if architectures.is_empty() {
            architectures.push(study.hold.architecture);
        }
        let mut filesystems = study.factors.filesystem.clone().unwrap_or_default();
        if filesystems.is_empty() {
            filesystems.push(study.hold.filesystem.clone());
        }
        for architecture in architectures {
            let devices = devices(study, LOCAL, architecture);
            let heads = devices.iter().map(|device| device.heads).fold(0, u32::saturating_add);
            if architecture == Architecture::Partitioned && devices.iter().any(|device| device.heads == 0) {
                let message =
                    format!("is {}; a partitioned server needs one for each class", study.storage.heads);
                return self.problem("storage.heads", message);
            }
            if heads > study.storage.heads {
                let message = format!("is {}, but the classes need {heads} in total", study.storage.heads);
                return self.problem("storage.heads", message);
            }
            for device in &devices {
                let users = workloads
                    .iter()
                    .filter(|(_, workload)| admission_check::has_files(study, workload))
                    .filter(|(class, _)| architecture == Architecture::Integrated || **class == device.name);
                let needed = users
                    .map(|(class, w)| FileSet::new(&w.files, class, study.seed).total_bytes())
                    .fold(0, u64::saturating_add);
                let fill_share = if self.testbed.is_virtual() { 1.0 } else { FILL_SHARE };
                let room = device.size_mib as f64 * f64::from(1 << 20) * fill_share;
                if needed as f64 > room {
                    let message = format!(
                        "gives device `{}` {} MiB, but its files need {} MiB and may fill {:.0} %: enlarge it or use fewer files",
                        device.name,
                        device.size_mib,
                        needed.div_ceil(1 << 20),
                        fill_share * 100.0,
                    );
                    return self.problem("storage.size_mib", message);
                }
                for filesystem in filesystems.iter().filter_map(|name| FileSystem::load(name)) {
                    if device.size_mib < filesystem.smallest_mib {
                        let message = format!(
                            "gives device `{}` {} MiB; {} needs {} MiB",
                            device.name, device.size_mib, filesystem.name, filesystem.smallest_mib
                        );
                        return self.problem("storage.size_mib", message);
                    }
                }
            }
        }
    }
}
