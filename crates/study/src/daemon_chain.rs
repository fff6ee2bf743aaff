//! Chains of daemons: forwarding between them, their memory and their limits.

use std::collections::BTreeMap;

use weir_specs::one_of;
use weir_workload::{Popularity, Workload};

use crate::cells::settings_of_cells;
use crate::filesystem::FileSystem;
use crate::run::{Run, RunClass, RunService};
use crate::spec::{Settings, Study, StudyService};
use crate::testbed::Testbed;

/// Memory that the programs of a run need besides hot documents, about, in MiB.
const BESIDES_HOT_MIB: u64 = 16;
/// Memory that a daemon needs, about, in MiB.
const LEAST_MEMORY_MIB: u64 = 4;

impl Run {
    /// The daemons that a class goes through. The first receives its requests; the last has the files.
    pub fn services_of(&self, class: &RunClass) -> Vec<&RunService> {
        let mut found: Vec<&RunService> = Vec::new();
        let mut next = class.through.as_ref();
        while let Some(service) = next.and_then(|name| self.services.iter().find(|one| one.name == *name)) {
            // A plan written by hand can have a loop.
            if found.iter().any(|known| known.name == service.name) {
                break;
            }
            found.push(service);
            next = service.before.as_ref();
        }
        found
    }

    /// The classes whose requests a daemon answers itself, directly or behind proxies.
    pub fn visitors<'a>(&'a self, service: &'a str) -> impl Iterator<Item = &'a RunClass> {
        let is_its =
            move |class: &&RunClass| self.services_of(class).last().is_some_and(|last| last.name == service);
        self.classes.iter().filter(is_its)
    }
}

/// The chain of daemons from the first one. `None` if it is a loop.
fn chain<'a>(study: &'a Study, first: &'a str) -> Option<Vec<&'a str>> {
    let mut found = vec![first];
    while let Some(next) = found.last().and_then(|last| study.services.get(*last)?.before.as_deref()) {
        if found.contains(&next) {
            return None;
        }
        found.push(next);
    }
    Some(found)
}

/// The last daemon of a chain, which has the files or the site.
pub(crate) fn last<'a>(study: &'a Study, first: &str) -> Option<&'a StudyService> {
    study.services.get(*chain(study, first)?.last()?)
}

/// The length of the chain of a daemon. The shortest chains start first.
pub(crate) fn depth(study: &Study, name: &str) -> usize {
    chain(study, name).map_or(0, |chain| chain.len())
}

/// Whether a class goes through a daemon, directly or behind proxies.
pub(crate) fn is_asked(study: &Study, name: &str) -> bool {
    let through = study.classes.values().filter_map(|class| class.through.as_deref());
    through.filter_map(|first| chain(study, first)).any(|chain| chain.contains(&name))
}

/// Problems, by field.
pub(crate) fn check(
    study: &Study,
    testbed: Testbed,
    workloads: &BTreeMap<String, Workload>,
) -> Vec<(String, String)> {
    let mut found = check_server_memory(study);
    found.extend(check_warm_start(study));
    if testbed.is_virtual() {
        return found;
    }
    let settings: Vec<Settings> = settings_of_cells(study).collect();
    for (name, service) in &study.services {
        let mut problem = |at: &str, message: String| found.push((format!("services.{name}.{at}"), message));
        if let Some(before) = &service.before {
            if !study.services.contains_key(before) {
                problem("before", one_of("service", before, study.services.keys().map(String::as_str)));
            } else if chain(study, name).is_none() {
                problem("before", format!("is {before}, which closes a loop: one service must have files"));
            }
        }
        if let Some(hot_mib) = service.hot_mib {
            check_hot(study, workloads, name, hot_mib, &settings)
                .into_iter()
                .for_each(|message| problem("hot_mib", message));
        }
        check_limits(service, &settings).into_iter().for_each(|(at, message)| problem(at, message));
    }
    found
}

fn check_hot(
    study: &Study,
    workloads: &BTreeMap<String, Workload>,
    name: &str,
    hot_mib: u64,
    settings: &[Settings],
) -> Option<String> {
    if hot_mib == 0 {
        return Some("is 0 MiB: leave it out, or give null in a variant".to_owned());
    }
    if study.services.get(name).is_some_and(|service| service.before.is_some()) {
        return Some("is set on a service without files: set it on the service that has them".to_owned());
    }
    let is_its = |through: &String| chain(study, through).is_some_and(|chain| chain.last() == Some(&name));
    let classes = study.classes.iter().filter(|(_, class)| class.through.as_ref().is_some_and(is_its));
    for (class, workload) in classes.filter_map(|(class, _)| Some((class, workloads.get(class)?))) {
        if !matches!(workload.files.popularity, Popularity::Zipf { .. }) {
            return Some(format!(
                "keeps the most popular files, but class {class} requests all files equally often: set with: {{files.popularity: {{zipf: {{alpha: 0.9}}}}}}, or leave it out"
            ));
        }
    }
    let memory_mib = settings.iter().filter_map(|settings| settings.memory_mib).min()?;
    (hot_mib + BESIDES_HOT_MIB > memory_mib).then(|| {
        format!(
            "is {hot_mib} MiB of the {memory_mib} MiB that a run may use (memory_mib), of which its programs need {BESIDES_HOT_MIB}: lower it"
        )
    })
}

fn check_limits(service: &StudyService, settings: &[Settings]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Some(mib) = service.memory_mib {
        let run = settings.iter().filter_map(|settings| settings.memory_mib).min().unwrap_or(u64::MAX);
        if mib < LEAST_MEMORY_MIB {
            found.push(("memory_mib", format!("is {mib}; a service needs {LEAST_MEMORY_MIB} MiB")));
        } else if mib > run {
            let message = format!("is {mib}, but the whole run may use {run} MiB (memory_mib): lower it");
            found.push(("memory_mib", message));
        }
    }
    let Some(rate) = service.read_mb_s else { return found };
    if !(0.01..=1e5).contains(&rate) {
        found.push(("read_mb_s", format!("is {rate}; it must be from 0.01 to 1e5")));
    }
    if service.before.is_some() {
        found.push((
            "read_mb_s",
            "is set on a service that reads no files: set it on the service that reads them".to_owned(),
        ));
    }
    let none =
        |settings: &&Settings| FileSystem::load(&settings.filesystem).is_some_and(|found| !found.on_device);
    if let Some(settings) = settings.iter().find(none) {
        found.push((
            "read_mb_s",
            format!(
                "limits what a service reads from disks, but {} has no disks: leave one of the two out",
                settings.filesystem
            ),
        ));
    }
    found
}

/// The problem of a memory limit for servers that the study does not have.
fn check_server_memory(study: &Study) -> Vec<(String, String)> {
    let settings: Vec<Settings> = settings_of_cells(study).collect();
    let on_network = |settings: &Settings| {
        FileSystem::load(&settings.filesystem).is_some_and(|found| found.network.is_some())
    };
    let given = settings.iter().any(|settings| settings.server_memory_mib.is_some());
    if !given || settings.iter().any(on_network) {
        return Vec::new();
    }
    let at = if study.factors.server_memory_mib.is_some() { "factors" } else { "hold" };
    let message = "applies to servers of a network file system, but the study has none: leave it out";
    vec![(format!("{at}.server_memory_mib"), message.to_owned())]
}

/// The problem of a warm start without a page cache to warm.
fn check_warm_start(study: &Study) -> Option<(String, String)> {
    let mut settings = settings_of_cells(study).filter(|settings| settings.warm_start);
    let warm = settings.next()?;
    let limited = study.services.iter().find(|(_, service)| service.memory_mib.is_some());
    let message = if study.access.is_some() {
        "is given, but `access` measures both cached and uncached reads: leave it out".to_owned()
    } else if std::iter::once(warm).chain(settings).any(|warm| !warm.buffered) {
        "is given, but files that are not `buffered` are never in the page cache: set `buffered: true`"
            .to_owned()
    } else if let Some((name, _)) = limited {
        format!(
            "is given, but pages that are read before {name} starts do not count as its memory: leave out services.{name}.memory_mib, or limit the run (memory_mib)"
        )
    } else {
        return None;
    };
    let at = if study.factors.warm_start.is_some() { "factors" } else { "hold" };
    Some((format!("{at}.warm_start"), message))
}
