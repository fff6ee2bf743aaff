//! FSCAN and N-step SCAN: sweeps over closed groups of requests.
//!
//! E. G. Coffman, L. A. Klimko and B. Ryan, SIAM J. Computing 1(3), 1972 (FSCAN); H. Frank, "Analysis and optimization
//! of disk storage devices for time-sharing systems", JACM 16(4), 1969 (N-step SCAN).

use std::collections::VecDeque;

use crate::by_offset::ByOffset;
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::Request;
use crate::sweep::{Sweep, Turn};

pub(crate) const FSCAN: Entry = Entry {
    name: "fscan",
    label: "FSCAN",
    about: "serves the requests that wait at the start of a sweep in SCAN order; later arrivals wait for the next sweep (Coffman, \
            Klimko and Ryan 1972)",
    promises: "work conserving; a request waits only for those that arrived before the end of the sweep during which \
               it came",
    settings: &[],
    build: |_, _| Ok(Box::new(Grouped::new(usize::MAX))),
};

pub(crate) const N_STEP_SCAN: Entry = Entry {
    name: "n-step-scan",
    label: "N-step SCAN",
    about: "serves groups of n requests, in the order of arrival, each in SCAN order (Frank 1969)",
    promises: "work conserving; no request waits for more than n - 1 later arrivals",
    settings: &[("n", "requests per group, at least 1; default 10")],
    build: |_, settings| {
        let size = settings.count("n", 10, 1, 1_000_000)?;
        Ok(Box::new(Grouped::new(usize::try_from(size).unwrap_or(usize::MAX))))
    },
};

#[derive(Debug)]
struct Grouped {
    /// Maximum number of requests in a group.
    size: usize,
    group: ByOffset,
    sweep: Sweep,
    arrived: VecDeque<Request>,
}

impl Grouped {
    fn new(size: usize) -> Self {
        Grouped {
            size,
            group: ByOffset::default(),
            sweep: Sweep::new(Turn::Around),
            arrived: VecDeque::new(),
        }
    }
}

impl Policy for Grouped {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        self.arrived.push_back(request);
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        if self.group.is_empty() {
            let size = self.size.min(self.arrived.len());
            for request in self.arrived.drain(..size) {
                self.group.insert(request);
            }
        }
        self.sweep.take(&mut self.group, model.head_bytes()).map_or(Decision::Idle, Decision::Serve)
    }

    fn waiting(&self) -> usize {
        self.group.len() + self.arrived.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{at, device, offsets, policy, read};
    use crate::policy::Decision;

    #[test]
    fn groups_are_swept_one_after_the_other() {
        let queue = at(&[90, 10, 50, 70, 30, 60]);
        let mut three = policy("n-step-scan", &[("n", "3")]);
        assert_eq!(offsets(&mut *three, &queue, 0), [10, 50, 90, 70, 60, 30]);
        let mut one = policy("n-step-scan", &[("n", "1")]);
        assert_eq!(offsets(&mut *one, &queue, 0), [90, 10, 50, 70, 30, 60]);
    }

    #[test]
    fn what_arrives_during_a_sweep_waits() {
        let mut policy = policy("fscan", &[]);
        let device = device(0);
        for request in at(&[20, 40]) {
            policy.arrive(0, request, &device);
        }
        let mut order = Vec::new();
        while let Decision::Serve(request) = policy.next(0, &device) {
            order.push(request.offset_bytes);
            if request.offset_bytes == 20 {
                policy.arrive(0, read(30), &device);
            }
        }
        assert_eq!(order, [20, 40, 30]);
    }
}
