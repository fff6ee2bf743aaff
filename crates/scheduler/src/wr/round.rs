//! Decisions of the round scheduler, after Fig. 2 of the paper.

use std::collections::VecDeque;

use super::Subgroup;
use super::bucket::Interactive;
use super::groups::{Device, Groups, insert_by_offset};
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Request, TrafficKind};

/// Shares of a round, in ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    pub round_ns: u64,
    pub periodic_ns: u64,
    pub aperiodic_ns: u64,
}

/// Which requests that arrive within a round join its subgroups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    pub joins_periodic: bool,
    pub joins_aperiodic: bool,
}

/// State in Fig. 2 between two subgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// "pick first interactive request if any; combine with one of the remaining subgroups?"
    Combine,
    /// "while (estimated service time < slack_time) service waiting interactive requests; serve the closest subgroup"
    Slack,
    /// "while (slack_time > 0) combine aperiodic1 requests into existing subgroups"
    Late,
    /// "if (all periodic requests served) continue serving interactive & aperiodic requests until end of round"
    Rest,
}

#[derive(Debug)]
pub(super) struct WrRound {
    kinds: Vec<TrafficKind>,
    shares: Shares,
    subgroup: Subgroup,
    late: Late,
    bound: bool,
    round: Option<u64>,
    step: Step,
    /// Remaining subgroups, and the subgroup in service in service order.
    groups: Groups,
    current: VecDeque<Request>,
    /// Periodic requests in `groups` and `current`.
    periodic_left: usize,
    /// Periodic requests that came late or exceed the share of this round.
    periodic: VecDeque<Request>,
    interactive: Interactive,
    /// First queue: guaranteed, but arrived after the start of the round.
    aperiodic1: VecDeque<Request>,
    /// Second queue: not guaranteed.
    aperiodic2: VecDeque<Request>,
    /// Rest of the shares of this round.
    periodic_left_ns: u64,
    aperiodic_left_ns: u64,
    in_service: usize,
    free_ns: u64,
}

impl WrRound {
    pub(super) fn new(
        kinds: Vec<TrafficKind>,
        shares: Shares,
        subgroup: Subgroup,
        interactive: Interactive,
        late: Late,
        bound: bool,
    ) -> WrRound {
        WrRound {
            kinds,
            shares,
            subgroup,
            late,
            bound,
            round: None,
            step: Step::Rest,
            groups: Groups::default(),
            current: VecDeque::new(),
            periodic_left: 0,
            periodic: VecDeque::new(),
            interactive,
            aperiodic1: VecDeque::new(),
            aperiodic2: VecDeque::new(),
            periodic_left_ns: shares.periodic_ns,
            aperiodic_left_ns: shares.aperiodic_ns,
            in_service: 0,
            free_ns: 0,
        }
    }

    fn kind(&self, request: &Request) -> TrafficKind {
        self.kinds.get(usize::from(request.class)).copied().unwrap_or(TrafficKind::BestEffort)
    }

    fn end_ns(&self) -> u64 {
        self.round.map_or(0, |round| round.saturating_add(1).saturating_mul(self.shares.round_ns))
    }

    /// Time until the end of the round from when the device is free.
    fn time_ns(&self) -> u64 {
        self.end_ns().saturating_sub(self.free_ns)
    }

    fn group_size(&self, requests: usize) -> usize {
        match self.subgroup {
            Subgroup::Requests(size) => size,
            Subgroup::Part(part) => (requests as f64 * part).ceil() as usize,
        }
    }

    /// "Combine periodic and aperiodic1 requests into SCAN order; break the requests into subgroups."
    fn begin(&mut self, round: u64, device: Device) {
        self.round = Some(round);
        let unserved: Vec<Request> =
            self.current.drain(..).chain(std::mem::take(&mut self.groups).drain()).collect();
        let mut aperiodic: Vec<Request> = self.aperiodic1.drain(..).collect();
        let mut periodic = Vec::new();
        for request in unserved {
            match self.kind(&request) {
                TrafficKind::RealTime => periodic.push(request),
                TrafficKind::Interactive => self.interactive.push_front(request),
                TrafficKind::BestEffort => aperiodic.push(request),
            }
        }
        put_before(&mut self.periodic, periodic);
        put_before(&mut self.aperiodic2, aperiodic);

        let time_ns = self.time_ns();
        let all = |_: &Request| true;
        let (mut merged, used_ns) = take_share(&mut self.periodic, self.shares.periodic_ns, device, all);
        self.periodic_left_ns = self.shares.periodic_ns.saturating_sub(used_ns);
        self.periodic_left = merged.len();
        let fits = |request: &Request| {
            let mut with = merged.clone();
            insert_by_offset(&mut with, *request);
            let fits = device.sweep_ns(device.head_bytes(), &with) <= time_ns;
            if fits {
                merged = with;
            }
            fits
        };
        let (_, used_ns) = take_share(&mut self.aperiodic2, self.shares.aperiodic_ns, device, fits);
        self.aperiodic_left_ns = self.shares.aperiodic_ns.saturating_sub(used_ns);
        self.groups = Groups::new(&merged, self.group_size(merged.len()));
        self.step = Step::Combine;
    }

    /// Adds late periodic requests to the round if they fit; others wait for the next round.
    fn join_late_periodic(&mut self, device: Device) {
        if !self.late.joins_periodic {
            return;
        }
        while let Some(request) = self.periodic.front().copied().filter(|_| self.periodic_left_ns > 0) {
            let before_ns = self.groups.sweep_ns(device, device.head_bytes());
            let share_ns = before_ns.saturating_add(self.periodic_left_ns);
            if !self.groups.merge(device, request, self.time_ns().min(share_ns)) {
                return;
            }
            let after_ns = self.groups.sweep_ns(device, device.head_bytes());
            self.periodic_left_ns = self.periodic_left_ns.saturating_sub(after_ns.saturating_sub(before_ns));
            self.periodic_left += 1;
            self.periodic.pop_front();
        }
    }

    fn join_late_aperiodic(&mut self, device: Device) {
        if !self.late.joins_aperiodic {
            return;
        }
        while let Some(request) = self.aperiodic1.front().copied() {
            if !self.groups.merge(device, request, self.time_ns()) {
                return;
            }
            self.aperiodic1.pop_front();
        }
    }

    /// Whether the first interactive request fits before the remaining subgroups.
    fn interactive_in_slack(&self, device: Device) -> bool {
        self.interactive.front().is_some_and(|request| {
            let own_ns = device.ns(device.head_bytes(), request);
            let rest_ns = self.groups.sweep_ns(device, request.end_bytes());
            self.groups.is_empty() || own_ns.saturating_add(rest_ns) < self.time_ns()
        })
    }

    /// Next request when no periodic request is left in the round; `None` if a subgroup is in service or nothing waits.
    fn rest(&mut self, device: Device) -> Option<Request> {
        if self.interactive_in_slack(device) {
            return self.interactive.pop();
        }
        if !self.groups.is_empty() {
            self.current = self.groups.take_closest(device, self.time_ns()).into();
            return None;
        }
        if let Some(request) = self.aperiodic1.pop_front() {
            return Some(request);
        }
        let size = self.group_size(self.aperiodic2.len()).min(self.aperiodic2.len());
        let mut batch: Vec<Request> = self.aperiodic2.drain(..size).collect();
        if batch.is_empty() {
            return self.periodic.pop_front();
        }
        batch.sort_by_key(|request| request.offset_bytes);
        self.current = Groups::new(&batch, size).take_closest(device, u64::MAX).into();
        None
    }

    /// Returns a request chosen by `rest` that no longer fits in this round.
    fn put_back(&mut self, request: Request) {
        match self.kind(&request) {
            TrafficKind::RealTime => self.periodic.push_front(request),
            TrafficKind::Interactive => self.interactive.push_front(request),
            TrafficKind::BestEffort => self.current.push_front(request),
        }
    }

    /// Whether a request may begin after the round's periodic ones: it may extend into the next round if it leaves the share
    /// of periodic requests there. A request longer than a round is allowed, or it would never begin.
    fn may_last(&self, device: Device, request: &Request) -> bool {
        let own_ns = device.ns(device.head_bytes(), request);
        let spare_ns = self.shares.round_ns - self.shares.periodic_ns;
        own_ns <= self.time_ns().saturating_add(spare_ns) || own_ns > self.shares.round_ns
    }

    fn choose(&mut self, device: Device) -> Option<Request> {
        loop {
            if let Some(request) = self.current.pop_front() {
                return Some(request);
            }
            match self.step {
                Step::Combine => {
                    self.join_late_periodic(device);
                    let merged = self
                        .interactive
                        .front()
                        .copied()
                        .and_then(|request| self.groups.take_merged(device, &request, self.time_ns()));
                    self.step = match merged {
                        _ if self.periodic_left == 0 && merged.is_none() => Step::Rest,
                        Some(merged) => {
                            self.interactive.pop();
                            self.current = merged.into();
                            Step::Late
                        }
                        None => Step::Slack,
                    };
                }
                Step::Slack => {
                    if self.interactive_in_slack(device) {
                        return self.interactive.pop();
                    }
                    self.current = self.groups.take_closest(device, self.time_ns()).into();
                    self.step = Step::Late;
                }
                Step::Late => {
                    self.join_late_aperiodic(device);
                    self.step = if self.periodic_left == 0 { Step::Rest } else { Step::Combine };
                }
                Step::Rest => {
                    self.join_late_periodic(device);
                    if self.periodic_left > 0 {
                        self.step = Step::Combine;
                        continue;
                    }
                    let request = self.rest(device);
                    if request.is_some() || self.current.is_empty() {
                        return request;
                    }
                }
            }
        }
    }
}

/// Inserts requests at the front of a queue, in order of arrival.
fn put_before(queue: &mut VecDeque<Request>, mut requests: Vec<Request>) {
    requests.sort_by_key(|request| request.arrived_ns);
    for request in requests.into_iter().rev() {
        queue.push_front(request);
    }
}

/// Removes requests from the front of a queue that one sweep can serve within a time; returns the time of the sweep. The
/// first one is always removed. The first further request that does not fit, or is not accepted, ends the selection.
fn take_share(
    queue: &mut VecDeque<Request>,
    share_ns: u64,
    device: Device,
    mut wanted: impl FnMut(&Request) -> bool,
) -> (Vec<Request>, u64) {
    let (mut taken, mut used_ns) = (Vec::new(), 0);
    while let Some(request) = queue.front().copied().filter(|_| share_ns > 0) {
        let mut with = taken.clone();
        insert_by_offset(&mut with, request);
        let sweep_ns = device.sweep_ns(device.head_bytes(), &with);
        if (sweep_ns > share_ns && !taken.is_empty()) || !wanted(&request) {
            break;
        }
        (taken, used_ns) = (with, sweep_ns);
        queue.pop_front();
    }
    (taken, used_ns)
}

impl Policy for WrRound {
    fn arrive(&mut self, _: u64, request: Request, model: &dyn ServiceModel) {
        match self.kind(&request) {
            TrafficKind::RealTime => self.periodic.push_back(request),
            TrafficKind::Interactive => self.interactive.push(request),
            TrafficKind::BestEffort => {
                let own_ns = Device { model, bound: self.bound }.ns(model.head_bytes(), &request);
                match self.aperiodic_left_ns.checked_sub(own_ns) {
                    Some(left_ns) if self.aperiodic2.is_empty() => {
                        self.aperiodic_left_ns = left_ns;
                        self.aperiodic1.push_back(request);
                    }
                    _ => self.aperiodic2.push_back(request),
                }
            }
        }
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        let device = Device { model, bound: self.bound };
        self.free_ns = if self.in_service == 0 { now_ns } else { self.free_ns.max(now_ns) };
        self.interactive.update(now_ns);
        let round = now_ns / self.shares.round_ns;
        if self.round.is_none_or(|known| known < round) {
            self.begin(round, device);
        }
        let Some(request) = self.choose(device) else {
            return self
                .interactive
                .next_ns()
                .map_or(Decision::Idle, |ns| Decision::WaitUntil(ns.max(now_ns.saturating_add(1))));
        };
        if self.periodic_left == 0 && !self.may_last(device, &request) {
            self.put_back(request);
            return Decision::WaitUntil(self.end_ns());
        }
        let guaranteed = self.kind(&request) == TrafficKind::RealTime && self.periodic_left > 0;
        self.periodic_left -= usize::from(guaranteed);
        self.in_service += 1;
        self.free_ns = self.free_ns.saturating_add(device.ns(device.head_bytes(), &request));
        Decision::Serve(request)
    }

    fn complete(&mut self, _: u64, _: &Request, _: u64) {
        self.in_service = self.in_service.saturating_sub(1);
    }

    fn waiting(&self) -> usize {
        let queues = [&self.current, &self.periodic, &self.aperiodic1, &self.aperiodic2];
        self.groups.iter().count()
            + self.interactive.len()
            + queues.iter().map(|queue| queue.len()).sum::<usize>()
    }
}
