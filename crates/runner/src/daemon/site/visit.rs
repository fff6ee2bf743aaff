//! Emulated browsers of a site's classes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use weir_records::{Page, Request};
use weir_study::Run;
use weir_web_client::{Class, ClassReport, Outcome, Server};
use weir_web_site::browse::{Browsers, OrderLog, Pages, read_status};
use weir_workload::sessions::SessionModel;

use super::database::{all, of_site};
use crate::Error;

/// File of acknowledged writes of a site.
pub(super) fn orders_file(logs: &Path, service: &str) -> std::path::PathBuf {
    logs.join(format!("{service}.orders.log"))
}

/// A class of emulated browsers.
pub(crate) struct Visits {
    /// Class for the engine.
    pub(crate) class: Class,
    /// Device in its rows.
    pub(crate) device: Arc<str>,
    service: String,
    repeated: Arc<AtomicU64>,
}

/// Emulated browsers of a run; the sites must answer.
///
/// # Errors
/// A site does not answer, or a class is for another benchmark.
pub(crate) fn visits(run: &Run, logs: &Path, stop: &Arc<AtomicBool>) -> Result<Vec<Visits>, Error> {
    let mut found = Vec::new();
    for (service, _) in all(run) {
        let wrong = of_site(&service.name);
        let failed = |error: &dyn std::fmt::Display| Error::Failed(format!("site {}: {error}", service.name));
        let at = |port: u16| Server::new(&format!("http://127.0.0.1:{port}")).map_err(|error| failed(&error));
        let status = read_status(&at(service.port)?).map_err(&wrong)?;
        let log = OrderLog::open(&orders_file(logs, &service.name)).map_err(&wrong)?;
        let log = Arc::new(log);
        for class in run.visitors(&service.name) {
            let first = run.services_of(class).first().map_or(service.port, |first| first.port);
            let sessions = class.recipe.sessions().ok_or_else(|| {
                Error::Refused(format!(
                    "class {}: its workload has no sessions. Choose a workload of sessions",
                    class.name
                ))
            })?;
            // Paths of tables are absolute in a plan.
            let model = SessionModel::open(sessions, Path::new("/")).map_err(|error| failed(&error))?;
            let repeated = Arc::<AtomicU64>::default();
            let browsers = Browsers {
                class: class.name.clone(),
                model,
                clients: class.clients,
                seed: run.seed,
                think_scale: 1.0,
                log: Some(Arc::clone(&log)),
                stop: Arc::clone(stop),
                repeated: Arc::clone(&repeated),
            };
            found.push(Visits {
                class: browsers.class(at(first)?, &status).map_err(&wrong)?,
                device: class.device.as_str().into(),
                service: service.name.clone(),
                repeated,
            });
        }
    }
    Ok(found)
}

/// Results of the visits.
#[derive(Default)]
pub(crate) struct Visited {
    classes: Vec<Seen>,
    /// By class, and request number within the engine.
    rows: HashMap<(Arc<str>, u64), Page>,
}

struct Seen {
    name: Arc<str>,
    service: String,
    repeated: Arc<AtomicU64>,
    pages: Pages,
}

impl Visited {
    /// Adds a class; classes are numbered in this order.
    pub(crate) fn note(&mut self, visits: &Visits) {
        self.classes.push(Seen {
            name: Arc::clone(&visits.class.name),
            service: visits.service.clone(),
            repeated: Arc::clone(&visits.repeated),
            pages: Pages::default(),
        });
    }

    /// Adds a response or a failure.
    pub(crate) fn add(&mut self, class: usize, outcome: &Outcome) {
        let Some(seen) = self.classes.get_mut(class) else { return };
        seen.pages.add(outcome);
        let name = Arc::clone(&seen.name);
        let page = outcome.to_page(&name);
        self.rows.insert((name, outcome.request), page);
    }

    /// Page of a request, with its request number in the run.
    pub(crate) fn take(&mut self, request: &Request, number: u64) -> Option<Page> {
        if self.rows.is_empty() {
            return None;
        }
        let page = self.rows.remove(&(Arc::clone(&request.class), request.request))?;
        Some(Page { request: number, ..page })
    }

    /// Figures of each class, by site. WIPS are completed pages per second of the measured interval.
    pub(crate) fn figures(self, classes: &[ClassReport]) -> BTreeMap<String, BTreeMap<String, Value>> {
        let mut figures: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for seen in self.classes {
            let Some(report) = classes.iter().find(|class| class.class == *seen.name) else { continue };
            let of_class = json!({
                "wips": report.requests_per_s,
                "answered": report.answered,
                "failed": report.failed,
                "mean_ms": report.response.mean_ns / 1e6,
                "repeated": seen.repeated.load(Ordering::Relaxed),
                "pages": seen.pages.finish(),
            });
            figures.entry(seen.service).or_default().insert(seen.name.to_string(), of_class);
        }
        figures
    }
}
