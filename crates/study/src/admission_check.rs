//! Checks of the parameters of admission control.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use weir_specs::one_of;
use weir_workload::{Frames, Sizes, Workload};

use crate::admission::{AdmissionSettings, MIX};
use crate::cells::{ADMISSION, apply, levels_by_factor};
use crate::level::Architecture;
use crate::spec::Study;
use crate::testbed::Testbed;

/// How far the frames of a round may be off a whole number.
const FRAME_ROUNDING: f64 = 1e-6;
/// Parameters that are right or wrong together.
const TOGETHER: [&str; 3] = ["policy", "latency_target_rounds", "hop_rounds"];

/// The frames of a workload, if it is a film.
pub(crate) fn film(workload: &Workload) -> Option<&Frames> {
    match &workload.sizes {
        Sizes::Frames(frames) => Some(frames),
        _ => None,
    }
}

/// Whether a class has files of its own on the disks: admitted films lie where their streams need them.
pub(crate) fn has_files(study: &Study, workload: &Workload) -> bool {
    !(study.testbed.are_virtual() && is_asked_for(study) && film(workload).is_some())
}

/// Whether a study admits streams.
fn is_asked_for(study: &Study) -> bool {
    study.hold.admission.is_some() || study.factors.admission.is_some()
}

/// Problems: fields and messages.
pub(crate) fn check(study: &Study, workloads: &BTreeMap<String, Workload>) -> Vec<(String, String)> {
    if !is_asked_for(study) {
        return Vec::new();
    }
    let field = if study.factors.admission.is_some() { "factors.admission" } else { "hold.admission" };
    if study.testbed.is_only(Testbed::Device) {
        let message = "applies to `testbed: admission` and `testbed: simulator` only: leave it out";
        return vec![(field.to_owned(), message.to_owned())];
    }
    let mut problems = Vec::new();
    let mut problem = |field: &str, message: String| problems.push((field.to_owned(), message));
    let is_film = |class: &str| workloads.get(class).is_some_and(|workload| film(workload).is_some());
    if study.testbed.is_only(Testbed::Admission) {
        for (name, _) in levels_by_factor(study) {
            if !name.starts_with(ADMISSION) {
                let message = "has no effect on `testbed: admission`: vary parameters of `admission` only";
                problem(&format!("factors.{name}"), message.to_owned());
            }
        }
        for class in workloads.keys().filter(|class| !is_film(class)) {
            let message = "is no video and has no streams to admit: use a workload with `sizes: frames`";
            problem(&format!("classes.{class}.workload"), message.to_owned());
        }
    } else if !workloads.keys().any(|class| is_film(class)) {
        problem(
            "classes",
            "have no video that could be admitted: use a workload with `sizes: frames`".to_owned(),
        );
    }
    let architectures = study.factors.architecture.iter().flatten().chain([&study.hold.architecture]);
    if study.testbed.is_only(Testbed::Simulator)
        && architectures.into_iter().any(|at| *at == Architecture::Partitioned)
    {
        let message =
            "is partitioned, but streams are admitted to disks that all classes share: use integrated";
        problem("architecture", message.to_owned());
    }
    for settings in combinations(study) {
        one(study, workloads, &settings, field, &mut problem);
    }
    problems.sort();
    problems.dedup();
    problems
}

fn one(
    study: &Study,
    workloads: &BTreeMap<String, Workload>,
    settings: &AdmissionSettings,
    field: &str,
    problem: &mut impl FnMut(&str, String),
) {
    for (at, message) in settings.problems() {
        problem(&format!("{field}.{at}"), message);
    }
    let films: Vec<(&String, &Frames)> =
        workloads.iter().filter_map(|(class, workload)| Some((class, film(workload)?))).collect();
    if settings.stream != MIX && !films.iter().any(|(class, _)| **class == settings.stream) {
        let known = films.iter().map(|(class, _)| class.as_str()).chain([MIX]);
        problem(&format!("{field}.stream"), one_of("stream", &settings.stream, known));
    }
    if study.testbed.is_only(Testbed::Simulator) && settings.drop_pct > 0.0 {
        let message = "is above 0, but a simulated server serves all blocks: use `testbed: admission`";
        problem(&format!("{field}.drop_pct"), message.to_owned());
    }
    for (class, frames) in films {
        let per_round = frames.rate_hz * settings.round_ms / 1e3;
        if per_round < 1.0 - FRAME_ROUNDING || (per_round - per_round.round()).abs() > FRAME_ROUNDING {
            let message = format!(
                "is {}: a round of {class} has {per_round} frames at {} a second; it must be a whole number",
                settings.round_ms, frames.rate_hz
            );
            problem(&format!("{field}.round_ms"), message);
        }
    }
}

/// The settings with each level by itself, and with all levels of the parameters that depend on each other.
fn combinations(study: &Study) -> Vec<AdmissionSettings> {
    let held = study.hold.clone();
    let mut cells: Vec<Map<String, Value>> = vec![Map::new()];
    let mut single = Vec::new();
    for (name, levels) in levels_by_factor(study) {
        let Some(parameter) = name.strip_prefix(ADMISSION) else { continue };
        let with = |cell: &Map<String, Value>, level: &Value| {
            let mut cell = cell.clone();
            cell.insert(name.clone(), level.clone());
            cell
        };
        if TOGETHER.contains(&parameter) {
            cells = cells.iter().flat_map(|cell| levels.iter().map(move |level| with(cell, level))).collect();
        } else {
            single.extend(levels.iter().map(|level| with(&Map::new(), level)));
        }
    }
    // Alone, each level needs the others' first.
    let first = cells.first().cloned().unwrap_or_default();
    single.iter_mut().for_each(|cell| cell.extend(first.clone()));
    cells.extend(single);
    cells.iter().filter_map(|cell| apply(&held, cell).admission).collect()
}
