//! The benchmarks that are known.

use std::str::FromStr;

use crate::Error;
use crate::schema::Table;

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// TPC-W: an on-line bookshop.
    TpcW,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Benchmark; 1] = [Benchmark::TpcW];

    /// Its name in commands, paths and databases.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::TpcW => "tpcw",
        }
    }

    /// Its tables, each behind those that it points at.
    pub fn tables(self) -> &'static [Table] {
        match self {
            Benchmark::TpcW => crate::tpcw::schema::TABLES,
        }
    }
}

impl FromStr for Benchmark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Benchmark::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Benchmark::ALL.iter().map(|known| known.name()).collect();
            Error::Input(format!("benchmark `{text}` is not known; there are {}", names.join(", ")))
        })
    }
}

/// The tables of all benchmarks.
pub(crate) fn all_tables() -> Vec<Table> {
    Benchmark::ALL.iter().flat_map(|benchmark| benchmark.tables().iter().copied()).collect()
}
