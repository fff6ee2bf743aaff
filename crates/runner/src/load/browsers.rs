//! Browsers of classes behind a web server or a site, over HTTP on loopback.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use weir_records::RequestSpool;
use weir_study::{Engine, Run, RunService};
use weir_web_client::{Class, Folders, Options, Report, Server, Visit, Visitors, browse};

use crate::Error;
use crate::daemon::site::{Visited, Visits};
use crate::files::placement::Placement;

/// Maximum connections of an open-loop class.
const CONNECTIONS: usize = 1024;
/// Timeout of a request: longer than a modelled disk with a long queue takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Classes of a run behind a web server, with the device of their rows.
pub(crate) fn classes(run: &Run, places: &[Placement]) -> Result<Vec<(Class, Arc<str>)>, Error> {
    places
        .iter()
        .filter(|place| place.class.engine == Engine::Web)
        .map(|place| Ok((class(run, place)?, place.class.device.as_str().into())))
        .collect()
}

fn class(run: &Run, place: &Placement) -> Result<Class, Error> {
    let asked = &place.class;
    let service = run.services.iter().find(|service| Some(&service.name) == asked.through.as_ref());
    let RunService { port, .. } = service
        .ok_or_else(|| Error::Refused(format!("class {}: its daemon is not one of the run", asked.name)))?;
    let refused = |error: weir_web_client::Error| Error::Refused(format!("class {}: {error}", asked.name));
    // The class's folder is in the server's root.
    let server = Server::new(&format!("http://127.0.0.1:{port}/{}", asked.name)).map_err(refused)?;
    let visit = match asked.think_ms {
        Some(think_ms) => Visit::Closed { clients: asked.clients, think_ns: think_ms * 1e6 },
        None => Visit::Open { clients: asked.clients, connections: CONNECTIONS },
    };
    let visitors = Visitors {
        class: asked.name.clone(),
        seed: run.seed,
        folders: Some(Folders::One),
        visit,
        warmup_ns: run.warmup_ns(),
        duration_ns: run.length_ns(),
        // Paths of recordings are absolute in a plan.
        folder: Path::new("/").to_owned(),
        threads: 1,
    };
    visitors.class(&place.recipe, server).map_err(refused)
}

/// Running browsers.
pub(crate) struct Asking {
    thread: JoinHandle<Result<Asked, weir_web_client::Error>>,
}

/// Outcome of the browsers' requests.
pub(crate) struct Asked {
    pub(crate) requests: RequestSpool,
    pub(crate) report: Report,
    /// Pages of sites.
    pub(crate) visited: Visited,
}

impl Asking {
    /// Starts the browsers, whose requests go to `requests`; `None` if no class has any.
    pub(crate) fn begin(
        mut classes: Vec<(Class, Arc<str>)>,
        visits: Vec<Visits>,
        run: &Run,
        epoch_ns: i64,
        mut requests: RequestSpool,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, Error> {
        if classes.is_empty() && visits.is_empty() {
            return Ok(None);
        }
        let mut visited = Visited::default();
        let documents = classes.len();
        // Browsers with think times need little CPU: real-time priority keeps them on time.
        let all_think = classes.is_empty();
        for visits in visits {
            visited.note(&visits);
            classes.push((visits.class, visits.device));
        }
        let ns = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        let options = Options {
            epoch_monotonic_ns: Some(epoch_ns),
            duration: ns(run.length_ns()),
            warmup: ns(run.warmup_ns()),
            timeout: TIMEOUT,
            stop: Arc::clone(stop),
            fifo_priority: all_think.then_some(1),
            ..Options::default()
        };
        let work = move || {
            let (classes, devices): (Vec<Class>, Vec<Arc<str>>) = classes.into_iter().unzip();
            let names: Vec<Arc<str>> = classes.iter().map(|class| Arc::clone(&class.name)).collect();
            let report = browse(classes, &options, |outcome| {
                let class = outcome.class as usize;
                let page = class.checked_sub(documents).map_or(0, |site| visited.add(site, outcome));
                requests.push_noted(outcome.to_request(&names[class], &devices[class]), page);
            })?;
            Ok(Asked { requests, report, visited })
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(work);
        Ok(Some(Asking {
            thread: thread.map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?,
        }))
    }

    /// Waits for the last response.
    pub(crate) fn finish(self) -> Result<Asked, Error> {
        let done =
            self.thread.join().map_err(|_| Error::Failed("the browsers' thread panicked".to_owned()))?;
        done.map_err(Error::failed)
    }
}
