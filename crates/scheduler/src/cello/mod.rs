//! Cello: shares of intervals for classes, and an order for each traffic kind.
//!
//! P. J. Shenoy and H. M. Vin, "Cello: a disk scheduling framework for next generation operating systems", SIGMETRICS
//! 1998; in short in section 2.1 of Shenoy, Goyal and Vin, "Architectural considerations for next generation file
//! systems".
//!
//! Requests wait in one pending queue for each class. In every interval the class-independent half moves them from there
//! to the scheduled queue, as many as fit in the class's share ([`allocation`]). The class-specific halves decide where in
//! the scheduled queue a request goes. The paper fixes the whole order of the queue at insertion: `slack=insertion`
//! ([`placed`]). By default interactive and real-time requests are compared when a request is taken from the queue, with the
//! actual time and position of the arm ([`schedule`]).

mod allocation;
mod placed;
mod schedule;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use self::allocation::{Allocation, Paid};
use self::placed::Placed;
use self::schedule::{Schedule, Scheduled, Way};
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Class, Request, TrafficKind};
use crate::settings::{SettingError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "cello",
    label: "Cello",
    about: "shares of intervals by weight; interactive requests use the slack of real-time ones (Shenoy and Vin 1998)",
    promises: "work conserving; a class with pending requests gets its share of an interval, less one request of each other \
               class and their earlier scheduled requests; an interactive request makes no earlier scheduled real-time \
               request late, if estimates hold; unused shares are divided by weight",
    settings: &[
        (
            "period_ms",
            "length of the shared interval; the papers state none; default 10000, weir's choice: ten rounds of the video \
             server (study shenoy-cello)",
        ),
        (
            "estimate",
            "service time. expected: with half a revolution; bound: with a whole revolution; default bound",
        ),
        (
            "interactive",
            "order of interactive requests. scan: upwards from the arm; fcfs; merged: like scan, and real-time requests \
             when the arm passes them; default scan",
        ),
        (
            "deadline_batch_ms",
            "deadlines within one step of this length count as equal, for SCAN order; default 0",
        ),
        (
            "sweep",
            "SCAN order of all classes. c-scan: upwards, then from the lowest offset, as section 2.1 of Shenoy, Goyal and \
             Vin defines SCAN; scan: up and down; default c-scan",
        ),
        (
            "batches",
            "SCAN order of interactive and of best-effort requests. interval: those of earlier intervals first; none: all \
             that are scheduled (the papers name no batches); default interval",
        ),
        (
            "slack",
            "when slack is computed. dispatch: when the device is free, with the actual time and position of the arm; \
             insertion: when a request is moved to the scheduled queue, as in the papers; default dispatch",
        ),
    ],
    build,
};

fn build(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    if classes.is_empty() {
        let problem = "no classes (found 0, expected at least 1). Add a class".to_owned();
        return Err(SettingError::Classes { policy: "cello", problem });
    }
    if let Some(class) = classes.iter().find(|class| !(class.weight > 0.0 && class.weight.is_finite())) {
        let problem = format!("class `{}` has weight {}, expected above 0", class.name, class.weight);
        return Err(SettingError::Classes { policy: "cello", problem });
    }
    let period_ms = settings.number("period_ms", 10_000.0, 0.001, 1e9)?;
    let estimate = match settings.word("estimate", &["bound", "expected"])? {
        "expected" => Estimate::Expected,
        _ => Estimate::Bound,
    };
    let interactive = settings.word("interactive", &["scan", "fcfs", "merged"])?;
    let deadline_batch_ns = settings.ms("deadline_batch_ms", 0.0)?;
    let way = match settings.word("sweep", &["c-scan", "scan"])? {
        "scan" => Way::BOTH,
        _ => Way::UPWARDS,
    };
    let is_placed = settings.word("slack", &["dispatch", "insertion"])? == "insertion";
    for (key, value) in [("interactive", "merged"), ("sweep", "scan")] {
        if is_placed && settings.0.get(key).is_some_and(|set| set == value) {
            return Err(settings.refused("slack", format!("dispatch, for {key}={value}")));
        }
    }
    let weights: Vec<f64> = classes.iter().map(|class| class.weight).collect();
    let in_scan_order = interactive != "fcfs";
    Ok(Box::new(Cello {
        estimate,
        in_scan_order,
        is_by_interval: settings.word("batches", &["interval", "none"])? == "interval",
        pending: classes.iter().map(|class| Pending::new(class.kind)).collect(),
        allocation: Allocation::new((period_ms * 1e6).round() as u64, &weights),
        schedule: match is_placed {
            true => Queue::Placed(Placed::new(estimate, deadline_batch_ns, in_scan_order)),
            false => {
                Queue::Compared(Schedule::new(estimate, deadline_batch_ns, interactive == "merged", way))
            }
        },
        in_service: Vec::new(),
        last: None,
        arrivals: 0,
        scheduled: 0,
        pending_count: 0,
    }))
}

/// The scheduled queue, by when slack is computed.
#[derive(Debug)]
enum Queue {
    /// When a request is taken.
    Compared(Schedule),
    /// When a request is inserted.
    Placed(Placed),
}

impl Queue {
    /// Inserts a request; returns its estimated service time.
    fn insert(
        &mut self,
        kind: TrafficKind,
        batch: u64,
        scheduled: Scheduled,
        model: &dyn ServiceModel,
    ) -> i64 {
        match self {
            Queue::Compared(schedule) => schedule.insert(kind, batch, scheduled, model),
            Queue::Placed(placed) => placed.insert(kind, batch, scheduled, model),
        }
    }

    fn len(&self) -> usize {
        match self {
            Queue::Compared(schedule) => schedule.len(),
            Queue::Placed(placed) => placed.len(),
        }
    }

    /// Removes the next request for a device that is free at `free_ns`.
    fn take(&mut self, free_ns: u64, model: &dyn ServiceModel) -> Option<Scheduled> {
        match self {
            Queue::Compared(schedule) => schedule.take(free_ns, model),
            Queue::Placed(placed) => placed.take(free_ns, model),
        }
    }
}

/// Estimate of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Estimate {
    Expected,
    Bound,
}

impl Estimate {
    fn ns(self, model: &dyn ServiceModel, from_bytes: u64, request: &Request) -> u64 {
        match self {
            Estimate::Expected => model.expected_ns(from_bytes, request),
            Estimate::Bound => model.bound_ns(from_bytes, request),
        }
    }

    fn signed_ns(self, model: &dyn ServiceModel, from_bytes: u64, request: &Request) -> i64 {
        i64::try_from(self.ns(model, from_bytes, request)).unwrap_or(i64::MAX)
    }
}

/// A pending real-time request, ordered by deadline, offset and arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Urgent {
    due_ns: u64,
    offset_bytes: u64,
    arrival: u64,
    request: ByKey,
}

/// A request that is ignored in comparisons.
#[derive(Debug)]
struct ByKey(Request);

impl PartialEq for ByKey {
    fn eq(&self, _: &ByKey) -> bool {
        true
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &ByKey) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, _: &ByKey) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// Pending queue of a class, in scheduling order.
#[derive(Debug)]
enum Pending {
    RealTime(BinaryHeap<Reverse<Urgent>>),
    Interactive(VecDeque<Request>),
    BestEffort(VecDeque<Request>),
}

impl Pending {
    fn new(kind: TrafficKind) -> Pending {
        match kind {
            TrafficKind::RealTime => Pending::RealTime(BinaryHeap::new()),
            TrafficKind::Interactive => Pending::Interactive(VecDeque::new()),
            TrafficKind::BestEffort => Pending::BestEffort(VecDeque::new()),
        }
    }

    fn kind(&self) -> TrafficKind {
        match self {
            Pending::RealTime(_) => TrafficKind::RealTime,
            Pending::Interactive(_) => TrafficKind::Interactive,
            Pending::BestEffort(_) => TrafficKind::BestEffort,
        }
    }

    fn push(&mut self, request: Request, arrival: u64) {
        match self {
            Pending::RealTime(heap) => heap.push(Reverse(Urgent {
                due_ns: request.due_ns(),
                offset_bytes: request.offset_bytes,
                arrival,
                request: ByKey(request),
            })),
            Pending::Interactive(queue) | Pending::BestEffort(queue) => queue.push_back(request),
        }
    }

    fn pop(&mut self) -> Option<Request> {
        match self {
            Pending::RealTime(heap) => heap.pop().map(|Reverse(urgent)| urgent.request.0),
            Pending::Interactive(queue) | Pending::BestEffort(queue) => queue.pop_front(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Pending::RealTime(heap) => heap.is_empty(),
            Pending::Interactive(queue) | Pending::BestEffort(queue) => queue.is_empty(),
        }
    }
}

/// The last request that was passed to the device.
#[derive(Debug, Clone, Copy)]
struct Dispatched {
    request: Request,
    /// Estimated time at which the device was free for it.
    free_ns: u64,
    /// Position of the arm at that time.
    from_bytes: u64,
}

/// Shares intervals among classes.
#[derive(Debug)]
struct Cello {
    estimate: Estimate,
    in_scan_order: bool,
    /// Whether requests of earlier intervals go first in SCAN order.
    is_by_interval: bool,
    pending: Vec<Pending>,
    pending_count: usize,
    allocation: Allocation,
    schedule: Queue,
    in_service: Vec<Scheduled>,
    last: Option<Dispatched>,
    arrivals: u64,
    /// Number of scheduled requests.
    scheduled: u64,
}

impl Cello {
    /// Moves the next pending request of a class to the scheduled queue; returns its estimated service time in ns.
    fn schedule(&mut self, class: usize, paid: Paid, interval: u64, model: &dyn ServiceModel) -> i64 {
        let Some(request) = self.pending[class].pop() else { return 0 };
        self.pending_count -= 1;
        let kind = self.pending[class].kind();
        let batch = match kind {
            TrafficKind::Interactive if !self.in_scan_order => self.scheduled,
            _ if self.is_by_interval => interval,
            _ => 0,
        };
        self.scheduled += 1;
        let scheduled = Scheduled { request, class, charged_ns: 0, paid };
        let charged_ns = self.schedule.insert(kind, batch, scheduled, model);
        self.allocation.charge(class, paid, charged_ns);
        charged_ns
    }

    /// Fills the scheduled queue from the shares. If it stays empty, fills it from unused shares: with one request, or, for
    /// the only class with requests, with the rest of the interval, which gives its order a choice.
    fn fill(&mut self, now_ns: u64, interval: u64, model: &dyn ServiceModel) {
        if self.pending_count == 0 {
            return;
        }
        for class in 0..self.pending.len() {
            while !self.pending[class].is_empty() && self.allocation.has_left(class) {
                self.schedule(class, Paid::Share, interval, model);
            }
        }
        if self.schedule.len() == 0 && self.pending_count > 0 {
            let waiting = (0..self.pending.len()).filter(|&class| !self.pending[class].is_empty());
            let alone = waiting.clone().count() == 1;
            if let Some(class) = self.allocation.next_for_extra(waiting) {
                let mut rest_ns = if alone { self.allocation.rest_ns(now_ns) } else { 1 };
                while rest_ns > 0 && !self.pending[class].is_empty() {
                    rest_ns -= self.schedule(class, Paid::Extra, interval, model).max(1);
                }
            }
        }
    }
}

impl Policy for Cello {
    fn arrive(&mut self, _: u64, request: Request, _: &dyn ServiceModel) {
        let class = usize::from(request.class).min(self.pending.len() - 1);
        self.pending[class].push(request, self.arrivals);
        self.arrivals += 1;
        self.pending_count += 1;
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        let interval = self.allocation.begin(now_ns);
        self.fill(now_ns, interval, model);
        // Most devices serve one request at a time: then this estimate is not needed.
        let free_ns = match self.last {
            Some(last) if !self.in_service.is_empty() => {
                let last_ns = self.estimate.ns(model, last.from_bytes, &last.request);
                last.free_ns.saturating_add(last_ns).max(now_ns)
            }
            _ => now_ns,
        };
        let from_bytes = model.head_bytes();
        let Some(scheduled) = self.schedule.take(free_ns, model) else { return Decision::Idle };
        self.last = Some(Dispatched { request: scheduled.request, free_ns, from_bytes });
        self.in_service.push(scheduled);
        Decision::Serve(scheduled.request)
    }

    fn complete(&mut self, now_ns: u64, request: &Request, begun_ns: u64) {
        let same = |scheduled: &Scheduled| {
            scheduled.request.tag == request.tag && scheduled.request.class == request.class
        };
        let Some(place) = self.in_service.iter().position(same) else { return };
        let scheduled = self.in_service.swap_remove(place);
        let took_ns = i64::try_from(now_ns.saturating_sub(begun_ns)).unwrap_or(i64::MAX);
        let correction_ns = took_ns.saturating_sub(scheduled.charged_ns);
        self.allocation.charge(scheduled.class, scheduled.paid, correction_ns);
    }

    fn waiting(&self) -> usize {
        self.pending_count + self.schedule.len()
    }
}
