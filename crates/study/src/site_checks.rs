//! Checks of the field `site` of a daemon of a study.

use weir_specs::one_of;

use crate::cells::settings_of_cells;
use crate::context::Context;
use crate::filesystem::FileSystem;
use crate::settings;
use crate::site::{BY_ITEMS, DATABASES};
use crate::spec::{Study, StudyService};

/// Problems of the site of a daemon, by field below the daemon's field.
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
            problem("", "has neither `service` nor `site`: give one of them".to_owned());
        }
        return found;
    };
    if service.service.is_some() {
        problem("", "has both `service` and `site`: leave one out".to_owned());
    }
    if !service.settings.is_empty() {
        problem(
            ".settings",
            "are settings of a `service`; those of the database of a site belong in `site.settings`: move them".to_owned(),
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
                    problem(&at, format!("is `{table}`, which is listed twice: list it once"));
                } else if !benchmark.tables.contains(&table.as_str()) {
                    problem(&at, one_of("table", table, benchmark.tables.iter().copied()));
                }
            }
        }
    }
    let by_items = site.benchmark == BY_ITEMS;
    for (at, given, of_items, what) in [
        (".site.items", site.items.is_some(), true, "is a field of tpcw: use `scale`"),
        (".site.browsers", site.browsers.is_some(), true, "is a field of tpcw: use `scale`"),
        (
            ".site.scale",
            site.scale.is_some(),
            false,
            "is a field of rubis and rubbos: use `items` and `browsers`",
        ),
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
            problem(
                "",
                format!("has a daemon {name}-{tier}, which is also the name of another service: rename one"),
            );
        }
    }
    let without_files = settings_of_cells(study)
        .map(|settings| settings.filesystem)
        .find(|name| FileSystem::load(name).is_some_and(|filesystem| filesystem.mount_type.is_none()));
    if let Some(filesystem) = without_files {
        problem(
            ".site",
            format!("has a database, which needs files, but {filesystem} has none: use a file system"),
        );
    }
    found
}
