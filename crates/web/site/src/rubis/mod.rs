//! RUBiS: an auction site after eBay.com, with 27 pages (Amza et al., WWC-5, 2002).

mod check;
mod look;
mod populate;
mod schema;
mod site;
mod trade;
mod user;
mod visitor;

use crate::definition::Definition;
use crate::population::Share;

/// The benchmark.
pub(crate) const DEFINITION: Definition = Definition {
    name: "rubis",
    tables: schema::TABLES,
    pages: site::PAGES,
    changes: site::CHANGES,
    population: |scale| Ok(Box::new(populate::Auctions(Share::new(scale)?))),
    answers: |_| Ok(Box::new(site::answer)),
    visitor: |facts, session| Ok(Box::new(visitor::Bidder::new(facts, session)?)),
    acknowledgements: check::ACKNOWLEDGEMENTS,
    rules: check::rules,
};
