//! `weir list`: what there is to name in a study.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::json;
use weir_daemons::Daemon;
use weir_daemons::cluster::Description;
use weir_scheduler::{Entry, KERNEL_SCHEDULERS, KernelScheduler, POLICIES};
use weir_study::FileSystem;

use crate::exit::{self, bad_input};
use crate::output::{self, Output};
use crate::project::Project;

/// List the names that a study can use.
#[derive(clap::Args)]
pub struct Args {
    /// Kind of name.
    what: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Studies,
    Workloads,
    Schedulers,
    Filesystems,
    Clusters,
    Services,
    #[value(alias = "disks")]
    Profiles,
    Traces,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let rows: Vec<(String, String, serde_json::Value)> = match args.what {
        What::Studies => studies()?,
        What::Workloads => workloads()?,
        What::Schedulers => schedulers(),
        What::Filesystems => FileSystem::names()
            .filter_map(FileSystem::load)
            .map(|fs| (fs.name.clone(), fs.description.clone(), json!(fs)))
            .collect(),
        What::Clusters => Description::names()
            .filter_map(Description::load)
            .map(|found| (found.name.clone(), found.description.clone(), json!(found)))
            .collect(),
        What::Services => Daemon::names().filter_map(Daemon::load).map(service).collect(),
        What::Traces => crate::fetch::listed(&weir_trace::catalog::Catalog::built_in().map_err(bad_input)?),
        What::Profiles => weir_simulator::profile::names()
            .map(|name| {
                let profile = weir_simulator::profile::load(name).map_err(bad_input)?;
                Ok((
                    name.to_owned(),
                    profile.description().to_owned(),
                    json!({"name": name, "description": profile.description()}),
                ))
            })
            .collect::<anyhow::Result<_>>()?,
    };
    if output.is_json() {
        let rows: Vec<_> = rows.into_iter().map(|(_, _, value)| value).collect();
        output::document(&rows)?;
    } else {
        let width = rows.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
        for (name, description, _) in &rows {
            println!("{name:width$}  {description}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn studies() -> anyhow::Result<Vec<(String, String, serde_json::Value)>> {
    let project = Project::find()?;
    let describe = |name: String| {
        let plan = project.plan(&name, None)?;
        let value = json!({"name": name, "question": plan.question, "runs": plan.runs.len()});
        Ok((name, format!("{} ({} runs)", plan.question, plan.runs.len()), value))
    };
    project.studies()?.into_iter().map(describe).collect()
}

fn workloads() -> anyhow::Result<Vec<(String, String, serde_json::Value)>> {
    let catalog = Project::find()?.workloads()?;
    let describe = |name: &str| {
        let workload = catalog.load_any(name).map_err(bad_input)?;
        Ok((name.to_owned(), workload.description().to_owned(), json!(workload)))
    };
    catalog.names().chain(catalog.session_names()).map(describe).collect()
}

/// The kernel's, with whether a disk of this host can have them; then weir's own.
fn schedulers() -> Vec<(String, String, serde_json::Value)> {
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let here: String =
        disks.filter_map(|disk| std::fs::read_to_string(disk.path().join("queue/scheduler")).ok()).collect();
    let here: Vec<&str> = here.split_ascii_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
    let of_kernel = |scheduler: &KernelScheduler| {
        let available = here.contains(&scheduler.name);
        let text = if available {
            "kernel's: in this kernel"
        } else {
            "kernel's: not in this kernel, or its module is not loaded"
        };
        let model = POLICIES.iter().find(|entry| entry.name == scheduler.counterpart);
        let value = json!({
            "name": scheduler.name,
            "kind": "kernel",
            "label": scheduler.label,
            "module": scheduler.module,
            "counterpart": scheduler.counterpart,
            "available": available,
            "settings": model.map(settings),
        });
        (scheduler.name.to_owned(), text.to_owned(), value)
    };
    KERNEL_SCHEDULERS.iter().map(of_kernel).chain(POLICIES.iter().map(policy)).collect()
}

fn settings(entry: &Entry) -> serde_json::Value {
    entry.settings.iter().map(|(name, about)| ((*name).to_owned(), json!(about))).collect()
}

/// A daemon with the settings of studies; `weir service list` shows all settings.
fn service(found: Daemon) -> (String, String, serde_json::Value) {
    let of_studies = found.settings.iter().filter(|(_, setting)| setting.kind.is_of_studies());
    let names: Vec<&str> = of_studies.map(|(name, _)| name.as_str()).collect();
    let mut text = found.description.clone();
    if !names.is_empty() {
        text += &format!(" [{}]", names.join(", "));
    }
    (found.name.clone(), text, json!(found))
}

fn policy(entry: &Entry) -> (String, String, serde_json::Value) {
    let names: Vec<&str> = entry.settings.iter().map(|(name, _)| *name).collect();
    let mut text = format!("simulator's: {}", entry.about);
    if !names.is_empty() {
        text += &format!(" [{}]", names.join(", "));
    }
    let of_kernel = KERNEL_SCHEDULERS.iter().find(|scheduler| scheduler.counterpart == entry.name);
    let value = json!({
        "name": entry.name,
        "kind": "simulator",
        "label": entry.label,
        "counterpart": of_kernel.map(|scheduler| scheduler.name),
        "available": true,
        "about": entry.about,
        "promises": entry.promises,
        "settings": settings(entry),
    });
    (entry.name.to_owned(), text, value)
}
