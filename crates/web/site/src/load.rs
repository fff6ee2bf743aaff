//! Initial load of a database, in parallel. Rows do not depend on the engine or the number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Error;
use crate::benchmark::all_tables;
use crate::database::{Address, Connection, Row};
use crate::facts::{FACTS, STATE, facts};
use crate::hot::{self, Hot};
pub use crate::population::Population;
use crate::schema::Table;

/// Units of a table's population in one batch.
const UNITS_PER_CHUNK: u64 = 2000;

/// Options of a load.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions<'a> {
    /// Threads, each with its own connection.
    pub jobs: usize,
    /// Drop existing tables first.
    pub replace: bool,
    /// Tables in another folder.
    pub hot: Option<Hot<'a>>,
}

/// Progress of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Units whose rows are in the database.
    pub done: u64,
    /// Total units.
    pub of: u64,
}

/// Result of a load.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Loaded {
    /// Rows by table, in the order of the tables.
    pub rows: Vec<(String, u64)>,
    /// Seconds for the rows.
    pub rows_s: f64,
    /// Seconds for indexes, foreign keys and the planner's statistics.
    pub indexes_s: f64,
    /// The same population was already there, and nothing was done.
    pub already: bool,
}

/// Loads a population. A complete population with the same facts is kept unchanged.
///
/// # Errors
/// The database fails, or it has another site or an incomplete load and `replace` is not set.
pub fn load(
    address: &Address,
    population: &dyn Population,
    options: LoadOptions<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Loaded, Error> {
    let mut connection = address.connect()?;
    let tables = population.tables();
    let wanted: Vec<(String, String)> =
        population.facts().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut found = facts(&mut *connection)?;
    let state = found.iter().position(|(name, _)| name == STATE).map(|place| found.remove(place).1);
    let mut sorted = wanted.clone();
    sorted.sort();
    match state.as_deref() {
        None => {}
        Some(_) if options.replace => {}
        Some("loaded") if found == sorted => {
            return Ok(Loaded {
                rows: count(&mut *connection, tables)?,
                rows_s: 0.0,
                indexes_s: 0.0,
                already: true,
            });
        }
        Some("loaded") => {
            let found: Vec<String> = found.iter().map(|(name, value)| format!("{name} {value}")).collect();
            return Err(Error::Input(format!(
                "the database {address} holds another site ({}): --replace drops it",
                found.join(", ")
            )));
        }
        Some(_) => {
            return Err(Error::Input(format!(
                "the database {address} has an incomplete load of a site: --replace loads it again"
            )));
        }
    }
    let begun = Instant::now();
    prepare(&mut *connection, tables, &wanted, options.hot)?;
    rows(address, population, options.jobs.max(1), progress)?;
    let rows_s = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    finish(address, tables, options)?;
    connection.run("UPDATE weir_site SET value = ? WHERE name = ?", &["loaded".into(), STATE.into()])?;
    let rows = count(&mut *connection, tables)?;
    Ok(Loaded { rows, rows_s, indexes_s: begun.elapsed().as_secs_f64(), already: false })
}

fn count(connection: &mut dyn Connection, tables: &[Table]) -> Result<Vec<(String, u64)>, Error> {
    tables
        .iter()
        .map(|table| {
            let count = connection.run(&format!("SELECT COUNT(*) FROM {}", table.name), &[])?.int()?;
            Ok((table.name.to_owned(), count as u64))
        })
        .collect()
}

/// Drops the tables of all benchmarks, creates those of this one, and records their facts.
fn prepare(
    connection: &mut dyn Connection,
    tables: &[Table],
    facts: &[(String, String)],
    hot: Option<Hot<'_>>,
) -> Result<(), Error> {
    let engine = connection.engine();
    for table in all_tables().iter().rev().chain([&FACTS]) {
        connection.batch(&format!("DROP TABLE IF EXISTS {}", table.name))?;
    }
    connection.batch(&FACTS.create(engine))?;
    let mut rows: Vec<Row> =
        facts.iter().map(|(name, value)| Row(vec![name.as_str().into(), value.as_str().into()])).collect();
    rows.push(Row(vec![STATE.into(), "loading".into()]));
    connection.bulk(FACTS.name, &FACTS.column_names(), &rows)?;
    if let Some(statement) = hot.map(|hot| hot.prepare(engine, tables)).transpose()?.flatten() {
        connection.batch(&statement)?;
    }
    for table in tables {
        hot::place(connection, hot, table)?;
        let behind = hot.map_or_else(String::new, |hot| hot.behind(engine, table));
        connection.batch(&(table.create(engine) + &behind))?;
    }
    Ok(())
}

fn rows(
    address: &Address,
    population: &dyn Population,
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), Error> {
    let mut chunks = Vec::new();
    for table in population.tables() {
        let units = population.units(table.name);
        let starts = (1..=units).step_by(UNITS_PER_CHUNK as usize);
        chunks.extend(starts.map(|from| (table, from, (from + UNITS_PER_CHUNK - 1).min(units))));
    }
    let of = chunks.iter().map(|(_, from, to)| to - from + 1).sum();
    let (next, done, failed) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = || -> Result<(), Error> {
        let mut connection = address.connect()?;
        let mut rows: Vec<Row> = Vec::new();
        while !failed.load(Ordering::Relaxed)
            && let Some((table, from, to)) = chunks.get(next.fetch_add(1, Ordering::Relaxed))
        {
            rows.clear();
            (*from..=*to).for_each(|unit| population.rows(table.name, unit, &mut rows));
            connection.bulk(table.name, &table.column_names(), &rows)?;
            done.fetch_add(to - from + 1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let start = || {
            scope.spawn(|| {
                let result = work();
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                result
            })
        };
        let threads: Vec<_> = (0..jobs).map(|_| start()).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            progress(Progress { done: done.load(Ordering::Relaxed), of });
            std::thread::sleep(Duration::from_millis(50));
        }
        progress(Progress { done: done.load(Ordering::Relaxed), of });
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::Thread("loader"))?)
    })
}

/// Indexes in parallel, a table at a time; then foreign keys, which lock two tables each, one after another.
fn finish(address: &Address, tables: &[Table], options: LoadOptions<'_>) -> Result<(), Error> {
    let engine = address.engine;
    let is_foreign = |statement: &String| statement.contains("FOREIGN KEY");
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Error> {
        let mut connection = address.connect()?;
        while let Some(table) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
            hot::place(&mut *connection, options.hot, table)?;
            for statement in table.finish(engine).iter().filter(|statement| !is_foreign(statement)) {
                connection.batch(statement)?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::Thread("index"))?)
    })?;
    let mut connection = address.connect()?;
    for table in tables {
        for statement in table.finish(engine).iter().filter(|statement| is_foreign(statement)) {
            connection.batch(statement)?;
        }
        if let Some(statement) = table.continue_ids(engine) {
            connection.batch(&statement)?;
        }
        let analyse = match engine {
            crate::database::Engine::PostgreSql => format!("ANALYZE {}", table.name),
            crate::database::Engine::MariaDb => format!("ANALYZE TABLE {}", table.name),
        };
        connection.batch(&analyse)?;
    }
    Ok(())
}
