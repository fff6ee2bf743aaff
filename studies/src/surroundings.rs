//! What is around the classes of a study: servers of network file systems, and services.

use std::collections::BTreeMap;

use weir_specs::one_of;

use crate::filesystem::FileSystem;
use crate::level::Architecture;
use crate::plan::{apply, cross, is_excluded, levels_by_factor};
use crate::run::RunService;
use crate::spec::{Study, StudyService};
use crate::testbed::Testbed;

/// The services of each run of a study.
pub(crate) fn services(study: &Study) -> Vec<RunService> {
    let of = |(name, service): (&String, &StudyService)| RunService {
        name: name.clone(),
        service: service.service.clone(),
        serves: service.serves.clone(),
        port: service.port,
        settings: service.settings.clone(),
    };
    study.services.iter().map(of).collect()
}

/// What is wrong, by field.
pub(crate) fn check(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    let mut found = check_services(study, testbed);
    found.extend(check_network(study));
    found
}

/// Whether a service is known is asked when a run begins: what is installed differs from host to host.
fn check_services(study: &Study, testbed: Testbed) -> Vec<(String, String)> {
    let classes: Vec<&str> = study.classes.keys().map(String::as_str).collect();
    let mut ports: BTreeMap<u16, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for (name, service) in &study.services {
        let field = format!("services.{name}");
        let mut problem = |at: &str, message: String| found.push((format!("{field}{at}"), message));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            problem("", "names a process and a log: use letters, digits, - and _ only".to_owned());
        }
        if !classes.contains(&service.serves.as_str()) {
            problem(".serves", one_of("class", &service.serves, classes.iter().copied()));
        }
        if let Some(other) = ports.insert(service.port, name) {
            problem(".port", format!("is {}, as that of {other}", service.port));
        }
        if testbed.is_virtual() {
            problem("", "is for `testbed: device` only: leave it out".to_owned());
        }
    }
    found
}

/// A network file system is one over all disks.
fn check_network(study: &Study) -> Option<(String, String)> {
    let name = cross(&levels_by_factor(study)).into_iter().find_map(|cell| {
        let settings = apply(&study.hold, &cell);
        let found = FileSystem::load(&settings.filesystem)?;
        let apart = settings.architecture == Architecture::Partitioned && found.network.is_some();
        (apart && !is_excluded(study, &cell)).then_some(found.name)
    })?;
    let message = format!(
        "has {name} with `architecture: partitioned`, but its servers are one file system for all classes: use integrated, or exclude {{filesystem: {name}, architecture: partitioned}}"
    );
    let varied = study.factors.filesystem.is_some();
    Some((if varied { "factors.filesystem" } else { "hold.filesystem" }.to_owned(), message))
}
