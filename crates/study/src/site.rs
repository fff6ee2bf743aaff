//! Sites with a database behind them, as services of a study.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_specs::one_of;

use crate::filesystem::FileSystem;
use crate::plan::{Context, apply, cross, is_excluded, levels_by_factor};
use crate::settings;
use crate::spec::{Study, StudyService};

/// Engines that a site's data may lie in: names of services.
pub const DATABASES: [&str; 2] = ["postgresql", "mariadb"];
/// The benchmark whose size is a number of books and of browsers; that of the others is a share.
const BY_ITEMS: &str = "tpcw";

/// A web site with a database behind it: a database server, whose data lie on the file system of the classes that go through
/// the site, and an application server, each in a control group of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// Nothing is left out where it is written: variants of a study find their fields in it.
pub struct Site {
    /// Whose pages it has: tpcw, rubis or rubbos.
    pub benchmark: String,
    /// The database server: postgresql or mariadb.
    pub database: String,
    /// tpcw: books in the shop; 1000 if absent.
    #[serde(default)]
    pub items: Option<u64>,
    /// tpcw: emulated browsers that the shop is made for, 2,880 customers each; 10 if absent.
    #[serde(default)]
    pub browsers: Option<u64>,
    /// rubis, rubbos: size, as a share of the published database; 0.01 if absent.
    #[serde(default)]
    pub scale: Option<f64>,
    /// Seed of its content, which is the same in all runs.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Connections of the application server to the database, which all pages share.
    #[serde(default = "some_workers")]
    pub workers: u32,
    /// Tables that lie on a tmpfs of the run, with their indexes; none if absent.
    #[serde(default)]
    pub hot_tables: Vec<String>,
    /// Settings of the database server, where they differ from its description's.
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
    /// With every number that decides its size.
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

/// What a study has to know of a benchmark of sites.
#[derive(Debug, Clone)]
pub struct SiteBenchmark {
    /// Its name.
    pub name: &'static str,
    /// Names of its tables.
    pub tables: Vec<&'static str>,
    /// Names of its pages.
    pub pages: &'static [&'static str],
}

/// What is wrong with a service's site, by field below the service's.
pub(crate) fn check(
    study: &Study,
    name: &str,
    service: &StudyService,
    context: &Context<'_>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut problem = |at: &str, message: String| found.push((at.to_owned(), message));
    let Some(site) = &service.site else {
        if service.service.is_none() {
            problem("", "has neither `service` nor `site`: say what it is".to_owned());
        }
        return found;
    };
    if service.service.is_some() {
        problem("", "has both `service` and `site`: leave one out".to_owned());
    }
    if !service.settings.is_empty() {
        problem(
            ".settings",
            "are of a service; those of a site's database are `site.settings`: move them".to_owned(),
        );
    }
    if !DATABASES.contains(&site.database.as_str()) {
        problem(".site.database", one_of("database", &site.database, DATABASES));
    }
    found.extend(settings::check(&site.database, ".site.settings", &site.settings, context));
    let mut problem = |at: &str, message: String| found.push((at.to_owned(), message));
    match context.benchmarks.iter().find(|known| known.name == site.benchmark) {
        None => {
            let known = context.benchmarks.iter().map(|known| known.name);
            problem(".site.benchmark", one_of("benchmark", &site.benchmark, known));
        }
        Some(benchmark) => {
            for (index, table) in site.hot_tables.iter().enumerate() {
                let at = format!(".site.hot_tables.{index}");
                if site.hot_tables[..index].contains(table) {
                    problem(&at, format!("is `{table}` for the second time: name it once"));
                } else if !benchmark.tables.contains(&table.as_str()) {
                    problem(&at, one_of("table", table, benchmark.tables.iter().copied()));
                }
            }
        }
    }
    let by_items = site.benchmark == BY_ITEMS;
    for (at, given, of_items, what) in [
        (".site.items", site.items.is_some(), true, "is of tpcw: use `scale`"),
        (".site.browsers", site.browsers.is_some(), true, "is of tpcw: use `scale`"),
        (".site.scale", site.scale.is_some(), false, "is of rubis and rubbos: use `items` and `browsers`"),
    ] {
        if given && of_items != by_items {
            problem(at, what.to_owned());
        }
    }
    let mut within = |at: &str, value: f64, low: f64, high: f64| {
        if !(low..=high).contains(&value) {
            problem(at, format!("is {value}; it must be from {low} to {high}"));
        }
    };
    within(".site.items", site.items.unwrap_or(1000) as f64, 20.0, 1e7);
    within(".site.browsers", site.browsers.unwrap_or(1) as f64, 1.0, 1e5);
    within(".site.scale", site.scale.unwrap_or(1.0), 1e-4, 100.0);
    within(".site.workers", f64::from(site.workers), 1.0, 1000.0);
    for tier in ["database", "app"] {
        if study.services.contains_key(&format!("{name}-{tier}")) {
            problem("", format!("has a part {name}-{tier}, as another service is called: rename one"));
        }
    }
    let without_files = cross(&levels_by_factor(study)).into_iter().filter(|cell| !is_excluded(study, cell));
    let without_files = without_files.map(|cell| apply(&study.hold, &cell).filesystem);
    let mut without_files = without_files
        .filter(|name| FileSystem::load(name).is_some_and(|filesystem| filesystem.mount_type.is_none()));
    if let Some(filesystem) = without_files.next() {
        problem(
            ".site",
            format!(
                "has a database, whose data are files; on {filesystem} there are none: use a file system"
            ),
        );
    }
    found
}
