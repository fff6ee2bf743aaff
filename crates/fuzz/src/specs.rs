//! Fuzz targets of YAML specifications.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use weir_daemons::Daemon;
use weir_specs::Document;
use weir_study::{Context, FileSystem, Plan, ServiceSettings, TaskFile};
use weir_workload::sessions::AnyWorkload;
use weir_workload::{Catalog, Stream, StreamOptions};

/// File name in errors, and the name that a study must have.
const FILE: &str = "fuzzed.yml";
/// Most requests that are generated from a workload.
const REQUESTS: usize = 100;
/// Most runs of a plan that are checked one by one.
const RUNS: usize = 1000;

static WORKLOADS: LazyLock<PathBuf> =
    LazyLock::new(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads"));
static CATALOG: LazyLock<Option<Catalog>> = LazyLock::new(|| Catalog::open(&WORKLOADS).ok());

fn document(data: &[u8]) -> Option<Document> {
    Document::from_text(Path::new(FILE), std::str::from_utf8(data).ok()?).ok()
}

/// A study, expanded to its plan.
pub(crate) fn study(data: &[u8]) {
    let (Some(document), Some(workloads)) = (document(data), CATALOG.as_ref()) else { return };
    let profiles: Vec<&str> = weir_simulator::profile::names().collect();
    let services: Vec<ServiceSettings> = Daemon::names()
        .filter_map(Daemon::load)
        .map(|service| ServiceSettings { name: service.name, settings: service.settings })
        .collect();
    let context =
        Context { workloads, profiles: &profiles, benchmarks: &[], services: &services, label: None };
    if let Ok(plan) = Plan::from_document(&document, &context) {
        for run in plan.runs.iter().take(RUNS) {
            assert!(run.check_limits().is_ok(), "a checked study has no run beyond a limit");
        }
    }
}

/// A workload, and its first requests.
pub(crate) fn workload(data: &[u8]) {
    let Some(document) = document(data) else { return };
    let Ok(AnyWorkload::Requests(mut workload)) = AnyWorkload::from_document(&document) else { return };
    // Many files or frames would take long and test nothing more.
    let demand = workload.demand(2, 1.0);
    if demand.memory_bytes > 1e6 || workload.recording().is_some() {
        return;
    }
    let options = StreamOptions {
        class: "fuzzed".to_owned(),
        clients: 2,
        seed: 1,
        duration_ns: 1_000_000_000,
        warmup_ns: 0,
        folder: WORKLOADS.clone(),
    };
    let Ok(stream) = Stream::new(&workload, options) else { return };
    let sizes_bytes = stream.files().sizes_bytes().to_vec();
    for request in stream.take(REQUESTS) {
        let file_bytes = request.file.and_then(|file| sizes_bytes.get(file as usize)).copied().unwrap_or(0);
        assert!(request.size_bytes > 0, "a request asks for something");
        assert!(request.offset + request.size_bytes <= file_bytes, "a request lies within its file");
    }
}

/// Profiles of disks, specifications of servers and their classes, file systems, clusters, services, tasks, tables of
/// transitions, and the catalog of traces.
pub(crate) fn others(data: &[u8]) {
    let Some((kind, rest)) = crate::choice(data, 7) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind {
        0 => weir_simulator::profile::fuzzing(text),
        1 => weir_blockserver::fuzzing::spec(text),
        2 => weir_workload::sessions::fuzzing(text),
        3 => drop(document(rest).map(|found| found.parse::<FileSystem>())),
        4 => drop(document(rest).map(|found| found.parse::<weir_daemons::cluster::Description>())),
        5 => drop(document(rest).map(|found| TaskFile::from_document(&found).map(drop))),
        _ => {
            if let Some(found) = document(rest) {
                let _ = found.value();
                let _ = found.problem("classes.text.with.files", "").to_string();
            }
        }
    }
}
