//! The benchmarks, and the parts of each.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use crate::browse::{Session, Visitor};
use crate::check::{Acknowledged, Acknowledgement, Checked, Query, acknowledged};
use crate::database::Connection;
use crate::http::{Answers, Application};
use crate::load::{self, Population};
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

/// What decides a site's content, by name.
pub(crate) type Facts = [(String, String)];

type MakeVisitor = fn(&Facts, Session) -> Result<Box<dyn Visitor>, Error>;

/// What a benchmark consists of: all that is its own. What every site needs is written once, outside of the benchmarks.
pub(crate) struct Definition {
    /// Its name in commands, paths and databases.
    pub name: &'static str,
    /// Its tables, each behind those that it points at.
    pub tables: &'static [Table],
    /// Names of its pages.
    pub pages: &'static [&'static str],
    /// Pages that change something: they answer POST only.
    pub changes: &'static [&'static str],
    /// What the tables hold at first.
    pub population: fn(Scale) -> Result<Box<dyn Population>, Error>,
    /// What answers its pages.
    pub answers: fn(&Facts) -> Result<Box<dyn Answers>, Error>,
    /// A client.
    pub visitor: MakeVisitor,
    /// What it acknowledges.
    pub acknowledgements: &'static [Acknowledgement],
    /// What must hold besides.
    pub rules: fn(&Facts) -> Result<Vec<Query>, Error>,
}

/// How large a site is.
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

    /// Its tables, each behind those that it points at.
    pub fn tables(self) -> &'static [Table] {
        self.definition().tables
    }

    /// Names of its pages.
    pub fn pages(self) -> &'static [&'static str] {
        self.definition().pages
    }

    /// What the tables of a site of this size hold at first.
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
        let facts = load::loaded_facts(connection, definition.name)?;
        let answers = (definition.answers)(&facts)?;
        Ok(Application { definition, facts, answers })
    }

    /// A client of the site, whose facts these are. `mark` begins all its tokens, and is unique to it for ever.
    ///
    /// # Errors
    /// The facts do not say how large the site is.
    pub fn visitor(
        self,
        facts: &[(String, String)],
        rng: ChaCha8Rng,
        mark: String,
    ) -> Result<Box<dyn Visitor>, Error> {
        (self.definition().visitor)(facts, Session::new(rng, mark))
    }

    /// Checks the site in a database, and that what was acknowledged is there.
    ///
    /// # Errors
    /// The database fails, or holds another site.
    pub fn check(self, connection: &mut dyn Connection, orders: &[Acknowledged]) -> Result<Checked, Error> {
        let definition = self.definition();
        let facts = load::loaded_facts(connection, definition.name)?;
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
            Error::Input(format!("benchmark `{text}` is not known; there are {}", names.join(", ")))
        })
    }
}

/// The tables of all benchmarks.
pub(crate) fn all_tables() -> Vec<Table> {
    Benchmark::ALL.iter().flat_map(|benchmark| benchmark.tables().iter().copied()).collect()
}
