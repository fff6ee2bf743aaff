//! Round robin between classes.

use std::collections::VecDeque;

use crate::by_offset::ByOffset;
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{ClassId, Request};
use crate::share::of_class;
use crate::sweep::{Sweep, Turn};

pub(crate) const ENTRY: Entry = Entry {
    name: "round-robin",
    label: "Round robin",
    about: "classes take turns (Nagle, IEEE Trans. Comm. 35(4), 1987; the fair scheduler of Figure 2 of Shenoy and Vin)",
    promises: "work conserving; between two turns of a backlogged class every other class has at most one turn",
    settings: &[
        ("quantum", "requests per turn, at least 1; default 1"),
        ("order", "order within a class. fcfs: order of arrival; scan: up and down; default fcfs"),
    ],
    build: |_, settings| {
        Ok(Box::new(RoundRobin {
            quantum: settings.count("quantum", 1, 1, 1_000_000)?,
            swept: settings.word("order", &["fcfs", "scan"])? == "scan",
            queues: Vec::new(),
            ring: VecDeque::new(),
            served: 0,
            waiting: 0,
        }))
    },
};

#[derive(Debug)]
enum Queue {
    Fcfs(VecDeque<Request>),
    Swept(ByOffset, Sweep),
}

impl Queue {
    fn new(swept: bool) -> Self {
        if swept {
            Queue::Swept(ByOffset::default(), Sweep::new(Turn::Around))
        } else {
            Queue::Fcfs(VecDeque::new())
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Queue::Fcfs(queue) => queue.is_empty(),
            Queue::Swept(queue, _) => queue.is_empty(),
        }
    }

    fn push(&mut self, request: Request) {
        match self {
            Queue::Fcfs(queue) => queue.push_back(request),
            Queue::Swept(queue, _) => {
                queue.insert(request);
            }
        }
    }

    fn pop(&mut self, head_bytes: u64) -> Option<Request> {
        match self {
            Queue::Fcfs(queue) => queue.pop_front(),
            Queue::Swept(queue, sweep) => sweep.take(queue, head_bytes),
        }
    }
}

#[derive(Debug)]
struct RoundRobin {
    quantum: u64,
    swept: bool,
    queues: Vec<Queue>,
    /// Classes with requests; the first has the turn.
    ring: VecDeque<ClassId>,
    /// Requests served in this turn.
    served: u64,
    waiting: usize,
}

impl Policy for RoundRobin {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        let swept = self.swept;
        let queue = of_class(&mut self.queues, request.class, || Queue::new(swept));
        if queue.is_empty() {
            self.ring.push_back(request.class);
        }
        queue.push(request);
        self.waiting += 1;
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        let Some(class) = self.ring.front().copied() else { return Decision::Idle };
        let swept = self.swept;
        let queue = of_class(&mut self.queues, class, || Queue::new(swept));
        let Some(request) = queue.pop(model.head_bytes()) else { return Decision::Idle };
        self.waiting -= 1;
        self.served += 1;
        if queue.is_empty() || self.served >= self.quantum {
            self.served = 0;
            self.ring.pop_front();
            if !queue.is_empty() {
                self.ring.push_back(class);
            }
        }
        Decision::Serve(request)
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{of_class, policy, tags};
    use crate::request::Request;

    fn requests() -> Vec<Request> {
        let tags = [(0, 50), (0, 10), (0, 30), (1, 90), (1, 70), (2, 20)];
        tags.into_iter().map(|(class, tag)| of_class(class, tag, 1)).collect()
    }

    #[test]
    fn one_of_each() {
        assert_eq!(tags(&mut *policy("round-robin", &[]), &requests()), [50, 90, 20, 10, 70, 30]);
    }

    #[test]
    fn two_of_each_in_sweeps() {
        let settings = [("quantum", "2"), ("order", "scan")];
        assert_eq!(tags(&mut *policy("round-robin", &settings), &requests()), [10, 30, 70, 90, 20, 50]);
    }
}
