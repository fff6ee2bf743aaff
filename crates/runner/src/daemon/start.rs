//! Start of a run's daemons, once its files are in place; they stop with the run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use weir_daemons::{Daemon, Instance, Scope, Start, Tier, start};
use weir_specs::template::Values;
use weir_study::{Run, RunService};

use crate::Error;
use crate::cgroup::limits::Limits;
use crate::context::journal::{Change, Journal};
use crate::context::run_context::RunContext;
use crate::daemon::hot_documents::{self, HotDocuments};
use crate::daemon::site::{self, Laid};
use crate::files::placement::Placement;
use crate::filesystem::owned_folder;

/// Name of a daemon in the state folder.
fn process_name(service: &RunService) -> String {
    format!("run.{}", service.name)
}

/// Checks that every daemon of a run is known and installed, and supports the study's options.
///
/// # Errors
/// A daemon fails a check; the text has the remedy.
pub(crate) fn check(run: &Run) -> Result<(), Error> {
    for wanted in run.services.iter().filter(|wanted| wanted.site.is_none()) {
        let service = load(wanted)?;
        let refused =
            |error: weir_daemons::Error| Error::Refused(format!("services.{}: {error}", wanted.name));
        weir_daemons::check_settings(&service, &wanted.settings).map_err(refused)?;
        weir_daemons::version(&service).map_err(|error| Error::Refused(error.to_string()))?;
        let refused = |text: &str| Err(Error::Refused(format!("service {}: {text}", wanted.name)));
        if wanted.before.is_some() && !service.passes_on() {
            return refused(&format!(
                "{} cannot pass requests to another daemon. Leave `before` out",
                service.name
            ));
        }
        if wanted.before.is_none() && service.passes_on() {
            return refused("field `before` is missing. Name the daemon behind it");
        }
        if wanted.hot_mib.is_some() && service.hot.is_none() {
            return refused(&format!(
                "{} cannot serve documents from memory. Use nginx, or leave hot_mib out",
                service.name
            ));
        }
    }
    site::check_databases(run)
}

fn load(wanted: &RunService) -> Result<Daemon, Error> {
    let name = wanted.service.as_deref().unwrap_or_default();
    Daemon::load(name)
        .ok_or_else(|| Error::Refused(format!("daemon {name} is not known to weir (weir list services)")))
}

/// Files and data that a run's daemons serve.
pub(crate) struct LaidOut<'a> {
    /// Files of classes.
    pub(crate) places: &'a [Placement],
    /// Databases of sites.
    pub(crate) sites: &'a [Laid],
    /// Documents in memory.
    pub(crate) hot: &'a [HotDocuments],
}

/// Starts the daemons of a run, in order, and waits until each answers. The journal lists each before it is started.
///
/// # Errors
/// A daemon does not become ready; its log, in `logs`, says why.
pub(crate) fn start_all(
    context: &RunContext<'_>,
    laid: &LaidOut<'_>,
    limits: &Limits,
    journal: &mut Journal,
) -> Result<Vec<Instance>, Error> {
    let (run, state) = (context.run, context.state());
    let mut instances = Vec::new();
    for wanted in &run.services {
        if let Some(of_site) = &wanted.site
            && let Some(site) = laid.sites.iter().find(|site| site.name == wanted.name)
        {
            let both = site::start(context, (wanted, of_site), site, limits, journal)?;
            instances.extend(both);
            continue;
        }
        let tier = Tier {
            upstream: wanted.before.as_ref().map(|name| address_of(run, name)).transpose()?,
            hot: laid.hot.iter().find(|hot| hot.service == wanted.name).map(HotDocuments::served),
        };
        let root = if tier.upstream.is_some() { None } else { Some(root(run, wanted, laid.places)?) };
        let name = process_name(wanted);
        let folder = state.join("services").join(&name);
        owned_folder::own(&folder, state, "service of a run", journal)?;
        journal.note(Change::Process { state: state.to_owned(), name: name.clone() })?;
        let start_it = Start {
            scope: Scope::Run,
            run: folder,
            root,
            data: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: wanted.port,
            namespace: None,
            group: limits.group(&wanted.name),
            memory_mib: wanted.memory_mib.or(run.settings.memory_mib).unwrap_or(0),
            set: wanted.settings.clone(),
            own: Values::new(),
            log: context.logs().join(format!("{}.log", wanted.name)),
            tier,
            name,
        };
        let instance = start(&load(wanted)?, state, &start_it)?;
        instances.push(instance);
    }
    Ok(instances)
}

fn address_of(run: &Run, name: &str) -> Result<SocketAddr, Error> {
    let found = run.services.iter().find(|service| service.name == name);
    let port = found.map(|service| service.port);
    port.map(|port| (Ipv4Addr::LOCALHOST, port).into())
        .ok_or_else(|| Error::Refused(format!("service {name}: the run has no daemon of this name")))
}

/// Folder above the folders of all classes whose files a daemon serves.
fn root(run: &Run, service: &RunService, places: &[Placement]) -> Result<PathBuf, Error> {
    let mut roots = places
        .iter()
        .filter(|place| hot_documents::is_behind(run, place, &service.name) && !place.is_raw())
        .filter_map(|place| place.path.parent());
    match (roots.next(), roots.next()) {
        (Some(root), other) if other.is_none_or(|other| other == root) => Ok(root.to_owned()),
        _ => Err(Error::Refused(format!(
            "service {}: its classes are on different file systems. Use architecture `integrated`",
            service.name
        ))),
    }
}

/// Daemons that ended during the run.
pub(crate) fn problems(instances: &[Instance]) -> impl Iterator<Item = String> + '_ {
    instances
        .iter()
        .filter(|instance| !instance.process.is_alive())
        .map(|instance| format!("service {} ended during the run", instance.name))
}
