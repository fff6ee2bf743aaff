//! Where studies and workloads lie: the folder that holds `studies/` and `workloads/`.

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

/// The project that a command works in.
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The project above the current folder, or the one named by `WEIR_ROOT`.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> anyhow::Result<Self> {
        if let Some(root) = std::env::var_os("WEIR_ROOT") {
            return Self::at(Path::new(&root))
                .ok_or_else(|| bad_input(format!("WEIR_ROOT={}: has no workloads", root.display())));
        }
        let here = std::env::current_dir().context("the current folder is gone")?;
        here.ancestors().find_map(Self::at).ok_or_else(|| {
            bad_input(format!(
                "{}: neither this folder nor one above it holds workloads; set WEIR_ROOT",
                here.display()
            ))
        })
    }

    /// The folder that holds `studies/` and `workloads/`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn at(root: &Path) -> Option<Self> {
        root.join("workloads").is_dir().then(|| Project { root: root.to_owned() })
    }

    /// The workloads.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn workloads(&self) -> anyhow::Result<Catalog> {
        Catalog::open(&self.root.join("workloads")).map_err(bad_input)
    }

    /// Names of the studies, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn studies(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.study_files()?.into_keys().collect())
    }

    fn study_files(&self) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        files_by_name(&self.root.join("studies"), &[]).map_err(bad_input)
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
        let workloads = Catalog::open(&self.root.join("workloads"))?;
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
