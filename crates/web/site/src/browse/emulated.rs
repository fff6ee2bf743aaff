//! A class of emulated browsers for the engine of `weir-web-client`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_web_client::{Answer, Ask, Class, Client, Expect, Load, Method, Server};
use weir_workload::sessions::{Browser, SessionModel};

use super::visitor::{Asked, Visitor, page_of};
use super::{OrderLog, Status};
use crate::text::row_generator;
use crate::{Benchmark, Error};

/// Pause before a failed page is requested again.
pub const RETRY_AFTER: Duration = Duration::from_millis(500);

/// A class of emulated browsers of one site.
pub struct Browsers {
    /// Names the rows; draws depend on it.
    pub class: String,
    /// The mix: table of transitions, think time, sessions.
    pub model: Arc<SessionModel>,
    /// Their number.
    pub clients: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Think times are multiplied by this; 1 is the benchmark's own.
    pub think_scale: f64,
    /// Where receipts are written to.
    pub log: Option<Arc<OrderLog>>,
    /// Set where the log could not be written: the run must end, as what follows could not be checked.
    pub stop: Arc<AtomicBool>,
    /// Requests that were repeated because no answer came, or one of 5xx.
    pub repeated: Arc<AtomicU64>,
}

/// A state of the table as the engine needs it.
struct Page {
    name: String,
    label: Arc<str>,
    path: String,
    expect: Expect,
}

struct Emulated {
    browser: Browser,
    visitor: Box<dyn Visitor>,
    pages: Arc<Vec<Page>>,
    think_scale: f64,
    log: Option<Arc<OrderLog>>,
    stop: Arc<AtomicBool>,
    repeated: Arc<AtomicU64>,
    /// The page and its method.
    current: Option<(usize, Asked)>,
}

impl Browsers {
    /// The class of browsers of `server`, which reported this status.
    ///
    /// # Errors
    /// The mix is for another benchmark, or the status lacks the size of the site.
    pub fn class(self, server: Server, status: &Status) -> Result<Class, Error> {
        let benchmark: Benchmark = status.site.parse()?;
        let states = self.model.table().states();
        let known: Vec<&str> = status.answered.iter().map(|(page, _)| page.as_str()).collect();
        let page = |state: &Arc<str>| {
            let name = page_of(state);
            if !known.contains(&name.as_str()) {
                return Err(Error::Input(format!(
                    "the mix {} has the page {state}, which the site {} does not have: use a mix of {}",
                    self.model.table().name(),
                    status.site,
                    status.site
                )));
            }
            let head = format!("{{\"page\":\"{name}\"");
            let expect = Expect::Check(Arc::new(move |_, body| body.starts_with(head.as_bytes())));
            Ok(Page { path: format!("/{}/{name}", status.site), label: Arc::clone(state), name, expect })
        };
        let pages = Arc::new(states.iter().map(page).collect::<Result<Vec<Page>, Error>>()?);
        let run = mark();
        let client = |number: u32| -> Result<Box<dyn Client>, Error> {
            let rng = row_generator(self.seed, &format!("visitor {}", self.class), u64::from(number));
            let mut visitor = benchmark.visitor(&status.facts, rng, format!("{run}-{number}"))?;
            visitor.begin();
            Ok(Box::new(Emulated {
                browser: Browser::new(&self.model, &self.class, self.seed, number),
                visitor,
                pages: Arc::clone(&pages),
                think_scale: self.think_scale,
                log: self.log.clone(),
                stop: Arc::clone(&self.stop),
                repeated: Arc::clone(&self.repeated),
                current: None,
            }))
        };
        let clients = (0..self.clients).map(client).collect::<Result<_, _>>()?;
        Ok(Class { name: self.class.as_str().into(), server, documents: None, load: Load::Closed(clients) })
    }
}

/// Prefix of the tokens of this load generator: 64 random bits.
fn mark() -> String {
    use rand::{TryRng, rngs::SysRng};
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let bits = SysRng.try_next_u64().unwrap_or(time.as_nanos() as u64 ^ u64::from(std::process::id()) << 40);
    format!("{bits:016x}")
}

impl Emulated {
    /// Writes the current page into `ask`.
    fn write(&self, ask: &mut Ask) {
        let Some((page, asked)) = &self.current else { return };
        let page = &self.pages[*page];
        ask.path.push_str(&page.path);
        if asked.posted {
            ask.method = Method::Post;
            ask.headers.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
            ask.body.extend_from_slice(asked.form.as_bytes());
        } else if !asked.form.is_empty() {
            ask.path.push('?');
            ask.path.push_str(&asked.form);
        }
        ask.label = Some(Arc::clone(&page.label));
        ask.expect = page.expect.clone();
    }

    /// Handles a response. Returns whether the page is requested again.
    fn take(&mut self, answer: &Answer<'_>) -> bool {
        let Some((page, _)) = &self.current else { return false };
        let name = &self.pages[*page].name;
        if answer.error != 0 {
            let refused = (400..500).contains(&answer.status);
            if refused {
                self.visitor.refused(name);
            }
            return !refused;
        }
        let Ok(body) = serde_json::from_slice(answer.body) else { return true };
        if let Some(receipt) = self.visitor.take(name, &body)
            && let Some(log) = &self.log
            && let Err(error) = log.add(&receipt)
        {
            eprintln!("{error}: stopping, for what follows could not be checked");
            self.stop.store(true, Ordering::Relaxed);
        }
        false
    }
}

impl Client for Emulated {
    fn next(&mut self, answered: Option<&Answer<'_>>, now_ns: i64, ask: &mut Ask) -> ControlFlow<()> {
        if let Some(answer) = answered
            && self.take(answer)
        {
            // The same request with the same token: its effect happens once.
            self.repeated.fetch_add(1, Ordering::Relaxed);
            ask.at_ns = now_ns + RETRY_AFTER.as_nanos() as i64;
            self.write(ask);
            return ControlFlow::Continue(());
        }
        let step = self.browser.next(now_ns);
        if step.step == 0 {
            self.visitor.begin();
        }
        let page = usize::from(step.state);
        let mut asked = Asked::default();
        self.visitor.ask(&self.pages[page].name, &mut asked);
        self.current = Some((page, asked));
        ask.at_ns = now_ns + (step.think_ns as f64 * self.think_scale) as i64;
        self.write(ask);
        ControlFlow::Continue(())
    }
}
