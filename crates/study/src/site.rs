//! The field `site` of a daemon of a study: a web site with a database.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Database servers of sites: names of daemons.
pub const DATABASES: [&str; 2] = ["postgresql", "mariadb"];
/// The benchmark whose size is a number of books and of browsers. The size of the others is a share.
pub(crate) const BY_ITEMS: &str = "tpcw";

/// A web site with a database: a database server and an application server, each in its own control group. The data of
/// the database server are on the file system of the classes that go through the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// Nothing is left out where it is written: variants of a study find their fields in it.
pub struct Site {
    /// The benchmark: tpcw, rubis or rubbos.
    pub benchmark: String,
    /// The database server: postgresql or mariadb.
    pub database: String,
    /// tpcw: number of books in the shop. 1000 if absent.
    #[serde(default)]
    pub items: Option<u64>,
    /// tpcw: number of emulated browsers that the size of the shop is made for, with 2,880 customers each. 10 if absent.
    #[serde(default)]
    pub browsers: Option<u64>,
    /// rubis, rubbos: size as a share of the published database. 0.01 if absent.
    #[serde(default)]
    pub scale: Option<f64>,
    /// Seed of the content of the database, which is the same in all runs.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Number of connections from the application server to the database. All pages share them.
    #[serde(default = "some_workers")]
    pub workers: u32,
    /// Tables that are kept in a memory file system (tmpfs), with their indexes. None if absent.
    #[serde(default)]
    pub hot_tables: Vec<String>,
    /// Settings of the database server that differ from its defaults (`weir service list`).
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

fn first_seed() -> u64 {
    1
}

fn some_workers() -> u32 {
    16
}

impl Site {
    /// The site with the defaults of its size filled in.
    pub(crate) fn whole(mut self) -> Self {
        if self.benchmark == BY_ITEMS {
            self.items.get_or_insert(1000);
            self.browsers.get_or_insert(10);
        } else {
            self.scale.get_or_insert(0.01);
        }
        self
    }
}

/// Names of a benchmark of web sites: its own, of its tables and of its pages.
#[derive(Debug, Clone)]
pub struct SiteBenchmark {
    /// Its name.
    pub name: &'static str,
    /// Names of its tables.
    pub tables: Vec<&'static str>,
    /// Names of its pages.
    pub pages: &'static [&'static str],
}
