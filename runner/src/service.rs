//! The services of a run: started once its files lie where they should, ended with it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use weir_services::{Instance, Scope, Service, Start, start};
use weir_studies::{Run, RunService};

use crate::Error;
use crate::journal::{Change, Journal};
use crate::limits::Limits;
use crate::place::Place;
use crate::site::{self, Laid};

/// What a service of a run is called in the state folder.
fn process_name(service: &RunService) -> String {
    format!("run.{}", service.name)
}

/// Whether every service of a run is known and installed.
///
/// # Errors
/// One is not; the text says what to install.
pub(crate) fn check(run: &Run) -> Result<(), Error> {
    for wanted in run.services.iter().filter(|wanted| wanted.site.is_none()) {
        let service = load(wanted)?;
        weir_services::version(&service).map_err(|error| Error::Refused(error.to_string()))?;
    }
    site::look(run)
}

fn load(wanted: &RunService) -> Result<Service, Error> {
    let name = wanted.service.as_deref().unwrap_or_default();
    Service::load(name).ok_or_else(|| Error::Refused(format!("service {name} is unknown")))
}

/// Starts the services of a run, in order, and waits until each answers. The journal knows them before they are there.
///
/// # Errors
/// One does not come up; its log, in `logs`, says why.
pub(crate) fn start_all(
    run: &Run,
    state: &Path,
    places: &[Place],
    sites: &[Laid],
    limits: &Limits,
    logs: &Path,
    journal: &mut Journal,
) -> Result<Vec<Instance>, Error> {
    let mut instances = Vec::new();
    for wanted in &run.services {
        if let Some(of_site) = &wanted.site
            && let Some(laid) = sites.iter().find(|laid| laid.name == wanted.name)
        {
            let both = site::start(run, (wanted, of_site), state, laid, limits, logs, journal)?;
            instances.extend(both);
            continue;
        }
        let root = root(wanted, places)?;
        let name = process_name(wanted);
        let folder = state.join("services").join(&name);
        journal.note(Change::Partial(folder.clone()))?;
        journal.note(Change::Process { state: state.to_owned(), name: name.clone() })?;
        let start_it = Start {
            scope: Scope::Run,
            run: folder,
            root: Some(root),
            data: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: wanted.port,
            namespace: None,
            group: limits.group(&wanted.name),
            memory_mib: run.settings.memory_mib.unwrap_or(0),
            set: wanted.settings.clone(),
            log: logs.join(format!("{}.log", wanted.name)),
            name,
        };
        let instance = start(&load(wanted)?, state, &start_it).map_err(|error| {
            if error.is_refusal() {
                Error::Refused(error.to_string())
            } else {
                Error::Failed(error.to_string())
            }
        })?;
        instances.push(instance);
    }
    Ok(instances)
}

/// The folder in which each class of a service has one of its own.
fn root(service: &RunService, places: &[Place]) -> Result<PathBuf, Error> {
    let mut roots = places
        .iter()
        .filter(|place| place.class.through.as_ref() == Some(&service.name) && !place.is_raw())
        .filter_map(|place| place.path.parent());
    match (roots.next(), roots.next()) {
        (Some(root), other) if other.is_none_or(|other| other == root) => Ok(root.to_owned()),
        _ => Err(Error::Refused(format!(
            "service {}: the classes that go through it have no file system in common",
            service.name
        ))),
    }
}

/// What is not as it was: a service that ended by itself measured nothing.
pub(crate) fn problems(instances: &[Instance]) -> impl Iterator<Item = String> + '_ {
    instances
        .iter()
        .filter(|instance| !instance.process.is_alive())
        .map(|instance| format!("service {} ended by itself", instance.name))
}
