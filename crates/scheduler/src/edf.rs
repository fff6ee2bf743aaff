//! EDF: earliest deadline first.

use std::collections::BTreeMap;

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;

pub(crate) const ENTRY: Entry = Entry {
    name: "edf",
    label: "EDF",
    about: "earliest deadline first (Liu and Layland, JACM 20(1), 1973, as non-preemptive as a disk is)",
    promises: "work conserving; no other request's deadline is earlier; equal deadlines in the order of arrival; \
               requests without a deadline after all others",
    settings: &[],
    build: |_, _| Ok(Box::new(Edf::default())),
};

#[derive(Debug, Default)]
struct Edf {
    /// By deadline and number of arrival.
    waiting: BTreeMap<(u64, u64), Request>,
    arrivals: u64,
}

impl Policy for Edf {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.waiting.insert((request.due_ns(), self.arrivals), request);
        self.arrivals += 1;
    }

    fn next(&mut self, _: u64, _: &dyn ServiceModel) -> Decision {
        self.waiting.pop_first().map_or(Decision::Idle, |(_, request)| Decision::Serve(request))
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{policy, read, tags};
    use crate::request::Request;

    #[test]
    fn deadlines_then_arrivals_then_those_without() {
        let due = |tag, deadline_ns| Request { deadline_ns, ..read(tag) };
        let requests = [due(1, None), due(2, Some(20)), due(3, Some(10)), due(4, Some(20)), due(5, None)];
        assert_eq!(tags(&mut *policy("edf", &[]), &requests), [3, 2, 4, 1, 5]);
    }
}
