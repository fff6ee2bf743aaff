//! SFQ and SFQ(D): start-time fair queueing.
//!
//! P. Goyal, H. M. Vin and H. Cheng, "Start-time fair queueing: a scheduling algorithm for integrated services packet
//! switching networks", SIGCOMM 1996, section 2; W. Jin, J. S. Chase and J. Kaur, "Interposed proportional sharing for a
//! storage service utility", SIGMETRICS 2004, section 3.2 (the depth D).

use std::collections::{BTreeSet, VecDeque};

use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{ClassId, Request};
use crate::share::{Cost, Pace, Weight, of_class};

const NAME: &str = "sfq";

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    label: "SFQ",
    about: "start-time fair queueing among classes (Goyal, Vin and Cheng 1996), with depth as SFQ(D) (Jin, Chase and \
            Kaur 2004)",
    promises: "work conserving up to the depth; with one request at a time the work by weight of two backlogged \
               classes differs by at most the greatest request by weight of the one and of the other; requests of a \
               class in the order of arrival",
    settings: &[Cost::SETTING, ("depth", "maximum number of requests in the device; default 0: no limit")],
    build: |classes, settings| {
        let flows = Weight::of(NAME, classes)?.into_iter().map(Flow::new).collect();
        let cost = Cost::set(settings)?;
        let depth = settings.count("depth", 0, 0, 1_000_000)?;
        Ok(Box::new(Sfq {
            cost,
            depth: if depth == 0 { u64::MAX } else { depth },
            flows,
            backlogged: BTreeSet::new(),
            virtual_now: 0,
            last_finish: 0,
            waiting: 0,
            in_service: 0,
        }))
    },
};

/// A class: its requests, and the start of the first one in virtual time.
#[derive(Debug)]
struct Flow {
    pace: Pace,
    queue: VecDeque<Request>,
    start: u128,
    /// Finish tag of the last served request.
    finish: u128,
}

impl Flow {
    fn new(weight: Weight) -> Self {
        Flow { pace: weight.pace(), queue: VecDeque::new(), start: 0, finish: 0 }
    }
}

/// A request gets its tags at the head of its class. They equal the paper's tags, which are computed at arrival: while an
/// earlier request waits, virtual time has not reached that request's start, hence not its finish. The cost of a request
/// can then use the position of the arm at that time.
#[derive(Debug)]
struct Sfq {
    cost: Cost,
    depth: u64,
    flows: Vec<Flow>,
    /// Classes with requests, by the start tag of the first.
    backlogged: BTreeSet<(u128, ClassId)>,
    /// Start tag of the last dispatched request.
    virtual_now: u128,
    /// Greatest finish tag of a served request.
    last_finish: u128,
    waiting: usize,
    in_service: u64,
}

impl Policy for Sfq {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        let class = request.class;
        let flow = of_class(&mut self.flows, class, || Flow::new(Weight::ONE));
        if flow.queue.is_empty() {
            flow.start = self.virtual_now.max(flow.finish);
            self.backlogged.insert((flow.start, class));
        }
        flow.queue.push_back(request);
        self.waiting += 1;
    }

    fn next(&mut self, _: u64, model: &dyn ServiceModel) -> Decision {
        if self.waiting > 0 && self.in_service >= self.depth {
            return Decision::UNTIL_COMPLETION;
        }
        let Some((start, class)) = self.backlogged.pop_first() else { return Decision::Idle };
        let flow = of_class(&mut self.flows, class, || Flow::new(Weight::ONE));
        let Some(request) = flow.queue.pop_front() else { return Decision::Idle };
        flow.finish = start.saturating_add(flow.pace.times(self.cost.of(&request, model)));
        if !flow.queue.is_empty() {
            flow.start = flow.finish;
            self.backlogged.insert((flow.start, class));
        }
        self.virtual_now = start;
        self.last_finish = self.last_finish.max(flow.finish);
        self.waiting -= 1;
        self.in_service += 1;
        Decision::Serve(request)
    }

    fn complete(&mut self, _: u64, _: &Request, _: u64) {
        self.in_service = self.in_service.saturating_sub(1);
        if self.in_service == 0 && self.waiting == 0 {
            self.virtual_now = self.last_finish;
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{device, of_class, policy, policy_for, tags, weighted};
    use crate::policy::Decision;

    #[test]
    fn start_tags_by_hand() {
        // Class a has weight 1 and costs of 10: starts 0, 10, 20. Class b has weight 2: starts 0, 5, 10, 15. With equal
        // starts the first class in order goes first.
        let requests: Vec<_> =
            (0..3).map(|n| of_class(0, n, 10)).chain((10..14).map(|n| of_class(1, n, 10))).collect();
        let mut policy = policy_for("sfq", &weighted(&[1.0, 2.0]), &[]);
        assert_eq!(tags(&mut *policy, &requests), [0, 10, 11, 1, 12, 13, 2]);
    }

    #[test]
    fn no_credit_for_idle_time() {
        let mut policy = policy("sfq", &[]);
        let device = device(0);
        let mut serve = |arrivals: &[(u16, u64)]| {
            for (class, tag) in arrivals {
                policy.arrive(0, of_class(*class, *tag, 10), &device);
            }
            match policy.next(0, &device) {
                Decision::Serve(request) => request.tag,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(serve(&[(0, 1), (0, 2), (0, 3), (0, 4)]), 1);
        assert_eq!(serve(&[]), 2);
        // Virtual time is 10, the start of 2. Class b starts there, and not at 0: it gets one before 3, not two.
        assert_eq!(serve(&[(1, 11), (1, 12)]), 11);
        assert_eq!(serve(&[]), 3);
        assert_eq!(serve(&[]), 12);
    }

    #[test]
    fn the_depth_is_kept() {
        let mut policy = policy("sfq", &[("depth", "2")]);
        let device = device(0);
        let requests = [of_class(0, 1, 1), of_class(0, 2, 1), of_class(0, 3, 1)];
        for request in requests {
            policy.arrive(0, request, &device);
        }
        assert_eq!(policy.next(0, &device), Decision::Serve(requests[0]));
        assert_eq!(policy.next(0, &device), Decision::Serve(requests[1]));
        assert_eq!(policy.next(0, &device), Decision::UNTIL_COMPLETION);
        policy.complete(5, &requests[0], 0);
        assert_eq!(policy.next(5, &device), Decision::Serve(requests[2]));
        assert_eq!(policy.next(5, &device), Decision::Idle);
    }
}
