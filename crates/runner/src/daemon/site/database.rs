//! Database of a site: its description, its user and its address.

use std::path::{Path, PathBuf};

use weir_daemons::{Daemon, User};
use weir_study::{Run, RunService, Site};
use weir_web_site::Benchmark;
use weir_web_site::database::{Address, Engine, Place};

use crate::Error;

/// Name of the database in the server.
pub(super) const DATABASE: &str = "site";

/// The sites of a run, with their daemons.
pub(crate) fn all(run: &Run) -> impl Iterator<Item = (&RunService, &Site)> {
    run.services.iter().filter_map(|service| Some((service, service.site.as_ref()?)))
}

/// An error with the name of the site.
pub(super) fn of_site(name: &str) -> impl Fn(weir_web_site::Error) -> Error + use<> {
    let name = name.to_owned();
    move |error| match error {
        weir_web_site::Error::Input(text) => Error::Refused(format!("site {name}: {text}")),
        other => Error::Failed(format!("site {name}: {other}")),
    }
}

pub(super) fn benchmark(service: &RunService, site: &Site) -> Result<Benchmark, Error> {
    site.benchmark.parse().map_err(of_site(&service.name))
}

/// Description of the database server.
pub(super) fn database(site: &Site) -> Result<Daemon, Error> {
    Daemon::load(&site.database).ok_or_else(|| {
        Error::Refused(format!("database {} is not known to weir (weir list services)", site.database))
    })
}

/// User of database server and application server, authenticated by the socket.
pub(super) fn user(database: &Daemon) -> Result<User, Error> {
    let found = database.users.iter().find_map(|name| User::find(name).ok());
    found.ok_or_else(|| {
        Error::Refused(format!(
            "none of the users {} exists on this host. Install the package {}",
            database.users.join(", "),
            database.packages.join(", ")
        ))
    })
}

/// Name of a process of a site in the state folder.
pub(super) fn process_name(service: &RunService, part: &str) -> String {
    format!("run.{}-{part}", service.name)
}

/// Folder of tables in memory: the same in all runs, since the database's files contain its path.
pub(super) fn hot_folder(state: &Path, service: &RunService) -> PathBuf {
    state.join("mnt").join(format!("{}.hot", service.name))
}

/// Address of a database whose server was started in `run_folder`.
///
/// # Errors
/// The path of the socket is too long.
pub(super) fn address(
    service: &RunService,
    site: &Site,
    run_folder: &Path,
    user: &str,
    database: &str,
) -> Result<Address, Error> {
    let (engine, socket) = if site.database == Engine::PostgreSql.name() {
        (Engine::PostgreSql, run_folder.join(format!(".s.PGSQL.{}", service.port)))
    } else {
        (Engine::MariaDb, run_folder.join("mariadb.sock"))
    };
    // sockaddr_un has 108 bytes, the last of which is NUL.
    if socket.as_os_str().len() > 107 {
        return Err(Error::Refused(format!(
            "site {}: {}: the path of the socket is longer than 107 bytes. Choose a state folder with a shorter path",
            service.name,
            socket.display()
        )));
    }
    Ok(Address {
        engine,
        place: Place::Socket(socket),
        user: user.to_owned(),
        database: database.to_owned(),
        password_file: None,
    })
}

/// Database user of root.
pub(super) fn administrator(site: &Site, user: &User) -> String {
    if site.database == Engine::PostgreSql.name() { user.name.clone() } else { "root".to_owned() }
}

/// Checks that the databases of a run are known and installed.
///
/// # Errors
/// A database is not known or not installed; the text says what to install.
pub(crate) fn check(run: &Run) -> Result<(), Error> {
    for (service, site) in all(run) {
        benchmark(service, site)?;
        let database = database(site)?;
        weir_daemons::check_settings(&database, &site.settings)?;
        weir_daemons::version(&database)?;
        user(&database)?;
    }
    Ok(())
}
