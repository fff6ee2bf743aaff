//! Parts of a benchmark: tables, pages, content, client and consistency rules.

use crate::Error;
use crate::browse::{Session, Visitor};
use crate::check::{Acknowledgement, Query};
use crate::facts::Facts;
use crate::http::Answers;
use crate::population::{Population, Scale};
use crate::schema::Table;

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
