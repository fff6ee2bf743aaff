//! Scheduled queue with places assigned at insertion, as in the papers (`slack=insertion`).
//!
//! A request gets its place when it is moved to the scheduled queue, with the time and the position of the arm at that moment,
//! and the queue is served from its head. An interactive request goes before the first real-time request that, with all
//! behind it, remains in time; a real-time request takes its place in SCAN-EDF order, and interactive requests that its
//! arrival leaves without slack move behind it.

use std::collections::VecDeque;

use super::Estimate;
use super::schedule::{Scheduled, Swept, Way};
use crate::model::ServiceModel;
use crate::request::{Request, TrafficKind};

/// A real-time or interactive request in its place.
#[derive(Debug, Clone, Copy)]
struct Entry {
    scheduled: Scheduled,
    /// Step of the deadline of a real-time request; `None` for an interactive one.
    due_step_ns: Option<u64>,
    /// Batch of an interactive request.
    batch: u64,
    /// Position of the arm before it, and the estimate from there: estimates depend on nothing else, and most places keep
    /// the request before them.
    hop: Option<(u64, u64)>,
}

impl Entry {
    /// Estimated service time with the arm at `from_bytes`.
    fn hop_ns(&mut self, from_bytes: u64, estimate: Estimate, model: &dyn ServiceModel) -> u64 {
        match self.hop {
            Some((known_bytes, hop_ns)) if known_bytes == from_bytes => hop_ns,
            _ => {
                let hop_ns = estimate.ns(model, from_bytes, &self.scheduled.request);
                self.hop = Some((from_bytes, hop_ns));
                hop_ns
            }
        }
    }
}

/// The scheduled queue.
#[derive(Debug)]
pub(super) struct Placed {
    estimate: Estimate,
    deadline_batch_ns: u64,
    in_scan_order: bool,
    queue: VecDeque<Entry>,
    /// Interactive requests without a place, in order.
    unplaced: Vec<Entry>,
    best_effort: Swept,
    times: Times,
}

/// Estimated times of the queue, by place, computed for each interactive request. Kept to reuse the allocations.
#[derive(Debug, Default)]
struct Times {
    /// End of the service before it and the position of the arm then; one more than places.
    before: Vec<(u64, u64)>,
    /// Its own service.
    hops_ns: Vec<u64>,
    /// Latest completion with which a request and all behind it are in time; no limit behind the last real-time request.
    latest_ns: Vec<u64>,
}

impl Placed {
    pub(super) fn new(estimate: Estimate, deadline_batch_ns: u64, in_scan_order: bool) -> Placed {
        Placed {
            estimate,
            deadline_batch_ns: deadline_batch_ns.max(1),
            in_scan_order,
            queue: VecDeque::new(),
            unplaced: Vec::new(),
            best_effort: Swept::default(),
            times: Times::default(),
        }
    }

    /// Inserts a request; returns its estimated service time.
    pub(super) fn insert(
        &mut self,
        kind: TrafficKind,
        batch: u64,
        mut scheduled: Scheduled,
        model: &dyn ServiceModel,
    ) -> i64 {
        let request = scheduled.request;
        let due_step_ns = match kind {
            TrafficKind::BestEffort => {
                return self.best_effort.insert(batch, scheduled, self.estimate, model);
            }
            TrafficKind::Interactive => None,
            TrafficKind::RealTime => Some(request.due_ns() / self.deadline_batch_ns * self.deadline_batch_ns),
        };
        let key = |entry: &Entry| (entry.due_step_ns, entry.scheduled.request.offset_bytes);
        let mut place = self.queue.len();
        if due_step_ns.is_some() {
            if self.queue.iter().any(|entry| entry.due_step_ns.is_none()) {
                let (interactive, real_time): (Vec<Entry>, Vec<Entry>) =
                    self.queue.drain(..).partition(|entry| entry.due_step_ns.is_none());
                self.unplaced.splice(..0, interactive);
                self.queue.extend(real_time);
            }
            place = self.queue.partition_point(|entry| key(entry) <= (due_step_ns, request.offset_bytes));
        }
        let before = place.checked_sub(1).map(|before| self.queue[before].scheduled.request);
        let from_bytes = before.map_or(model.head_bytes(), |before| before.end_bytes());
        let hop_ns = self.estimate.ns(model, from_bytes, &request);
        scheduled.charged_ns = i64::try_from(hop_ns).unwrap_or(i64::MAX);
        let entry = Entry { scheduled, due_step_ns, batch, hop: Some((from_bytes, hop_ns)) };
        match due_step_ns {
            Some(_) => self.queue.insert(place, entry),
            None => self.unplaced.push(entry),
        }
        scheduled.charged_ns
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.unplaced.len() + self.best_effort.len()
    }

    /// Removes the first request, after all have a place, for a device that is free at `free_ns`.
    pub(super) fn take(&mut self, free_ns: u64, model: &dyn ServiceModel) -> Option<Scheduled> {
        let mut unplaced = std::mem::take(&mut self.unplaced);
        for entry in unplaced.drain(..) {
            let place = self.place(&entry, free_ns, model);
            self.queue.insert(place, entry);
        }
        self.unplaced = unplaced;
        match self.queue.pop_front() {
            Some(first) => Some(first.scheduled),
            None => {
                let (place, _) = self.best_effort.next(Way::UPWARDS, model.head_bytes())?;
                Some(self.best_effort.take(place))
            }
        }
    }

    /// Earliest place of an interactive request at which all real-time requests behind it are in time, by the estimates.
    fn place(&mut self, new: &Entry, free_ns: u64, model: &dyn ServiceModel) -> usize {
        let request = new.scheduled.request;
        let head_bytes = model.head_bytes();
        let count = self.queue.len();
        if count == 0 {
            return 0;
        }
        let Times { before, hops_ns, latest_ns } = &mut self.times;
        before.clear();
        hops_ns.clear();
        before.push((free_ns, head_bytes));
        for (place, entry) in self.queue.iter_mut().enumerate() {
            let (done_ns, from_bytes) = before[place];
            let hop_ns = entry.hop_ns(from_bytes, self.estimate, model);
            hops_ns.push(hop_ns);
            before.push((done_ns.saturating_add(hop_ns), entry.scheduled.request.end_bytes()));
        }
        latest_ns.clear();
        latest_ns.resize(count, u64::MAX);
        for (place, entry) in self.queue.iter().enumerate().rev() {
            let behind_ns = match latest_ns.get(place + 1) {
                None | Some(&u64::MAX) => u64::MAX,
                Some(latest_ns) => latest_ns.saturating_sub(hops_ns[place + 1]),
            };
            let own_ns = entry.due_step_ns.map_or(u64::MAX, |_| entry.scheduled.request.due_ns());
            latest_ns[place] = own_ns.min(behind_ns);
        }
        let fits = |place: usize| {
            let (Some(next), (done_ns, from_bytes)) = (self.queue.get(place), before[place]) else {
                return true;
            };
            // Estimates are needed only if a real-time request is behind it that is in time without it.
            if latest_ns[place] == u64::MAX {
                return true;
            }
            if done_ns > latest_ns[place] {
                return false;
            }
            let own_ns = self.estimate.ns(model, from_bytes, &request);
            let next_ns = self.estimate.ns(model, request.end_bytes(), &next.scheduled.request);
            done_ns.saturating_add(own_ns).saturating_add(next_ns) <= latest_ns[place]
        };
        // Interactive requests that stay ahead of it: all, or those of earlier batches.
        let stays =
            |entry: &Entry| entry.due_step_ns.is_none() && (!self.in_scan_order || entry.batch < new.batch);
        let first = self.queue.iter().rposition(stays).map_or(0, |last| last + 1);
        let mut found = (first..count).find(|&place| fits(place)).unwrap_or(count);
        // Behind those of its batch that the arm passes first, as far as the real-time requests allow that way, too.
        let rank = |request: &Request| Way::UPWARDS.rank(head_bytes, request.offset_bytes);
        let goes_ahead = |entry: &Entry| {
            entry.due_step_ns.is_none()
                && entry.batch == new.batch
                && rank(&entry.scheduled.request) <= rank(&request)
        };
        let passed =
            self.queue.iter().skip(found).take_while(|entry| self.in_scan_order && goes_ahead(entry));
        for place in found + 1..=found + passed.count() {
            found = if fits(place) { place } else { found };
        }
        found
    }
}
