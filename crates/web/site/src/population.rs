//! Initial content of a site: its size, its rows, and common parts of all benchmarks.

use crate::Error;
use crate::database::{Row, Value};
use crate::schema::Table;

/// Size of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// TPC-W: books.
    pub items: u64,
    /// TPC-W: emulated browsers that the shop is made for.
    pub browsers: u64,
    /// RUBiS, RUBBoS: share of the published database.
    pub share: f64,
    /// The seed of all content.
    pub seed: u64,
}

/// An option of the scale that is out of its range.
pub(crate) fn out_of_range(option: &str, found: impl ToString, range: &str) -> Error {
    Error::Input(format!("--{option} is {}; it must be from {range}", found.to_string()))
}

/// Initial rows of a benchmark's tables.
pub trait Population: Send + Sync {
    /// Its tables, each after the tables that its foreign keys reference.
    fn tables(&self) -> &'static [Table];

    /// Number of units of a table. A unit is a row, or the rows that belong to one row of another table.
    fn units(&self, table: &str) -> u64;

    /// Adds the rows of a unit, counted from 1, of a table. They depend only on the seed and the scale.
    fn rows(&self, table: &str, unit: u64, to: &mut Vec<Row>);

    /// Facts that determine the content, by name: benchmark, seed, scale. Stored in the database.
    fn facts(&self) -> Vec<(&'static str, String)>;
}

/// Creation time of a population: 2026-01-01 00:00 UTC. It is fixed, so the content is reproducible.
pub(crate) const MADE_AT_S: i64 = 1_767_225_600;
pub(crate) const DAY_S: i64 = 86_400;

/// Shorthand for a row.
pub(crate) fn row(values: impl IntoIterator<Item = Value>) -> Row {
    Row(values.into_iter().collect())
}

/// Shorthand for a count or an id.
pub(crate) fn int(number: u64) -> Value {
    Value::Int(number as i64)
}

/// A share of the database that was published with a benchmark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// 1 is the whole.
    share: f64,
    pub(crate) seed: u64,
}

impl Share {
    pub(crate) fn new(scale: Scale) -> Result<Self, Error> {
        if !(1e-4..=100.0).contains(&scale.share) {
            return Err(out_of_range("scale", scale.share, "0.0001 to 100"));
        }
        Ok(Share { share: scale.share, seed: scale.seed })
    }

    /// The scaled count of a count of the published database. At least one.
    pub(crate) fn of(&self, published: f64) -> u64 {
        (published * self.share).round().max(1.0) as u64
    }

    /// Facts that determine the content, by name.
    pub(crate) fn facts(
        &self,
        benchmark: &str,
        counts: &[(&'static str, u64)],
    ) -> Vec<(&'static str, String)> {
        let counts = counts.iter().map(|(name, count)| (*name, count.to_string()));
        [("benchmark", benchmark.to_owned()), ("share", self.share.to_string())]
            .into_iter()
            .chain(counts)
            .chain([("seed", self.seed.to_string())])
            .collect()
    }
}
