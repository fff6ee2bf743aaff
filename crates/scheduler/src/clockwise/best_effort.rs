//! Best-effort requests and their order.

use std::collections::{BTreeMap, VecDeque};

use crate::by_offset::ByOffset;
use crate::request::{Class, ClassId, Op, Request, TrafficKind};
use crate::settings::{SettingError, Settings};
use crate::sweep::{Sweep, Turn};

pub(super) const ORDER: (&str, &str) = (
    "order",
    "order of best-effort requests. fcfs: by arrival; scan: up and down; sync: synchronous ones first, by arrival; sync-scan: \
     synchronous ones first, up and down, the others by arrival; default fcfs",
);

pub(super) const SYNC: (&str, &str) =
    ("sync", "synchronous requests. op: reads; class: requests of all but best-effort classes; default op");

pub(super) const WRITES: (&str, &str) = (
    "writes",
    "best-effort writes in strict order, each completed before the next begins. any: none; stream: writes of a client; \
     class: writes of a class; default any",
);

/// Queue of requests with an order.
#[derive(Debug)]
enum Lane {
    ByArrival(VecDeque<Request>),
    BySweep(ByOffset, Sweep),
}

impl Lane {
    fn new(scan: bool) -> Lane {
        if scan {
            Lane::BySweep(ByOffset::default(), Sweep::new(Turn::Around))
        } else {
            Lane::ByArrival(VecDeque::new())
        }
    }

    fn push(&mut self, request: Request) {
        match self {
            Lane::ByArrival(waiting) => waiting.push_back(request),
            Lane::BySweep(waiting, _) => {
                waiting.insert(request);
            }
        }
    }

    fn peek(&self, head_bytes: u64) -> Option<&Request> {
        match self {
            Lane::ByArrival(waiting) => waiting.front(),
            Lane::BySweep(waiting, sweep) => waiting.get(sweep.peek(waiting, head_bytes)?),
        }
    }

    fn take(&mut self, head_bytes: u64) -> Option<Request> {
        match self {
            Lane::ByArrival(waiting) => waiting.pop_front(),
            Lane::BySweep(waiting, sweep) => sweep.take(waiting, head_bytes),
        }
    }

    /// Removes the next request without a change of the sweep.
    fn set_aside(&mut self, head_bytes: u64) -> Option<Request> {
        match self {
            Lane::ByArrival(waiting) => waiting.pop_front(),
            Lane::BySweep(waiting, sweep) => waiting.remove(sweep.peek(waiting, head_bytes)?),
        }
    }

    /// Returns requests that were set aside to their places.
    fn bring_back(&mut self, aside: &mut Vec<Request>) {
        match self {
            // All waiting requests are later.
            Lane::ByArrival(waiting) => aside.drain(..).rev().for_each(|request| waiting.push_front(request)),
            Lane::BySweep(waiting, _) => aside.drain(..).for_each(|request| {
                waiting.insert(request);
            }),
        }
    }
}

/// Scope of the strict order of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chained {
    None,
    Stream,
    Class,
}

/// Best-effort requests.
#[derive(Debug)]
pub(super) struct BestEffort {
    /// Synchronous requests and the others, or all in the first.
    lanes: [Lane; 2],
    is_split: bool,
    /// Classes whose requests are all asynchronous, with `sync=class`.
    asynchronous: Option<Vec<bool>>,
    chained: Chained,
    /// Writes behind an uncompleted one, by its class and stream.
    chains: BTreeMap<(ClassId, u32), VecDeque<Request>>,
    /// Requests of each lane that are set aside.
    aside: [Vec<Request>; 2],
    count: usize,
}

impl BestEffort {
    pub(super) fn new(classes: &[Class], settings: &Settings) -> Result<BestEffort, SettingError> {
        let order = settings.word("order", &["fcfs", "scan", "sync", "sync-scan"])?;
        let by_class = settings.word("sync", &["op", "class"])? == "class";
        let asynchronous = classes.iter().map(|class| class.kind == TrafficKind::BestEffort).collect();
        Ok(BestEffort {
            lanes: [Lane::new(order.ends_with("scan")), Lane::new(false)],
            is_split: order.starts_with("sync"),
            asynchronous: by_class.then_some(asynchronous),
            chained: match settings.word("writes", &["any", "stream", "class"])? {
                "stream" => Chained::Stream,
                "class" => Chained::Class,
                _ => Chained::None,
            },
            chains: BTreeMap::new(),
            aside: [const { Vec::new() }; 2],
            count: 0,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, request: Request) {
        self.count += 1;
        if let Some(chain) = self.chain(&request) {
            if let Some(behind) = self.chains.get_mut(&chain) {
                behind.push_back(request);
                return;
            }
            self.chains.insert(chain, VecDeque::new());
        }
        self.put(request);
    }

    /// Next request.
    pub(super) fn peek(&self, head_bytes: u64) -> Option<&Request> {
        self.lanes.iter().find_map(|lane| lane.peek(head_bytes))
    }

    /// Removes the next request.
    pub(super) fn take(&mut self, head_bytes: u64) -> Option<Request> {
        let request = self.lanes.iter_mut().find_map(|lane| lane.take(head_bytes))?;
        self.count -= 1;
        Some(request)
    }

    /// Sets the next request aside until [`BestEffort::bring_back`].
    pub(super) fn set_aside(&mut self, head_bytes: u64) {
        for (lane, aside) in self.lanes.iter_mut().zip(&mut self.aside) {
            if let Some(request) = lane.set_aside(head_bytes) {
                return aside.push(request);
            }
        }
    }

    pub(super) fn bring_back(&mut self) {
        for (lane, aside) in self.lanes.iter_mut().zip(&mut self.aside) {
            if !aside.is_empty() {
                lane.bring_back(aside);
            }
        }
    }

    /// Reports a completion, which releases the next write in strict order.
    pub(super) fn complete(&mut self, request: &Request) {
        let Some(chain) = self.chain(request) else { return };
        let Some(behind) = self.chains.get_mut(&chain) else { return };
        match behind.pop_front() {
            Some(next) => self.put(next),
            None => {
                self.chains.remove(&chain);
            }
        }
    }

    fn put(&mut self, request: Request) {
        let lane = usize::from(self.is_split && !self.is_sync(&request));
        self.lanes[lane].push(request);
    }

    fn is_sync(&self, request: &Request) -> bool {
        match &self.asynchronous {
            Some(asynchronous) => !asynchronous.get(usize::from(request.class)).copied().unwrap_or(false),
            None => request.op == Op::Read,
        }
    }

    fn chain(&self, request: &Request) -> Option<(ClassId, u32)> {
        match (self.chained, request.op) {
            (Chained::Stream, Op::Write) => Some((request.class, request.stream)),
            (Chained::Class, Op::Write) => Some((request.class, 0)),
            _ => None,
        }
    }
}
