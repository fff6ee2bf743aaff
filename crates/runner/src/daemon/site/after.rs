//! Check of a site after a run: its data are consistent and contain every acknowledged write.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_study::{Run, RunService, Site};
use weir_web_site::check::{Checked, Rule, read_orders};

use super::data::Laid;
use super::database::{
    DATABASE, address, administrator, all, benchmark, database, of_site, process_name, user,
};
use super::visit::{Visited, orders_file};
use crate::Error;

/// State of a site after a run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct After {
    /// Name of the daemon.
    #[serde(skip)]
    name: String,
    benchmark: String,
    database: String,
    /// Snapshot of the site's data, in `snapshots` of the state folder.
    snapshot: String,
    /// Time to load the snapshot, in seconds, in the run that made it.
    load_s: f64,
    /// Bytes in the database's folder before the run.
    data_bytes: u64,
    /// Bytes of tables in memory before the run.
    hot_bytes: u64,
    /// Bytes of tables in memory after the run.
    hot_bytes_after: u64,
    /// Tables and indexes that the database's catalog lists in another place: name, place.
    hot: Vec<(String, String)>,
    /// Acknowledged writes.
    acknowledged: u64,
    /// Consistency rules; none if they could not be checked.
    rules: Vec<Rule>,
    /// Why they could not be checked.
    error: Option<String>,
}

/// Findings for R-SITE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) site: String,
    pub(crate) rules: u64,
    pub(crate) violations: u64,
    pub(crate) acknowledged: u64,
    pub(crate) found: u64,
    /// The first violation, or why nothing could be checked.
    pub(crate) first: Option<String>,
}

impl After {
    /// Findings for R-SITE. Rules named `acknowledged...` look for acknowledged writes, by kind.
    pub(crate) fn findings(&self) -> Findings {
        let mut findings = Findings {
            site: self.name.clone(),
            rules: 0,
            violations: 0,
            acknowledged: self.acknowledged,
            found: 0,
            first: None,
        };
        if let Some(error) = &self.error {
            findings.violations = 1;
            findings.first = Some(format!("could not be checked: {error}"));
            return findings;
        }
        for rule in &self.rules {
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

/// Checks every site; its database must still answer.
///
/// # Errors
/// The memory file system cannot be read. A failed database is a finding, not an error.
pub(crate) fn check(run: &Run, state: &Path, logs: &Path, sites: &[Laid]) -> Result<Vec<After>, Error> {
    let mut found = Vec::new();
    for (service, site) in all(run) {
        let Some(laid) = sites.iter().find(|laid| laid.name == service.name) else { continue };
        let hot_bytes_after = laid.hot.as_deref().map_or(Ok(0), crate::files::free_space::used_bytes)?;
        let (acknowledged, hot, rules, error) = match look(service, site, state, logs) {
            Ok((acknowledged, hot, checked)) => (acknowledged, hot, checked.rules, None),
            Err(error) => (0, Vec::new(), Vec::new(), Some(error.to_string())),
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
            rules,
            error,
        });
    }
    Ok(found)
}

/// Part of `observed.json` about sites, by name.
pub(crate) fn observed(
    sites: &[After],
    visited: Visited,
    report: Option<&weir_web_client::Report>,
) -> Map<String, Value> {
    let mut figures = visited.figures(report.map_or(&[], |report| &report.classes));
    let of_site = |site: &After| {
        let mut value = json!(site);
        value["classes"] = json!(figures.remove(&site.name).unwrap_or_default());
        (site.name.clone(), value)
    };
    sites.iter().map(of_site).collect()
}

type Looked = (u64, Vec<(String, String)>, Checked);

fn look(service: &RunService, site: &Site, state: &Path, logs: &Path) -> Result<Looked, Error> {
    let wrong = of_site(&service.name);
    let folder = state.join("services").join(process_name(service, "database"));
    let who = administrator(site, &user(&database(site)?)?);
    let to = address(service, site, &folder, &who, DATABASE)?;
    let orders = read_orders(&orders_file(logs, &service.name)).map_err(&wrong)?;
    let mut connection = to.connect().map_err(|error| wrong(error.into()))?;
    let hot = weir_web_site::hot::elsewhere(&mut *connection).map_err(&wrong)?;
    let checked = benchmark(service, site)?.check(&mut *connection, &orders).map_err(&wrong)?;
    Ok((orders.len() as u64, hot, checked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::facts::Facts;
    use crate::validity::judge::judge;
    use crate::validity::rule::Status;

    /// A site with two acknowledgements, of which so many are not there.
    fn after(lost: u64, error: Option<&str>) -> After {
        let rule = |rule, looked_at, violations| Rule {
            rule,
            says: "",
            looked_at,
            violations,
            examples: (0..violations).map(|number| format!("token a-{number}: not there")).collect(),
        };
        After {
            name: "shop".to_owned(),
            benchmark: "tpcw".to_owned(),
            database: "postgresql".to_owned(),
            snapshot: String::new(),
            load_s: 1.0,
            data_bytes: 1,
            hot_bytes: 0,
            hot_bytes_after: 0,
            hot: Vec::new(),
            acknowledged: 2,
            rules: vec![rule("acknowledged", 2, lost), rule("totals", 9, 0)],
            error: error.map(str::to_owned),
        }
    }

    fn ruling(after: &After) -> (Status, String) {
        let verdict = judge(&Facts { sites: vec![after.findings()], ..Facts::default() });
        let found = verdict.rules.into_iter().find(|ruling| ruling.rule == "R-SITE").unwrap();
        (found.status, found.reason)
    }

    #[test]
    fn what_was_acknowledged_and_is_not_there_breaks_the_rule() {
        let (status, reason) = ruling(&after(0, None));
        assert_eq!(status, Status::Valid);
        assert!(reason.contains("2 rules hold; 2 of 2 acknowledged writes were found"), "{reason}");
        let (status, reason) = ruling(&after(1, None));
        assert_eq!(status, Status::Invalid);
        assert!(reason.contains("1 violations, the first acknowledged: token a-0: not there"), "{reason}");
        let (status, reason) = ruling(&after(0, Some("the database is gone")));
        assert_eq!(status, Status::Invalid);
        assert!(reason.contains("could not be checked: the database is gone"), "{reason}");
    }
}
