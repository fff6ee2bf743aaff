//! First come, first served.

use std::collections::VecDeque;

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;

pub(crate) const ENTRY: Entry = Entry {
    name: "fcfs",
    label: "FCFS",
    about: "first come, first served",
    promises: "work conserving; no request waits for one that came later",
    settings: &[],
    build: |_, _| Ok(Box::new(Fcfs::default())),
};

/// Serves requests in the order of their arrival.
#[derive(Debug, Default)]
struct Fcfs {
    queue: VecDeque<Request>,
}

impl Policy for Fcfs {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.queue.push_back(request);
    }

    fn next(&mut self, _: u64, _: &dyn ServiceModel) -> Decision {
        self.queue.pop_front().map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }
}
