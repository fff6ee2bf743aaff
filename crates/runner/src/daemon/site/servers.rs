//! Servers of a site: the database server and the application server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use weir_daemons::{Daemon, Instance, Ready, Scope, Signal, Start, Stop};
use weir_specs::template::Values;
use weir_study::{RunService, Site};

use super::data::Laid;
use super::database::{DATABASE, address, database, process_name, user};
use crate::Error;
use crate::cgroup::limits::Limits;
use crate::context::journal::{Change, Journal};
use crate::context::run_context::RunContext;
use crate::filesystem::owned_folder;

/// Connections to the database besides those of the application server: for the check, and for people.
const OTHER_CONNECTIONS: u32 = 10;
/// Address where the database listens besides its socket: not that of the application server, which has the same port.
const DATABASE_HOST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Starts both servers, the database first, and waits until each is ready.
///
/// # Errors
/// A server does not become ready; its log, in `logs`, says why.
pub(crate) fn start(
    context: &RunContext<'_>,
    (service, site): (&RunService, &Site),
    laid: &Laid,
    limits: &Limits,
    journal: &mut Journal,
) -> Result<[Instance; 2], Error> {
    let (run, state, logs) = (context.run, context.state(), context.logs());
    let described = database(site)?;
    let owner = user(&described)?;
    let mut start = |part: &str, described: &Daemon, start: Start| {
        let name = process_name(service, part);
        let folder = state.join("services").join(&name);
        owned_folder::own(&folder, state, "service of a run", journal)?;
        journal.note(Change::Process { state: state.to_owned(), name: name.clone() })?;
        let group = limits.group(&format!("{}-{part}", service.name));
        let log = logs.join(format!("{}-{part}.log", service.name));
        weir_daemons::start(described, state, &Start { name, run: folder, group, log, ..start })
            .map_err(Error::from)
    };
    let plain = Start {
        name: String::new(),
        scope: Scope::Run,
        run: state.to_owned(),
        root: None,
        data: None,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: service.port,
        namespace: None,
        group: limits.group(&service.name),
        memory_mib: run.settings.memory_mib.unwrap_or(0),
        set: BTreeMap::new(),
        own: Values::new(),
        log: logs.clone(),
        tier: weir_daemons::Tier::default(),
    };
    let mut set = site.settings.clone();
    set.entry("connections".to_owned()).or_insert_with(|| (site.workers + OTHER_CONNECTIONS).to_string());
    let wanted =
        Start { data: Some(laid.data.clone()), address: IpAddr::V4(DATABASE_HOST), set, ..plain.clone() };
    let first = start("database", &described, wanted)?;
    let socket_folder = state.join("services").join(process_name(service, "database"));
    let to = address(service, site, &socket_folder, &owner.name, DATABASE)?;
    let second = start("app", &application(&described, site, &to.to_string()), plain)?;
    Ok([first, second])
}

/// `weir site serve` of this executable.
fn application(database: &Daemon, site: &Site, address: &str) -> Daemon {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let workers = site.workers.to_string();
    Daemon {
        name: format!("{}-app", site.benchmark),
        description: "the application server of a site".to_owned(),
        packages: Vec::new(),
        // Not by its path: the server's user may have no access to the executable's folder.
        programs: words(&["/proc/self/exe"]),
        users: database.users.clone(),
        version: words(&["--version"]),
        settings: BTreeMap::new(),
        defaults: BTreeMap::new(),
        folders: Vec::new(),
        hot: None,
        files: BTreeMap::new(),
        prepare: Vec::new(),
        arguments: words(&[
            "site",
            "serve",
            "--benchmark",
            &site.benchmark,
            "--database",
            address,
            "--listen",
            "{address}:{port}",
            "--workers",
            &workers,
        ]),
        ready: Ready::Tcp("{port}".to_owned()),
        ready_limit_s: 60,
        stop: Stop { signal: Signal::Term, limit_s: 10 },
    }
}
