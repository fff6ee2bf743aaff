//! Where studies and workloads lie: in the folder that holds `studies/` and `workloads/`, and in the library that comes with weir.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use weir_daemons::Daemon;
use weir_simulator::profile;
use weir_specs::{Document, Problems, files_by_name, nearest};
use weir_study::{Context, Plan, ServiceSettings, SiteBenchmark};
use weir_web_site::Benchmark;
use weir_workload::Catalog;

use crate::exit::bad_input;

/// The studies and workloads that a command works with: those of a project, and those that come with weir.
pub struct Project {
    /// The project, or the current folder if there is none.
    root: PathBuf,
    /// The library, unless it cannot be written and the project has its own.
    library: Option<PathBuf>,
}

impl Project {
    /// The project above the current folder, or the one named by `WEIR_ROOT`; elsewhere what comes with weir.
    ///
    /// # Errors
    /// `WEIR_ROOT` names no project, or there is none and what comes with weir cannot be unpacked.
    pub fn find() -> anyhow::Result<Self> {
        if let Some(root) = std::env::var_os("WEIR_ROOT") {
            let root = PathBuf::from(root);
            if !is_project(&root) {
                return Err(bad_input(format!("WEIR_ROOT={}: has no workloads", root.display())));
            }
            return Ok(Project { root, library: library().ok() });
        }
        let here = std::env::current_dir().context("the current folder is gone")?;
        match here.ancestors().find(|folder| is_project(folder)) {
            Some(root) => Ok(Project { root: root.to_owned(), library: library().ok() }),
            None => {
                let library = library().map_err(|error| {
                    bad_input(format!(
                        "{}: neither this folder nor one above it holds workloads, and those of weir cannot be unpacked: \
                         {error}. Set XDG_CACHE_HOME to a folder that can be written, or call weir init",
                        here.display()
                    ))
                })?;
                Ok(Project { root: here, library: Some(library) })
            }
        }
    }

    /// The folder that holds `studies/` and `workloads/`, if there is one; else the current folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The workloads.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn workloads(&self) -> anyhow::Result<Catalog> {
        self.catalog().map_err(bad_input)
    }

    fn catalog(&self) -> Result<Catalog, Problems> {
        let own = self.root.join(WORKLOADS);
        match &self.library {
            None => Catalog::open(&own),
            Some(library) if own.is_dir() => Catalog::open_with(&own, &library.join(WORKLOADS)),
            Some(library) => Catalog::open(&library.join(WORKLOADS)),
        }
    }

    /// Names of the studies, sorted.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn studies(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.study_files()?.into_keys().collect())
    }

    fn study_files(&self) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        let mut found = BTreeMap::new();
        for root in self.library.iter().chain([&self.root]) {
            let studies = root.join(STUDIES);
            if studies.is_dir() {
                found.extend(files_by_name(&studies, &[]).map_err(bad_input)?);
            }
        }
        Ok(found)
    }

    /// The file of a study given by name or by path.
    ///
    /// # Errors
    /// There is no such study.
    pub fn study_file(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = Path::new(name);
        let mut files = self.study_files()?;
        if path.extension().is_some() || path.components().count() > 1 {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            return match files.get(stem) {
                Some(file) if !path.exists() => Err(bad_input(format!(
                    "{name}: there is no such file; the study `{stem}` is {}: name it `{stem}`",
                    file.display()
                ))),
                _ => Ok(path.to_owned()),
            };
        }
        if let Some(file) = files.remove(name) {
            return Ok(file);
        }
        let known: Vec<String> = files.into_keys().collect();
        let meant = nearest(name, known.iter().map(String::as_str));
        let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        Err(bad_input(format!("unknown study `{name}`{meant} (known: {})", known.join(", "))))
    }

    /// The plan of a study given by name or by path, with the label of `--label`.
    ///
    /// # Errors
    /// There is no such study, it has problems, or the label is wrong.
    pub fn plan(&self, name: &str, label: Option<&str>) -> anyhow::Result<Plan> {
        if let Some(problem) = label.and_then(weir_study::label_problem) {
            return Err(bad_input(format!("--label: {problem}")));
        }
        self.plan_file(&self.study_file(name)?, label).map_err(bad_input)
    }

    fn plan_file(&self, file: &Path, label: Option<&str>) -> Result<Plan, Problems> {
        let workloads = self.catalog()?;
        let profiles: Vec<&str> = profile::names().collect();
        let benchmarks = Benchmark::ALL.map(|benchmark| SiteBenchmark {
            name: benchmark.name(),
            tables: benchmark.tables().iter().map(|table| table.name).collect(),
            pages: benchmark.pages(),
        });
        let services: Vec<ServiceSettings> = Daemon::names()
            .filter_map(Daemon::load)
            .map(|service| ServiceSettings { name: service.name, settings: service.settings })
            .collect();
        let context = Context {
            workloads: &workloads,
            profiles: &profiles,
            benchmarks: &benchmarks,
            services: &services,
            label,
        };
        let plan = Plan::from_file(file, &context)?;
        check_devices(&plan, &Document::read(file)?)?;
        Ok(plan)
    }

    /// All that is wrong with a study's file.
    ///
    /// # Errors
    /// These problems.
    pub fn check_study(&self, file: &Path) -> Result<Plan, Problems> {
        self.plan_file(file, None)
    }
}

/// Folders of a project, and of the library.
pub const STUDIES: &str = "studies";
pub const WORKLOADS: &str = "workloads";

fn is_project(folder: &Path) -> bool {
    folder.join(WORKLOADS).is_dir()
}

/// The folder of the studies and workloads that come with weir.
fn library() -> std::io::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| std::io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))?;
    let cache = cache.join("weir");
    weir_library::unpack(&cache)
        .map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", cache.display())))
}

/// Whether the profile of every device can be had, and in simulated studies whether a head can have its size. On a device
/// testbed disks of the inventory may stand for the modelled ones, so that the size is checked when a device is made.
fn check_devices(plan: &Plan, study: &Document) -> Result<(), Problems> {
    let simulated = plan.runs.iter().any(|run| run.testbed.is_virtual());
    for device in &plan.devices {
        let loaded = profile::load(&device.profile)
            .map_err(|error| study.problem("storage.profile", error.to_string()))?;
        let head_bytes = (device.size_mib << 20) / u64::from(device.heads.max(1));
        if simulated && let Err(error) = loaded.check_capacity(head_bytes) {
            let message = format!("profile `{}`: {error}", device.profile);
            return Err(study.problem("storage.size_mib", message).into());
        }
    }
    Ok(())
}
