//! Last come, first served: what is new is urgent, and what has waited can wait.

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;
use crate::settings::Settings;

/// The policy's line in the registry.
pub(crate) const ENTRY: Entry = Entry {
    name: "lcfs",
    label: "LCFS",
    about: "last come, first served",
    promises: "work conserving; a request that has not waited for patience_ms is served after all that came later",
    settings: &[("patience_ms", "who has waited so long is served first; default 1000")],
    build: |_, settings: &Settings| {
        Ok(Box::new(Lcfs { patience_ns: settings.ms("patience_ms", 1000.0)?, stack: Vec::new() }))
    },
};

/// Serves the request that came last, unless the oldest has lost its patience.
#[derive(Debug)]
struct Lcfs {
    patience_ns: u64,
    stack: Vec<Request>,
}

impl Policy for Lcfs {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.stack.push(request);
    }

    fn next(&mut self, now_ns: u64, _: &dyn ServiceModel) -> Decision {
        let is_tired = |oldest: &Request| now_ns.saturating_sub(oldest.arrived_ns) >= self.patience_ns;
        if self.stack.first().is_some_and(is_tired) {
            return Decision::Serve(self.stack.remove(0));
        }
        self.stack.pop().map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.stack.len()
    }
}
