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
    /// Names of pages, and their numbers.
    pages: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u64>,
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

    /// Adds a response or a failure. Returns what [`Visited::page`] needs beside its request: never 0.
    pub(crate) fn add(&mut self, class: usize, outcome: &Outcome) -> u64 {
        let Some(seen) = self.classes.get_mut(class) else { return 0 };
        seen.pages.add(outcome);
        let page = outcome.to_page(&seen.name);
        let number = match self.numbers.get(&page.page) {
            Some(number) => *number,
            None => {
                self.pages.push(Arc::clone(&page.page));
                // From 1.
                let number = self.pages.len() as u64;
                self.numbers.insert(page.page, number);
                number
            }
        };
        number << u16::BITS | u64::from(page.http_status)
    }

    /// The page of a request; `None` if the request was not for a page of a site.
    pub(crate) fn page(&self, request: &Request, note: u64) -> Option<Page> {
        let number = usize::try_from(note >> u16::BITS).ok()?;
        let page = self.pages.get(number.checked_sub(1)?)?;
        Some(Page {
            request: request.request,
            class: Arc::clone(&request.class),
            client: request.client,
            page: Arc::clone(page),
            intended_ns: request.intended_ns,
            submitted_ns: request.submitted_ns,
            completed_ns: request.completed_ns,
            size_bytes: request.size_bytes,
            http_status: note as u16,
            status: request.status,
            warmup: request.warmup,
        })
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
