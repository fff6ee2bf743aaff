//! Requests with deadlines: requests of contracts in order, and requests with deadlines of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::contracts::Member;
use super::slots::{Slot, Slots};
use crate::model::ServiceModel;
use crate::request::Request;

/// A contract with its waiting requests.
#[derive(Debug)]
struct Flow {
    slots: Slots,
    waiting: VecDeque<Waiting>,
    /// Slot of the first waiting request.
    first: Option<Slot>,
    /// Spare time of the first request: contract cost above its bound, if `spare` is set.
    spare_ns: Option<u64>,
    /// Part of the spare time lent to other requests.
    lent_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    request: Request,
    arrival: u64,
    arrived_ns: u64,
    cost_ns: u64,
}

/// A deadline, the number of the arrival, and the flow: the order of deadlines.
pub(super) type Key = (u64, u64, usize);

/// Basis of the service of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    due_ns: u64,
    /// Its flow and the spent cost of the contract, if any.
    spent: Option<(usize, u64)>,
}

impl Grant {
    /// No contract and no deadline.
    pub(super) const NONE: Grant = Grant { due_ns: u64::MAX, spent: None };
}

/// Requests with deadlines.
#[derive(Debug)]
pub(super) struct RealTime {
    flows: Vec<Flow>,
    /// First request of each flow, if released.
    released: BTreeSet<Key>,
    /// First request of each flow, if not released.
    future: BTreeSet<Key>,
    /// Release times of unreleased first requests.
    releases: BTreeSet<(u64, Key)>,
    /// Requests without a contract, by deadline and arrival, with their bounds.
    loose: BTreeMap<(u64, u64), (Request, u64)>,
    /// Whether an early request uses up its slot.
    spend_early: bool,
    /// Whether a contract belongs to a best-effort class.
    has_servers: bool,
    arrivals: u64,
    count: usize,
}

impl RealTime {
    pub(super) fn new(slots: Vec<Slots>, spend_early: bool) -> RealTime {
        let flow = |slots| Flow { slots, waiting: VecDeque::new(), first: None, spare_ns: None, lent_ns: 0 };
        RealTime {
            has_servers: slots.iter().any(Slots::is_server),
            flows: slots.into_iter().map(flow).collect(),
            released: BTreeSet::new(),
            future: BTreeSet::new(),
            releases: BTreeSet::new(),
            loose: BTreeMap::new(),
            spend_early,
            arrivals: 0,
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a request of a contract.
    pub(super) fn arrive(&mut self, now_ns: u64, request: Request, member: Member, cost_ns: u64) {
        let waiting = Waiting { request, arrival: self.arrivals, arrived_ns: now_ns, cost_ns };
        self.arrivals += 1;
        self.count += 1;
        self.flows[member.flow].waiting.push_back(waiting);
        if self.flows[member.flow].first.is_none() {
            self.place_first(member.flow, now_ns);
        }
    }

    /// Adds a request with its own deadline.
    pub(super) fn arrive_loose(&mut self, request: Request, model: &dyn ServiceModel) {
        self.loose.insert((request.due_ns(), self.arrivals), (request, worst_ns(model, &request)));
        self.arrivals += 1;
        self.count += 1;
    }

    /// Releases requests up to now.
    pub(super) fn release(&mut self, now_ns: u64) {
        while let Some((_, key)) =
            self.releases.first().copied().filter(|(release_ns, _)| *release_ns <= now_ns)
        {
            self.releases.pop_first();
            self.future.remove(&key);
            self.released.insert(key);
        }
    }

    pub(super) fn is_any_released(&self) -> bool {
        !self.released.is_empty() || !self.loose.is_empty()
    }

    /// Release time of the earliest released request.
    pub(super) fn first_release_ns(&self) -> Option<u64> {
        let of_flow = |key: &Key| self.flows[key.2].first.map(|slot| slot.release_ns);
        let loose = self.loose.values().map(|(request, _)| request.arrived_ns);
        self.released.iter().filter_map(of_flow).chain(loose).min()
    }

    /// Time of the next release.
    pub(super) fn next_release_ns(&self) -> Option<u64> {
        self.releases.first().map(|(release_ns, _)| *release_ns)
    }

    /// Unlent spare time of the released request with the earliest deadline; `None` without a contract.
    pub(super) fn spare_ns(&mut self, model: &dyn ServiceModel) -> Option<u64> {
        let (due_ns, arrival, flow) = self.released.first().copied()?;
        if self.loose.first_key_value().is_some_and(|(loose, _)| *loose < (due_ns, arrival)) {
            return None;
        }
        let flow = &mut self.flows[flow];
        let waiting = flow.waiting.front()?;
        let of_first = || waiting.cost_ns.saturating_sub(worst_ns(model, &waiting.request));
        let spare_ns = *flow.spare_ns.get_or_insert_with(of_first);
        Some(spare_ns.saturating_sub(flow.lent_ns))
    }

    /// Lends a part of that spare time.
    pub(super) fn lend(&mut self, ns: u64) {
        if let Some((_, _, flow)) = self.released.first() {
            self.flows[*flow].lent_ns = self.flows[*flow].lent_ns.saturating_add(ns);
        }
    }

    /// Removes the released request with the earliest deadline.
    pub(super) fn take_released(&mut self, now_ns: u64) -> Option<(Request, Grant)> {
        let loose = self.loose.first_key_value().map(|(key, _)| *key);
        let first = self.released.first().copied();
        let loose_is_first = match (loose, first) {
            (Some(loose), Some((due_ns, arrival, _))) => loose < (due_ns, arrival),
            (loose, _) => loose.is_some(),
        };
        if loose_is_first {
            let ((due_ns, _), (request, _)) = self.loose.pop_first()?;
            self.count -= 1;
            return Some((request, Grant { due_ns, spent: None }));
        }
        let key = first?;
        self.released.remove(&key);
        self.take_first(key.2, now_ns, true)
    }

    /// Whether a request can be served early.
    pub(super) fn is_any_early(&self) -> bool {
        !self.future.is_empty() || self.has_servers && !self.released.is_empty()
    }

    /// Requests that can be served early, in deadline order: unreleased requests, and released requests of best-effort classes,
    /// which a contract bounds but does not delay (thesis, section 6.5.4).
    pub(super) fn early(&self) -> impl Iterator<Item = (Key, &Request)> {
        let of_servers = if self.has_servers {
            self.released.iter()
        } else {
            std::collections::btree_set::Iter::default()
        };
        let mut of_servers = of_servers.filter(|key| self.flows[key.2].slots.is_server()).peekable();
        let mut future = self.future.iter().peekable();
        let next = move || match (future.peek(), of_servers.peek()) {
            (Some(a), Some(b)) if a <= b => future.next(),
            (_, Some(_)) => of_servers.next(),
            _ => future.next(),
        };
        std::iter::from_fn(next)
            .filter_map(|key| self.flows[key.2].waiting.front().map(|waiting| (*key, &waiting.request)))
    }

    /// Takes one of those.
    pub(super) fn take_early(&mut self, key: Key, now_ns: u64) -> Option<(Request, Grant)> {
        let slot = self.flows[key.2].first?;
        self.future.remove(&key);
        self.released.remove(&key);
        self.releases.remove(&(slot.release_ns, key));
        self.take_first(key.2, now_ns, self.spend_early)
    }

    /// Reports the service time of a request; a late contract is charged.
    pub(super) fn complete(&mut self, now_ns: u64, grant: &Grant, took_ns: u64, punish_percent: u64) {
        let Some((flow, cost_ns)) = grant.spent else { return };
        if now_ns > grant.due_ns {
            self.flows[flow].slots.punish(punish_percent);
        }
        if self.flows[flow].slots.settle(cost_ns, took_ns) {
            self.displace_first(flow);
            self.place_first(flow, now_ns);
        }
    }

    /// Latest start of service with which all released requests meet their deadlines at their costs; `None` without released
    /// requests. Thesis, section 6.4.2.
    pub(super) fn latest_start_ns(&self, now_ns: u64) -> Option<u64> {
        let mut dues: Vec<(u64, u64)> =
            self.loose.iter().map(|((due_ns, _), (_, cost_ns))| (*due_ns, *cost_ns)).collect();
        for (_, _, flow) in &self.released {
            let flow = &self.flows[*flow];
            // The time that the first request has lent is not available to it.
            let mut lent_ns = flow.lent_ns;
            let mut give = |slot: Slot, cost_ns: u64| {
                dues.push((slot.due_ns, cost_ns.saturating_sub(std::mem::take(&mut lent_ns))));
            };
            if let (1, Some(waiting), Some(slot)) = (flow.waiting.len(), flow.waiting.front(), flow.first) {
                give(slot, waiting.cost_ns);
                continue;
            }
            let mut slots = flow.slots.clone();
            for waiting in &flow.waiting {
                let slot = slots.next(waiting.arrived_ns, waiting.cost_ns);
                if slot.release_ns > now_ns {
                    break;
                }
                slots.spend(slot, waiting.cost_ns);
                give(slot, waiting.cost_ns);
            }
        }
        dues.sort_unstable();
        let start =
            |later_ns: u64, (due_ns, cost_ns): &(u64, u64)| later_ns.min(*due_ns).saturating_sub(*cost_ns);
        (!dues.is_empty()).then(|| dues.iter().rev().fold(u64::MAX, start))
    }

    fn take_first(&mut self, flow: usize, now_ns: u64, spend: bool) -> Option<(Request, Grant)> {
        let state = &mut self.flows[flow];
        let (waiting, slot) = (state.waiting.pop_front()?, state.first.take()?);
        if spend {
            state.slots.spend(slot, waiting.cost_ns);
        }
        (state.spare_ns, state.lent_ns) = (None, 0);
        self.count -= 1;
        self.place_first(flow, now_ns);
        let spent = spend.then_some((flow, waiting.cost_ns));
        Some((waiting.request, Grant { due_ns: slot.due_ns, spent }))
    }

    /// Assigns a slot to the first waiting request.
    fn place_first(&mut self, flow: usize, now_ns: u64) {
        let state = &mut self.flows[flow];
        state.first =
            state.waiting.front().map(|waiting| state.slots.next(waiting.arrived_ns, waiting.cost_ns));
        let (Some(slot), Some(waiting)) = (state.first, state.waiting.front()) else { return };
        let key = (slot.due_ns, waiting.arrival, flow);
        if slot.release_ns <= now_ns {
            self.released.insert(key);
        } else {
            self.future.insert(key);
            self.releases.insert((slot.release_ns, key));
        }
    }

    fn displace_first(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let (Some(slot), Some(waiting)) = (state.first.take(), state.waiting.front()) else { return };
        let key = (slot.due_ns, waiting.arrival, flow);
        self.released.remove(&key);
        self.future.remove(&key);
        self.releases.remove(&(slot.release_ns, key));
    }
}

/// Upper bound of a request's service time from any position of the arm.
pub(super) fn worst_ns(model: &dyn ServiceModel, request: &Request) -> u64 {
    let from = |from_bytes| model.bound_ns(from_bytes, request);
    from(0).max(from(model.capacity_bytes().saturating_sub(1)))
}
