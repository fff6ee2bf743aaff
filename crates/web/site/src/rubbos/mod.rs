//! RUBBoS: a bulletin board after slashdot.org, with 24 pages (Amza et al., WWC-5, 2002).

mod check;
mod look;
mod populate;
mod schema;
mod site;
mod user;
mod visitor;
mod write;

use crate::definition::Definition;
use crate::population::Share;

/// The benchmark.
pub(crate) const DEFINITION: Definition = Definition {
    name: "rubbos",
    tables: schema::TABLES,
    pages: site::PAGES,
    changes: site::CHANGES,
    population: |scale| Ok(Box::new(populate::Board(Share::new(scale)?))),
    answers: |_| Ok(Box::new(site::answer)),
    visitor: |facts, session| Ok(Box::new(visitor::Poster::new(facts, session)?)),
    acknowledgements: check::ACKNOWLEDGEMENTS,
    rules: check::rules,
};
