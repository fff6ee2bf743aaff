//! Hot tables: tables and indexes in another folder, for example in memory.

use std::path::Path;

use crate::Error;
use crate::database::{Connection, Engine};
use crate::schema::Table;

/// PostgreSQL's name of the place.
const TABLESPACE: &str = "weir_hot";

/// Tables, and their folder. It belongs to the server's user; PostgreSQL requires an empty one.
#[derive(Debug, Clone, Copy)]
pub struct Hot<'a> {
    /// Their names.
    pub tables: &'a [String],
    /// An absolute path.
    pub folder: &'a Path,
}

impl Hot<'_> {
    fn has(&self, table: &Table) -> bool {
        self.tables.iter().any(|name| name == table.name)
    }

    /// The folder between quotes.
    fn quoted(&self) -> String {
        format!("'{}'", self.folder.display().to_string().replace('\'', "''"))
    }

    /// The statement that declares the folder to the database, if the engine needs one.
    ///
    /// # Errors
    /// A table is not among those of the benchmark.
    pub(crate) fn prepare(&self, engine: Engine, tables: &[Table]) -> Result<Option<String>, Error> {
        if let Some(name) = self.tables.iter().find(|name| !tables.iter().any(|table| table.name == **name)) {
            let known: Vec<&str> = tables.iter().map(|table| table.name).collect();
            return Err(Error::Input(format!("unknown table `{name}` (known: {})", known.join(", "))));
        }
        Ok((engine == Engine::PostgreSql)
            .then(|| format!("CREATE TABLESPACE {TABLESPACE} LOCATION {}", self.quoted())))
    }

    /// What follows the definition of a table.
    pub(crate) fn behind(&self, engine: Engine, table: &Table) -> String {
        match engine {
            Engine::MariaDb if self.has(table) => format!(" DATA DIRECTORY={}", self.quoted()),
            _ => String::new(),
        }
    }
}

/// Tablespace of the next definitions in PostgreSQL: tables, and indexes, which are separate from their tables.
pub(crate) fn place(
    connection: &mut dyn Connection,
    hot: Option<Hot<'_>>,
    table: &Table,
) -> Result<(), Error> {
    if let (Engine::PostgreSql, Some(hot)) = (connection.engine(), hot) {
        let place = if hot.has(table) { TABLESPACE } else { "''" };
        connection.batch(&format!("SET default_tablespace = {place}"))?;
    }
    Ok(())
}

/// Tables in other folders according to the database's catalog (and indexes, if these have separate files), with the
/// folder of each, by name.
///
/// # Errors
/// The database fails.
pub fn elsewhere(connection: &mut dyn Connection) -> Result<Vec<(String, String)>, Error> {
    let sql = match connection.engine() {
        Engine::PostgreSql => {
            "SELECT CAST(c.relname AS TEXT), pg_tablespace_location(t.oid) FROM pg_class c \
             JOIN pg_tablespace t ON t.oid = c.reltablespace WHERE pg_tablespace_location(t.oid) <> '' \
             AND c.relkind IN ('r', 'i') AND c.relname NOT LIKE 'pg_%' ORDER BY 1"
        }
        // Those in the server's own folder have a path that is relative to it.
        Engine::MariaDb => {
            "SELECT SUBSTRING_INDEX(name, '/', -1), filename FROM information_schema.innodb_sys_tablespaces \
             WHERE filename LIKE '/%' ORDER BY 1"
        }
    };
    let rows = connection.run(sql, &[])?.rows;
    let texts = rows.iter().map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
    Ok(texts.collect::<Result<_, crate::database::DatabaseError>>()?)
}
