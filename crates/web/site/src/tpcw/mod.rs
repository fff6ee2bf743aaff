//! TPC-W, version 1.8: an on-line bookshop with 14 interactions.

mod admin;
mod browse;
mod cart;
mod check;
mod customer;
mod order;
mod populate;
mod schema;
mod site;
mod visitor;
mod words;

pub use populate::Books;

use crate::definition::Definition;

/// The benchmark.
pub(crate) const DEFINITION: Definition = Definition {
    name: "tpcw",
    tables: schema::TABLES,
    pages: site::PAGES,
    changes: site::CHANGES,
    population: |scale| Ok(Box::new(Books::new(scale)?)),
    answers: |facts| Ok(Box::new(site::Bookshop::new(facts)?)),
    visitor: |facts, session| Ok(Box::new(visitor::Reader::new(facts, session)?)),
    acknowledgements: check::ACKNOWLEDGEMENTS,
    rules: check::rules,
};
