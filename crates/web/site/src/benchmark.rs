//! The benchmarks that are known.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use crate::Error;
use crate::browse::Visitor;
use crate::check::{Acknowledged, Checked};
use crate::database::Connection;
use crate::http::Application;
use crate::load::Population;
use crate::schema::Table;

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

    /// Its name in commands, paths and databases.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::TpcW => "tpcw",
            Benchmark::Rubis => "rubis",
            Benchmark::Rubbos => "rubbos",
        }
    }

    /// Its tables, each behind those that it points at.
    pub fn tables(self) -> &'static [Table] {
        match self {
            Benchmark::TpcW => crate::tpcw::schema::TABLES,
            Benchmark::Rubis => crate::rubis::schema::TABLES,
            Benchmark::Rubbos => crate::rubbos::schema::TABLES,
        }
    }

    /// Names of its pages.
    pub fn pages(self) -> &'static [&'static str] {
        match self {
            Benchmark::TpcW => crate::tpcw::site::PAGES,
            Benchmark::Rubis => crate::rubis::site::PAGES,
            Benchmark::Rubbos => crate::rubbos::site::PAGES,
        }
    }
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

impl Benchmark {
    /// What the tables of a site of this size hold at first.
    ///
    /// # Errors
    /// The size is out of its range.
    pub fn population(self, scale: Scale) -> Result<Box<dyn Population>, Error> {
        let bad = |option: &str, found: String, range: &str| {
            Err(Error::Input(format!("--{option} is {found}; it must be from {range}")))
        };
        match self {
            Benchmark::TpcW => {
                if !(20..=10_000_000).contains(&scale.items) {
                    return bad("items", scale.items.to_string(), "20 to 10,000,000");
                }
                if !(1..=100_000).contains(&scale.browsers) {
                    return bad("browsers", scale.browsers.to_string(), "1 to 100,000");
                }
                let Scale { items, browsers, seed, .. } = scale;
                Ok(Box::new(crate::tpcw::Books { items, browsers, seed }))
            }
            Benchmark::Rubis | Benchmark::Rubbos => {
                if !(1e-4..=100.0).contains(&scale.share) {
                    return bad("scale", scale.share.to_string(), "0.0001 to 100");
                }
                let Scale { share, seed, .. } = scale;
                Ok(match self {
                    Benchmark::Rubis => Box::new(crate::rubis::Auctions { share, seed }),
                    _ => Box::new(crate::rubbos::Board { share, seed }),
                })
            }
        }
    }

    /// The pages of the site in a database.
    ///
    /// # Errors
    /// The database holds another site, or none.
    pub fn application(self, connection: &mut dyn Connection) -> Result<Box<dyn Application>, Error> {
        Ok(match self {
            Benchmark::TpcW => Box::new(crate::tpcw::Bookshop::open(connection)?),
            Benchmark::Rubis => Box::new(crate::rubis::AuctionSite::open(connection)?),
            Benchmark::Rubbos => Box::new(crate::rubbos::BulletinBoard::open(connection)?),
        })
    }

    /// A client of the site, whose facts these are. `mark` begins all its tokens.
    ///
    /// # Errors
    /// The facts do not say how large the site is.
    pub fn visitor(
        self,
        facts: &[(String, String)],
        rng: ChaCha8Rng,
        mark: String,
    ) -> Result<Box<dyn Visitor>, Error> {
        Ok(match self {
            Benchmark::TpcW => Box::new(crate::tpcw::Reader::new(facts, rng, mark)?),
            Benchmark::Rubis => Box::new(crate::rubis::Bidder::new(facts, rng, mark)?),
            Benchmark::Rubbos => Box::new(crate::rubbos::Poster::new(facts, rng, mark)?),
        })
    }

    /// Checks the site in a database, and that what was acknowledged is there.
    ///
    /// # Errors
    /// The database fails, or holds another site.
    pub fn check(self, connection: &mut dyn Connection, orders: &[Acknowledged]) -> Result<Checked, Error> {
        match self {
            Benchmark::TpcW => crate::tpcw::check(connection, orders),
            Benchmark::Rubis => crate::rubis::check(connection, orders),
            Benchmark::Rubbos => crate::rubbos::check(connection, orders),
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
