//! The three benchmarks, by name.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use crate::browse::{Session, Visitor};
use crate::check::{Acknowledged, Checked, acknowledged};
use crate::database::Connection;
use crate::definition::Definition;
use crate::facts::loaded_facts;
use crate::http::Application;
use crate::population::Population;
pub use crate::population::Scale;
use crate::schema::Table;
use crate::{Error, rubbos, rubis, tpcw};

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// TPC-W: an on-line bookshop.
    TpcW,
    /// RUBiS: an auction site.
    Rubis,
    /// RUBBoS: a bulletin board.
    Rubbos,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Benchmark; 3] = [Benchmark::TpcW, Benchmark::Rubis, Benchmark::Rubbos];

    fn definition(self) -> &'static Definition {
        match self {
            Benchmark::TpcW => &tpcw::DEFINITION,
            Benchmark::Rubis => &rubis::DEFINITION,
            Benchmark::Rubbos => &rubbos::DEFINITION,
        }
    }

    /// Its name in commands, paths and databases.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Its tables, each after the tables that its foreign keys reference.
    pub fn tables(self) -> &'static [Table] {
        self.definition().tables
    }

    /// Names of its pages.
    pub fn pages(self) -> &'static [&'static str] {
        self.definition().pages
    }

    /// Initial content of a site of this size.
    ///
    /// # Errors
    /// The size is out of its range.
    pub fn population(self, scale: Scale) -> Result<Box<dyn Population>, Error> {
        (self.definition().population)(scale)
    }

    /// The pages of the site in a database.
    ///
    /// # Errors
    /// The database holds another site, or none.
    pub fn application(self, connection: &mut dyn Connection) -> Result<Application, Error> {
        let definition = self.definition();
        let facts = loaded_facts(connection, definition.name)?;
        let answers = (definition.answers)(&facts)?;
        Ok(Application { definition, facts, answers })
    }

    /// A client of the site with these facts. `mark` is the prefix of all its tokens and must be unique.
    ///
    /// # Errors
    /// The facts lack the size of the site.
    pub fn visitor(
        self,
        facts: &[(String, String)],
        rng: ChaCha8Rng,
        mark: String,
    ) -> Result<Box<dyn Visitor>, Error> {
        (self.definition().visitor)(facts, Session::new(rng, mark))
    }

    /// Checks the site in a database, and that every acknowledged change is in it.
    ///
    /// # Errors
    /// The database fails, or holds another site.
    pub fn check(self, connection: &mut dyn Connection, orders: &[Acknowledged]) -> Result<Checked, Error> {
        let definition = self.definition();
        let facts = loaded_facts(connection, definition.name)?;
        let mut checked = Checked::default();
        for acknowledgement in definition.acknowledgements {
            acknowledged(&mut checked, connection, orders, acknowledgement)?;
        }
        for query in (definition.rules)(&facts)? {
            checked.query(connection, &query)?;
        }
        for table in definition.tables {
            checked.orphans(connection, table)?;
        }
        Ok(checked)
    }
}

impl FromStr for Benchmark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Benchmark::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Benchmark::ALL.iter().map(|known| known.name()).collect();
            Error::Input(format!("unknown benchmark `{text}` (known: {})", names.join(", ")))
        })
    }
}

/// The tables of all benchmarks.
pub(crate) fn all_tables() -> Vec<Table> {
    Benchmark::ALL.iter().flat_map(|benchmark| benchmark.tables().iter().copied()).collect()
}
