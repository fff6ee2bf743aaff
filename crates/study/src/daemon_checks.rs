//! Daemons of a study, in the order of their start, and checks of their fields.

use std::collections::BTreeMap;

use weir_specs::{name_problem, one_of};

use crate::cells::settings_of_cells;
use crate::context::Context;
use crate::filesystem::FileSystem;
use crate::level::Architecture;
use crate::run::RunService;
use crate::site::Site;
use crate::spec::{Class, Settings, Study, StudyService};
use crate::testbed::Testbed;
use crate::{daemon_chain, settings, site_checks};

/// The daemons of each run of a study, in the order of their start: a daemon before those that send requests to it.
pub(crate) fn services(study: &Study) -> Vec<RunService> {
    let of = |(name, service): (&String, &StudyService)| RunService {
        name: name.clone(),
        service: service.service.clone(),
        site: service.site.clone().map(Site::whole),
        port: service.port,
        settings: service.settings.clone(),
        before: service.before.clone(),
        hot_mib: service.hot_mib,
        memory_mib: service.memory_mib,
        read_mb_s: service.read_mb_s,
    };
    let mut all: Vec<RunService> = study.services.iter().map(of).collect();
    all.sort_by_key(|service| daemon_chain::depth(study, &service.name));
    all
}

/// Problems, by field.
pub(crate) fn check(study: &Study, testbed: Testbed, context: &Context<'_>) -> Vec<(String, String)> {
    let mut found = check_services(study, testbed, context);
    found.extend(study.classes.iter().flat_map(|(name, class)| check_through(study, name, class)));
    found.extend(check_network(study));
    found
}

/// Whether a daemon is installed is checked when a run starts, since it differs between hosts.
fn check_services(study: &Study, testbed: Testbed, context: &Context<'_>) -> Vec<(String, String)> {
    let mut ports: BTreeMap<u16, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for (name, service) in &study.services {
        let field = format!("services.{name}");
        let of_site = site_checks::check(study, name, service, context).into_iter();
        found.extend(of_site.map(|(at, message)| (format!("{field}{at}"), message)));
        if let Some(kind) = &service.service {
            let of_service = settings::check(kind, &format!("{field}.settings"), &service.settings, context);
            found.extend(of_service);
        }
        let mut problem = |at: &str, message: String| found.push((format!("{field}{at}"), message));
        if let Some(kind) = &service.service
            && !context.services.iter().any(|known| known.name == *kind)
        {
            let known = context.services.iter().map(|known| known.name.as_str());
            problem(".service", one_of("service", kind, known));
        }
        if let Some(message) = name_problem(name) {
            problem("", message);
        }
        if !daemon_chain::is_asked(study, name) {
            problem(
                "",
                format!(
                    "no class goes `through: {name}`: add `through` to a class, or leave the service out"
                ),
            );
        }
        if let Some(other) = ports.insert(service.port, name) {
            problem(".port", format!("is {}, which is also the port of {other}: use another", service.port));
        }
        if testbed.is_virtual() {
            problem("", "applies to `testbed: device` only: leave it out".to_owned());
        }
    }
    found
}

/// Problems of a class that goes through a daemon.
fn check_through(study: &Study, name: &str, class: &Class) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut problem = |at: &str, message: String| found.push((format!("classes.{name}.{at}"), message));
    let Some(through) = &class.through else {
        if class.think_ms.is_some() {
            problem("think_ms", "needs `through`: name a service, or leave it out".to_owned());
        }
        return found;
    };
    if class.think_ms.is_some_and(|think_ms| !(0.0..=1e9).contains(&think_ms)) {
        problem("think_ms", "must be from 0 to 1e9".to_owned());
    }
    let is_site = daemon_chain::last(study, through).is_some_and(|service| service.site.is_some());
    if is_site && class.think_ms.is_some() {
        problem("think_ms", "is given, but workloads of sessions have think times of their own: change them by `with: {sessions.think: ...}`".to_owned());
    }
    if !study.services.contains_key(through) {
        problem("through", one_of("service", through, study.services.keys().map(String::as_str)));
    }
    if class.priority.is_some() {
        problem(
            "priority",
            "applies to requests to a disk, which the service sends for all its clients: leave it out"
                .to_owned(),
        );
    }
    let levels = || settings_of_cells(study);
    let has_files = |settings: &Settings| {
        FileSystem::load(&settings.filesystem).is_none_or(|found| found.mount_type.is_some())
    };
    // For a site this is reported once, at the daemon.
    if !is_site && let Some(settings) = levels().find(|settings| !has_files(settings)) {
        problem(
            "through",
            format!(
                "is {through}, which serves files, but {} has none: use a file system",
                settings.filesystem
            ),
        );
    }
    let others = study.classes.iter().filter(|(_, other)| other.through.as_ref() == Some(through));
    if others.count() > 1 && levels().any(|settings| settings.architecture == Architecture::Partitioned) {
        problem(
            "through",
            format!(
                "is {through}, as in another class, but with `architecture: partitioned` each class has its own file system: use one service for each class"
            ),
        );
    }
    found
}

/// The problem of a network file system, which is one over all disks, with partitioned disks.
fn check_network(study: &Study) -> Option<(String, String)> {
    let name = settings_of_cells(study).find_map(|settings| {
        let found = FileSystem::load(&settings.filesystem)?;
        let apart = settings.architecture == Architecture::Partitioned && found.is_remote();
        apart.then_some(found.name)
    })?;
    let message = format!(
        "has {name} with `architecture: partitioned`, but its servers are one file system for all classes: use integrated, or exclude {{filesystem: {name}, architecture: partitioned}}"
    );
    let varied = study.factors.filesystem.is_some();
    Some((if varied { "factors.filesystem" } else { "hold.filesystem" }.to_owned(), message))
}
