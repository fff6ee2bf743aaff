//! Facts of a loaded site: benchmark, size and seed of its content, kept in its database.

use crate::Error;
use crate::database::Connection;
use crate::schema::{Kind, Table, columns};

/// Facts that determine the content of a site, by name.
pub(crate) type Facts = [(String, String)];

/// Where the facts of a loaded site are kept.
pub(crate) const FACTS: Table = Table {
    name: "weir_site",
    columns: columns![name: Kind::Text(40), value: Kind::Text(200)],
    key: "name",
    ..Table::BARE
};
/// The fact that records whether the load is complete.
pub(crate) const STATE: &str = "state";

/// The facts of the site in a database; none where there is no site.
///
/// # Errors
/// The database fails.
pub fn facts(connection: &mut dyn Connection) -> Result<Vec<(String, String)>, Error> {
    let there = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = ? \
                 AND table_schema NOT IN ('information_schema', 'pg_catalog')";
    if connection.run(there, &[FACTS.name.into()])?.int()? == 0 {
        return Ok(Vec::new());
    }
    let rows = connection.run("SELECT name, value FROM weir_site ORDER BY name", &[])?.rows;
    Ok(rows
        .iter()
        .map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())))
        .collect::<Result<_, crate::database::DatabaseError>>()?)
}

/// The facts of a site that is loaded completely and is of this benchmark.
///
/// # Errors
/// There is none, another, or only half of one.
pub fn loaded_facts(
    connection: &mut dyn Connection,
    benchmark: &str,
) -> Result<Vec<(String, String)>, Error> {
    let facts = facts(connection)?;
    let fact = |name: &str| facts.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (fact("benchmark"), fact(STATE)) {
        (Some(found), Some("loaded")) if found == benchmark => Ok(facts),
        (None, _) => Err(Error::Input(format!(
            "the database holds no site: weir site load --benchmark {benchmark} --database ..."
        ))),
        (Some(found), Some("loaded")) => Err(Error::Input(format!(
            "the database has site {found}, expected {benchmark}: name {found}, or another database"
        ))),
        (Some(found), _) => Err(Error::Input(format!(
            "the database has an incomplete load of {found}: load it again with --replace"
        ))),
    }
}

/// A whole number among facts.
///
/// # Errors
/// There is no such fact.
pub(crate) fn number(facts: &[(String, String)], name: &str) -> Result<i64, Error> {
    let found = facts.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok());
    found.ok_or_else(|| {
        Error::Input(format!(
            "table weir_site of the database has no `{name}`: load the site again with --replace"
        ))
    })
}
