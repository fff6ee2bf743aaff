//! Snapshot of a site's data: loaded once into a database, kept in the state folder, and copied before each run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weir_daemons::{Group, Scope, Start, start, stop};
use weir_host::owned::{self, Owner};
use weir_specs::template::Values;
use weir_study::{RunService, Site};
use weir_web_site::benchmark::Scale;
use weir_web_site::database::Engine;
use weir_web_site::hot::Hot;
use weir_web_site::load::{LoadOptions, load};

use super::database::{DATABASE, address, administrator, benchmark, database, hot_folder, of_site, user};
use crate::Error;
use crate::context::journal::{Change, Journal};
use crate::context::write_json;
use crate::filesystem::owned_folder;

/// Version of the snapshot format.
const LAYOUT: u32 = 2;
/// Text in the markers of folders.
const PURPOSE: &str = "data of a site as they are before each run";
/// Lock file of loading.
const LOCK: &str = ".lock";
/// Number of loading threads.
const JOBS: usize = 2;

/// Everything that determines a snapshot: each combination of values has its own snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Decides {
    layout: u32,
    /// Benchmark, size, seed.
    facts: BTreeMap<String, String>,
    /// SHA-256 of the SQL statements that make tables and indexes.
    schema: String,
    database: String,
    version: String,
    /// User who owns the files.
    owner: (u32, u32),
    hot_tables: Vec<String>,
    /// Folder of tables in memory, which the database's files contain.
    hot_folder: Option<PathBuf>,
}

/// A snapshot: a folder `data`, and `hot` if some tables are in memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    decides: Decides,
    /// Time to load, in seconds.
    pub(crate) load_s: f64,
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

impl Kept {
    /// Name of the snapshot's folder.
    pub(crate) fn key(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Finds the snapshot of a site, or makes it.
///
/// # Errors
/// The database cannot be started or filled; its log is in `logs`.
pub(crate) fn keep(
    service: &RunService,
    site: &Site,
    state: &Path,
    logs: &Path,
    journal: &mut Journal,
) -> Result<Kept, Error> {
    let described = database(site)?;
    let owner = user(&described)?;
    let benchmark = benchmark(service, site)?;
    let scale = Scale {
        items: site.items.unwrap_or(0),
        browsers: site.browsers.unwrap_or(0),
        share: site.scale.unwrap_or(0.0),
        seed: site.seed,
    };
    let population = benchmark.population(scale).map_err(of_site(&service.name))?;
    let engine =
        if site.database == Engine::PostgreSql.name() { Engine::PostgreSql } else { Engine::MariaDb };
    let statements: Vec<String> = benchmark
        .tables()
        .iter()
        .flat_map(|table| std::iter::once(table.create(engine)).chain(table.finish(engine)))
        .collect();
    let hot = (!site.hot_tables.is_empty()).then(|| hot_folder(state, service));
    let facts = population.facts().into_iter().map(|(name, value)| (name.to_owned(), value));
    let decides = Decides {
        layout: LAYOUT,
        facts: facts.collect(),
        schema: sha256(statements.join("\n").as_bytes()),
        database: site.database.clone(),
        version: weir_daemons::version(&described)?,
        owner: (owner.uid, owner.gid),
        hot_tables: site.hot_tables.clone(),
        hot_folder: hot.clone(),
    };
    let text = serde_json::to_vec(&decides).map_err(Error::failed)?;
    let all = state.join("snapshots");
    fs::create_dir_all(&all).map_err(Error::io("cannot make", &all))?;
    // The journal admits one run at a time; the lock also covers callers without a journal.
    let lock = all.join(LOCK);
    let lock_file = File::create(&lock).map_err(Error::io("cannot make", &lock))?;
    lock_file.lock().map_err(Error::io("cannot lock", &lock))?;
    let folder = all.join(&sha256(&text)[..16]);
    if folder.is_dir() {
        return found(folder, state);
    }

    let name = format!("run.{}-load", service.name);
    let run_folder = state.join("services").join(&name);
    // The name is a hash, without an extension.
    let partial = folder.with_extension("partial");
    for place in [Some(&partial), hot.as_ref(), Some(&run_folder)].into_iter().flatten() {
        let owner = owned_folder::own(place, state, PURPOSE, journal)?;
        // Left by a killed run.
        owned::empty(place, &owner)?;
    }
    journal.note(Change::Process { state: state.to_owned(), name: name.clone() })?;
    let data = partial.join("data");
    fs::create_dir_all(&data).map_err(Error::io("cannot make", &data))?;
    if let Some(hot) = &hot {
        std::os::unix::fs::chown(hot, Some(owner.uid), Some(owner.gid))
            .map_err(Error::io("cannot give away", hot))?;
    }
    // Lost data are loaded again.
    let careless: &[(&str, &str)] = match engine {
        Engine::PostgreSql => &[("fsync", "off")],
        Engine::MariaDb => &[("flush_at_commit", "0"), ("flush_method", "nosync")],
    };
    let began = std::time::Instant::now();
    let wanted = Start {
        scope: Scope::Run,
        run: run_folder.clone(),
        root: None,
        data: Some(data),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: service.port,
        namespace: None,
        group: Group::of_state(state).within(&name),
        memory_mib: 0,
        own: Values::new(),
        set: careless.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        log: logs.join(format!("{}-load.log", service.name)),
        tier: weir_daemons::Tier::default(),
        name: name.clone(),
    };
    let administrator = administrator(site, &owner);
    let to = address(service, site, &run_folder, &administrator, DATABASE)?;
    start(&described, state, &wanted)?;
    let options = LoadOptions {
        jobs: JOBS,
        replace: false,
        hot: hot.as_deref().map(|folder| Hot { tables: &site.hot_tables, folder }),
    };
    let first = match engine {
        Engine::PostgreSql => "postgres",
        Engine::MariaDb => "mysql",
    };
    let whole = address(service, site, &run_folder, &administrator, first)?;
    let fill = || -> Result<(), weir_web_site::Error> {
        let mut connection = whole.connect()?;
        connection.batch(&format!("CREATE DATABASE {DATABASE}"))?;
        if engine == Engine::MariaDb {
            // The application server is authenticated by its system user.
            let visitor = format!("'{}'@'localhost'", owner.name);
            connection.batch(&format!("CREATE USER IF NOT EXISTS {visitor} IDENTIFIED VIA unix_socket"))?;
            connection.batch(&format!("GRANT ALL ON {DATABASE}.* TO {visitor}"))?;
        }
        load(&to, &*population, options, &|_| {}).map(drop)
    };
    fill().map_err(of_site(&service.name))?;
    if stop(state, &name)?.is_none_or(|ended| ended.killed) {
        return Err(Error::Failed(format!(
            "site {}: its database did not stop cleanly after loading. See {}",
            service.name,
            wanted.log.display()
        )));
    }
    if let Some(hot) = &hot {
        let to = partial.join("hot");
        fs::rename(hot, &to).map_err(Error::io("cannot keep", hot))?;
        // Only the tables are copied.
        owned::release(&to, &Owner::of_state(state)?)?;
    }
    let kept = Kept { decides, load_s: began.elapsed().as_secs_f64(), folder };
    write_json(&partial.join("about.json"), &kept)?;
    fs::rename(&partial, &kept.folder).map_err(Error::io("cannot complete", &kept.folder))?;
    owned_folder::remove(&run_folder)?;
    Ok(kept)
}

/// Removes the snapshots of sites, except folders without the state folder's marker. Returns the removed snapshots, and a line
/// for each folder that was left.
///
/// # Errors
/// A marked folder cannot be removed, or a run is loading a site.
pub fn remove_kept(state: &Path) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
    let all = state.join("snapshots");
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    let entries = match fs::read_dir(&all) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((removed, left)),
        entries => entries.and_then(Iterator::collect::<std::io::Result<Vec<_>>>),
    };
    let owner = Owner::find(state)?;
    for entry in entries.map_err(Error::io("cannot read", &all))? {
        let path = entry.path();
        if entry.file_name() == LOCK {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_own = |owner: &Owner| is_folder && owned::is_owned(&path, owner).unwrap_or(false);
        match &owner {
            Some(owner) if is_own(owner) => {
                owned::remove(&path, owner)?;
                removed.push(path);
            }
            _ => left.push(format!(
                "{}: left as it is: it has no marker {} of this state folder. Look at it, then remove it yourself",
                path.display(),
                owned::MARKER
            )),
        }
    }
    if left.is_empty() {
        let _ = fs::remove_file(all.join(LOCK));
        let _ = fs::remove_dir(&all);
    }
    Ok((removed, left))
}

fn found(folder: PathBuf, state: &Path) -> Result<Kept, Error> {
    if !owned::is_owned(&folder, &Owner::of_state(state)?)? {
        return Err(Error::Refused(format!(
            "{}: not made by weir: it has no marker {} of this state folder. Look at it, then remove it: the site is loaded again",
            folder.display(),
            owned::MARKER
        )));
    }
    let about = folder.join("about.json");
    let text = fs::read(&about).map_err(Error::io("cannot read", &about))?;
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| {
        Error::Refused(format!("{}: {error}. Remove the folder: the site is loaded again", about.display()))
    })?;
    Ok(Kept { folder, ..kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let (state, photos) = (place.path(), place.path().join("snapshots/photos"));
        assert_eq!(remove_kept(state).unwrap(), (Vec::new(), Vec::new()));
        fs::create_dir_all(&photos).unwrap();
        fs::write(photos.join("a.jpg"), "precious").unwrap();
        std::os::unix::fs::symlink(&photos, state.join("snapshots/link")).unwrap();
        assert_eq!(remove_kept(state).unwrap().1.len(), 2, "nothing has an owner yet");
        let (owner, kept) = (Owner::of_state(state).unwrap(), state.join("snapshots/0123456789abcdef"));
        owned::claim(&kept, &owner, PURPOSE).unwrap();
        fs::create_dir(kept.join("data")).unwrap();
        let (removed, left) = remove_kept(state).unwrap();
        assert_eq!(removed, [kept]);
        assert!(left.len() == 2 && left.iter().any(|line| line.contains("photos")), "{left:?}");
        assert_eq!(fs::read_to_string(photos.join("a.jpg")).unwrap(), "precious");
    }

    #[test]
    fn kept_data_without_a_marker_are_not_used() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("snapshots/0123456789abcdef");
        fs::create_dir_all(&folder).unwrap();
        let refused = found(folder, place.path()).unwrap_err();
        assert!(refused.is_refusal() && refused.to_string().contains("no marker"), "{refused}");
    }
}
