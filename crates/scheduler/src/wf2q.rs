//! WF2Q+: worst-case fair weighted fair queueing.
//!
//! J. C. R. Bennett and H. Zhang, "Hierarchical packet fair queueing algorithms", SIGCOMM 1996, and IEEE/ACM
//! Transactions on Networking 5(5), 1997, section IV.

use std::collections::{BTreeSet, VecDeque};

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{ClassId, Request};
use crate::share::{Cost, Pace, Weight, of_class};

const NAME: &str = "wf2q+";

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    label: "WF²Q+",
    about: "worst-case fair weighted fair queueing among classes (Bennett and Zhang 1996)",
    promises: "work conserving; while a class is backlogged it gets its share of the work, up to its greatest request \
               and its share of what the greatest of all is greater by; it does not run ahead of its share by more than \
               one request; requests of a class in the order of arrival",
    settings: &[Cost::SETTING],
    build: |classes, settings| {
        let weights = Weight::of(NAME, classes)?;
        Ok(Box::new(Wf2q {
            cost: Cost::set(settings)?,
            all: weights.iter().copied().sum::<Weight>().pace_up(),
            total: weights.iter().copied().sum(),
            flows: weights.into_iter().map(Flow::new).collect(),
            eligible: BTreeSet::new(),
            early: BTreeSet::new(),
            virtual_now: 0,
            waiting: 0,
        }))
    },
};

/// A class: its requests, and start and finish of the first one in virtual time.
#[derive(Debug)]
struct Flow {
    pace: Pace,
    queue: VecDeque<Request>,
    start: u128,
    finish: u128,
    /// Of the request at the head.
    cost: u64,
}

impl Flow {
    fn new(weight: Weight) -> Self {
        Flow { pace: weight.pace(), queue: VecDeque::new(), start: 0, finish: 0, cost: 0 }
    }

    /// A request comes to the head, its service not to start before `start`.
    fn tag(&mut self, start: u128, cost: u64) {
        self.start = start;
        self.cost = cost;
        self.finish = start.saturating_add(self.pace.times(cost));
    }
}

/// A cost in time uses the position of the arm when the request comes to the head of its class.
#[derive(Debug)]
struct Wf2q {
    cost: Cost,
    /// Sum of the weights of all classes, backlogged or not.
    total: Weight,
    /// Rate of virtual time for all classes together.
    all: Pace,
    flows: Vec<Flow>,
    /// Classes whose first request has started in virtual time, by finish.
    eligible: BTreeSet<(u128, ClassId)>,
    /// Classes whose first request has not started, by start.
    early: BTreeSet<(u128, ClassId)>,
    /// Virtual time of the system after the last dispatched request.
    virtual_now: u128,
    waiting: usize,
}

impl Policy for Wf2q {
    fn arrive(&mut self, _: u64, request: Request, model: &dyn ServiceModel) {
        let class = request.class;
        let Wf2q { flows, total, all, .. } = self;
        let flow = of_class(flows, class, || {
            *total = *total + Weight::ONE;
            *all = total.pace_up();
            Flow::new(Weight::ONE)
        });
        if flow.queue.is_empty() {
            flow.tag(self.virtual_now.max(flow.finish), self.cost.of(&request, model));
            self.early.insert((flow.start, class));
        }
        flow.queue.push_back(request);
        self.waiting += 1;
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        // Virtual time is at least the minimum start of the backlogged classes. Eligible ones are not ahead.
        if let (true, Some((start, _))) = (self.eligible.is_empty(), self.early.first()) {
            self.virtual_now = self.virtual_now.max(*start);
        }
        while let Some((start, class)) = self.early.first().copied()
            && start <= self.virtual_now
        {
            self.early.pop_first();
            let flow = of_class(&mut self.flows, class, || Flow::new(Weight::ONE));
            self.eligible.insert((flow.finish, class));
        }
        let Some((finish, class)) = self.eligible.pop_first() else { return Decision::Idle };
        let flow = of_class(&mut self.flows, class, || Flow::new(Weight::ONE));
        let Some(request) = flow.queue.pop_front() else { return Decision::Idle };
        self.virtual_now = self.virtual_now.saturating_add(self.all.times(flow.cost));
        if let Some(first) = flow.queue.front() {
            let cost = self.cost.of(first, model);
            flow.tag(finish, cost);
            self.early.insert((flow.start, class));
        }
        self.waiting -= 1;
        Decision::Serve(request)
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{of_class, policy_for, tags, weighted};

    #[test]
    fn the_example_of_the_paper() {
        // Bennett and Zhang, Figure 2: one class with half of the link and eleven packets, ten with a twentieth each and
        // one packet each. WFQ serves ten packets of the first in a row; WF2Q and WF2Q+ one after another of the rest.
        let mut weights = vec![10.0];
        weights.extend([1.0; 10]);
        let requests: Vec<_> = (0..11)
            .map(|n| of_class(0, n, 1))
            .chain((1..11).map(|class| of_class(class, 100 + u64::from(class), 1)))
            .collect();
        let mut policy = policy_for("wf2q+", &weighted(&weights), &[]);
        let order: Vec<u64> = tags(&mut *policy, &requests);
        let expected: Vec<u64> = (0..10).flat_map(|n| [n, 101 + n]).chain([10]).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn shares_by_time_where_time_is_shared() {
        // Both classes request 10 bytes at a time, a at one offset and b 900 cylinders away from it.
        let requests: Vec<_> =
            (0..40).map(|n| of_class(0, n, 10)).chain((0..40).map(|n| of_class(1, 900 + n, 10))).collect();
        let bytes = tags(&mut *policy_for("wf2q+", &weighted(&[1.0, 1.0]), &[]), &requests);
        let a_first = |order: &[u64], n: usize| order[..n].iter().filter(|tag| **tag < 900).count();
        assert_eq!(a_first(&bytes, 20), 10);
        let time = tags(&mut *policy_for("wf2q+", &weighted(&[1.0, 1.0]), &[("cost", "time")]), &requests);
        assert_ne!(a_first(&time, 20), 10, "{time:?}");
    }
}
