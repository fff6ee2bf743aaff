//! Whether what a site holds after a run fits together, and whether all is there that was acknowledged.

use std::path::Path;

use serde::Serialize;
use weir_sites::check::{Checked, read_orders};
use weir_studies::{Run, RunService, Site};

use super::visit::orders_file;
use super::{
    DATABASE, Laid, address, administrator, all, benchmark, data, database, of_site, process_name, user,
};
use crate::Error;

/// What was found at a site.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct After {
    /// Name of the service.
    #[serde(skip)]
    pub(crate) name: String,
    benchmark: String,
    database: String,
    /// The data that were kept, in `snapshots` of the state folder.
    snapshot: String,
    /// How long these took to load, in seconds, in whichever run they were made.
    load_s: f64,
    /// Bytes in the database's folder before the run.
    data_bytes: u64,
    /// Bytes in memory before the run.
    hot_bytes: u64,
    /// Bytes in memory after it.
    hot_bytes_after: u64,
    /// What the database's catalog says of tables, and indexes with files of their own, that lie elsewhere: name, place.
    hot: Vec<(String, String)>,
    /// What was acknowledged.
    pub(crate) acknowledged: u64,
    /// The rules; `Err` says why they could not be looked at.
    pub(crate) checked: Result<Checked, String>,
}

/// What R-SITE looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) site: String,
    pub(crate) rules: u64,
    pub(crate) violations: u64,
    pub(crate) acknowledged: u64,
    pub(crate) found: u64,
    /// The first violation, or why nothing could be looked at.
    pub(crate) first: Option<String>,
}

impl After {
    /// What of it is judged. What was acknowledged is looked for by rules of that name, by kind.
    pub(crate) fn findings(&self) -> Findings {
        let mut findings = Findings {
            site: self.name.clone(),
            rules: 0,
            violations: 0,
            acknowledged: self.acknowledged,
            found: 0,
            first: None,
        };
        let checked = match &self.checked {
            Ok(checked) => checked,
            Err(error) => {
                findings.violations = 1;
                findings.first = Some(format!("could not be checked: {error}"));
                return findings;
            }
        };
        for rule in &checked.rules {
            findings.rules += 1;
            findings.violations += rule.violations;
            if rule.rule.starts_with("acknowledged") {
                findings.found += rule.looked_at - rule.violations.min(rule.looked_at);
            }
            if findings.first.is_none() && rule.violations > 0 {
                let example = rule.examples.first().map_or("", String::as_str);
                findings.first = Some(format!("{}: {example}", rule.rule));
            }
        }
        findings
    }
}

/// Looks at every site; their databases must still answer.
///
/// # Errors
/// What lies in memory cannot be asked for. A database that fails is a finding, no error.
pub(crate) fn check(run: &Run, state: &Path, logs: &Path, sites: &[Laid]) -> Result<Vec<After>, Error> {
    let mut found = Vec::new();
    for (service, site) in all(run) {
        let Some(laid) = sites.iter().find(|laid| laid.name == service.name) else { continue };
        let hot_bytes_after = laid.hot.as_deref().map_or(Ok(0), data::used_bytes)?;
        let looked = look(service, site, state, logs);
        let (acknowledged, hot, checked) = match looked {
            Ok((acknowledged, hot, checked)) => (acknowledged, hot, Ok(checked)),
            Err(error) => (0, Vec::new(), Err(error.to_string())),
        };
        found.push(After {
            name: service.name.clone(),
            benchmark: site.benchmark.clone(),
            database: site.database.clone(),
            snapshot: laid.kept.key(),
            load_s: laid.kept.load_s,
            data_bytes: laid.data_bytes,
            hot_bytes: laid.hot_bytes,
            hot_bytes_after,
            hot,
            acknowledged,
            checked,
        });
    }
    Ok(found)
}

type Looked = (u64, Vec<(String, String)>, Checked);

fn look(service: &RunService, site: &Site, state: &Path, logs: &Path) -> Result<Looked, Error> {
    let wrong = of_site(&service.name);
    let folder = state.join("services").join(process_name(service, "database"));
    let who = administrator(site, &user(&database(site)?)?);
    let to = address(service, site, &folder, &who, DATABASE)?;
    let orders = read_orders(&orders_file(logs, &service.name)).map_err(&wrong)?;
    let mut connection = to.connect().map_err(|error| wrong(error.into()))?;
    let hot = weir_sites::hot::elsewhere(&mut *connection).map_err(&wrong)?;
    let checked = benchmark(service, site)?.check(&mut *connection, &orders).map_err(&wrong)?;
    Ok((orders.len() as u64, hot, checked))
}
