//! Parts of a benchmark: tables, pages, content, client and consistency rules.

use crate::Error;
use crate::browse::{Session, Visitor};
use crate::check::{Acknowledgement, Query};
use crate::facts::Facts;
use crate::http::Answers;
use crate::population::{Population, Scale};
use crate::schema::Table;

type MakeVisitor = fn(&Facts, Session) -> Result<Box<dyn Visitor>, Error>;

/// Definition of a benchmark. Code that every site needs is outside of the benchmarks.
pub(crate) struct Definition {
    /// Its name in commands, paths and databases.
    pub name: &'static str,
    /// Its tables, each after the tables that its foreign keys reference.
    pub tables: &'static [Table],
    /// Names of its pages.
    pub pages: &'static [&'static str],
    /// Pages that change something: they answer POST only.
    pub changes: &'static [&'static str],
    /// Initial content of its tables.
    pub population: fn(Scale) -> Result<Box<dyn Population>, Error>,
    /// Handler of its pages.
    pub answers: fn(&Facts) -> Result<Box<dyn Answers>, Error>,
    /// A client.
    pub visitor: MakeVisitor,
    /// Changes that it acknowledges.
    pub acknowledgements: &'static [Acknowledgement],
    /// Other consistency rules.
    pub rules: fn(&Facts) -> Result<Vec<Query>, Error>,
}
