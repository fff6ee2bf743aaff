//! Scheduled queue, ordered by the class-specific schedulers.

use std::collections::VecDeque;

use super::Estimate;
use super::allocation::Paid;
use crate::model::ServiceModel;
use crate::request::{Request, TrafficKind};

/// A scheduled request with its charge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scheduled {
    pub request: Request,
    pub class: usize,
    pub charged_ns: i64,
    pub paid: Paid,
}

/// Requests in SCAN order, upwards from the arm and then from the lowest on. Earlier batches go first: a request waits for
/// no later batch.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// By batch, offset and arrival.
    waiting: Vec<(u64, u64, Scheduled)>,
}

impl Swept {
    /// Inserts a request; returns its estimated service time after its lower neighbour.
    fn insert(
        &mut self,
        batch: u64,
        mut scheduled: Scheduled,
        estimate: Estimate,
        model: &dyn ServiceModel,
    ) -> i64 {
        let request = scheduled.request;
        let key = (batch, request.offset_bytes);
        let place = self.waiting.partition_point(|&(batch, offset, _)| (batch, offset) <= key);
        let below = place.checked_sub(1).and_then(|below| self.waiting.get(below));
        let from_bytes = match below {
            Some((same, _, below)) if *same == batch => below.request.end_bytes(),
            _ => model.head_bytes(),
        };
        scheduled.charged_ns = estimate.signed_ns(model, from_bytes, &request);
        self.waiting.insert(place, (key.0, key.1, scheduled));
        scheduled.charged_ns
    }

    /// Place of the next request.
    fn next(&self, head_bytes: u64) -> Option<usize> {
        let &(first_batch, ..) = self.waiting.first()?;
        let key = (first_batch, head_bytes);
        let ahead = self.waiting.partition_point(|&(batch, offset, _)| (batch, offset) < key);
        let same = self.waiting.get(ahead).is_some_and(|&(batch, ..)| batch == first_batch);
        Some(if same { ahead } else { 0 })
    }

    fn take(&mut self, place: usize) -> Scheduled {
        self.waiting.remove(place).2
    }
}

/// A real-time request and values that depend on the requests behind it.
#[derive(Debug, Clone, Copy)]
struct Timed {
    due_ns: u64,
    /// Estimated service time after the request before it; unused for the first.
    hop_ns: i64,
    /// Latest completion with which it and all requests behind it meet their deadlines.
    latest_ns: i64,
    scheduled: Scheduled,
}

/// Real-time requests in SCAN-EDF order.
#[derive(Debug, Default)]
struct RealTime {
    queue: VecDeque<Timed>,
}

impl RealTime {
    /// Inserts a request; returns its estimated service time after the one before it.
    fn insert(
        &mut self,
        batch_ns: u64,
        mut scheduled: Scheduled,
        estimate: Estimate,
        model: &dyn ServiceModel,
    ) -> i64 {
        let request = scheduled.request;
        let due_ns = request.due_ns() / batch_ns * batch_ns;
        let key = (due_ns, request.offset_bytes);
        let place =
            self.queue.partition_point(|timed| (timed.due_ns, timed.scheduled.request.offset_bytes) <= key);
        let before = place.checked_sub(1).and_then(|before| self.queue.get(before));
        let from_bytes = before.map_or(model.head_bytes(), |before| before.scheduled.request.end_bytes());
        let hop_ns = estimate.signed_ns(model, from_bytes, &request);
        scheduled.charged_ns = hop_ns;
        self.queue.insert(place, Timed { due_ns, hop_ns, latest_ns: i64::MAX, scheduled });
        if let Some(behind) = self.queue.get_mut(place + 1) {
            behind.hop_ns = estimate.signed_ns(model, request.end_bytes(), &behind.scheduled.request);
        }
        self.update_latest(place);
        hop_ns
    }

    /// Next of the most urgent requests: upwards from the arm, or from the lowest on.
    fn next(&self, head_bytes: u64) -> Option<usize> {
        let first = self.queue.front()?;
        let key = (first.due_ns, head_bytes);
        let ahead =
            self.queue.partition_point(|timed| (timed.due_ns, timed.scheduled.request.offset_bytes) < key);
        let as_urgent = self.queue.get(ahead).is_some_and(|timed| timed.due_ns == first.due_ns);
        Some(if as_urgent { ahead } else { 0 })
    }

    fn take(&mut self, place: usize, estimate: Estimate, model: &dyn ServiceModel) -> Option<Scheduled> {
        let taken = self.queue.remove(place)?;
        if let Some(before) = place.checked_sub(1) {
            let from_bytes = self.queue[before].scheduled.request.end_bytes();
            if let Some(behind) = self.queue.get_mut(place) {
                behind.hop_ns = estimate.signed_ns(model, from_bytes, &behind.scheduled.request);
            }
            self.update_latest(before);
        }
        Some(taken.scheduled)
    }

    /// Updates values from a changed place towards the front until nothing changes.
    fn update_latest(&mut self, changed: usize) {
        for place in (0..=changed).rev() {
            let behind_ns = self
                .queue
                .get(place + 1)
                .map_or(i64::MAX, |behind| behind.latest_ns.saturating_sub(behind.hop_ns));
            let timed = &mut self.queue[place];
            let due_ns = i64::try_from(timed.scheduled.request.due_ns()).unwrap_or(i64::MAX);
            let latest_ns = due_ns.min(behind_ns);
            if place < changed && timed.latest_ns == latest_ns {
                return;
            }
            timed.latest_ns = latest_ns;
        }
    }
}

/// The scheduled queue: interactive requests within the slack of real-time ones, real-time requests, then best-effort
/// requests.
#[derive(Debug)]
pub(super) struct Schedule {
    estimate: Estimate,
    deadline_batch_ns: u64,
    /// Whether real-time requests are served when the arm passes them on the way to an interactive one.
    merged: bool,
    interactive: Swept,
    real_time: RealTime,
    best_effort: Swept,
}

impl Schedule {
    pub(super) fn new(estimate: Estimate, deadline_batch_ns: u64, merged: bool) -> Schedule {
        Schedule {
            estimate,
            merged,
            deadline_batch_ns: deadline_batch_ns.max(1),
            interactive: Swept::default(),
            real_time: RealTime::default(),
            best_effort: Swept::default(),
        }
    }

    /// Inserts a request in the queue of its traffic kind; earlier batches go first. Returns its estimated service time.
    pub(super) fn insert(
        &mut self,
        kind: TrafficKind,
        batch: u64,
        scheduled: Scheduled,
        model: &dyn ServiceModel,
    ) -> i64 {
        match kind {
            TrafficKind::Interactive => self.interactive.insert(batch, scheduled, self.estimate, model),
            TrafficKind::RealTime => {
                self.real_time.insert(self.deadline_batch_ns, scheduled, self.estimate, model)
            }
            TrafficKind::BestEffort => self.best_effort.insert(batch, scheduled, self.estimate, model),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.interactive.waiting.len() + self.real_time.queue.len() + self.best_effort.waiting.len()
    }

    /// Removes the next request for a device that is free at `free_ns`.
    pub(super) fn take(&mut self, free_ns: u64, model: &dyn ServiceModel) -> Option<Scheduled> {
        let head_bytes = model.head_bytes();
        if let Some(place) = self.interactive.next(head_bytes) {
            let request = &self.interactive.waiting[place].2.request;
            if !self.passes_real_time(head_bytes, request) && self.has_slack(free_ns, request, model) {
                return Some(self.interactive.take(place));
            }
        }
        if let Some(place) = self.real_time.next(head_bytes) {
            // Those below the arm come later only if even so all are in time.
            let request = &self.real_time.queue[place].scheduled.request;
            let place = if place == 0 || self.has_slack(free_ns, request, model) { place } else { 0 };
            return self.real_time.take(place, self.estimate, model);
        }
        let place = self.best_effort.next(head_bytes)?;
        Some(self.best_effort.take(place))
    }

    /// Whether a real-time request is on the way upwards to this one.
    fn passes_real_time(&self, head_bytes: u64, request: &Request) -> bool {
        let way = |offset_bytes: u64| (offset_bytes < head_bytes, offset_bytes);
        let next =
            self.real_time.next(head_bytes).map(|place| &self.real_time.queue[place].scheduled.request);
        self.merged && next.is_some_and(|next| way(next.offset_bytes) <= way(request.offset_bytes))
    }

    /// Whether all real-time requests meet their deadlines, by the estimates, if this request is served before them. One of
    /// them is counted twice.
    fn has_slack(&self, free_ns: u64, request: &Request, model: &dyn ServiceModel) -> bool {
        let Some(first) = self.real_time.queue.front() else { return true };
        let own_ns = self.estimate.ns(model, model.head_bytes(), request);
        let first_ns = self.estimate.ns(model, request.end_bytes(), &first.scheduled.request);
        let done_ns = free_ns.saturating_add(own_ns).saturating_add(first_ns);
        i64::try_from(done_ns).is_ok_and(|done_ns| done_ns <= first.latest_ns)
    }
}
