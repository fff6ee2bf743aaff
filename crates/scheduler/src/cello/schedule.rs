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

/// The way of the arm in SCAN order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// It turns at the last request instead of beginning again at the lowest.
    turns: bool,
    up: bool,
}

impl Way {
    /// Upwards, and then from the lowest on.
    pub(super) const UPWARDS: Way = Way { turns: false, up: true };
    /// Up and down.
    pub(super) const BOTH: Way = Way { turns: true, up: true };

    /// Place of the next of `count` requests in offset order, of which those from `ahead` on are not below the arm.
    fn next(self, ahead: usize, count: usize) -> usize {
        match (self.up, ahead < count) {
            (true, true) => ahead,
            (true, false) if self.turns => count.saturating_sub(1),
            (true, false) => 0,
            // The nearest one below, or the lowest of all if none is below.
            (false, _) => ahead.saturating_sub(1),
        }
    }

    /// Position of an offset on the way of the arm.
    pub(super) fn rank(self, head_bytes: u64, offset_bytes: u64) -> (bool, u64) {
        let is_above = offset_bytes >= head_bytes;
        let value = if is_above || !self.turns { offset_bytes } else { u64::MAX - offset_bytes };
        (is_above != self.up, value)
    }

    /// The way after a request is taken.
    fn after(self, head_bytes: u64, request: &Request) -> Way {
        Way { up: !self.turns || request.offset_bytes >= head_bytes, ..self }
    }
}

/// Requests in SCAN order. Earlier batches go first: a request waits for no later batch.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// By batch, offset and arrival.
    waiting: Vec<(u64, u64, Scheduled)>,
}

impl Swept {
    /// Inserts a request; returns its estimated service time after its lower neighbour.
    pub(super) fn insert(
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

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Place of the next request, and the request.
    pub(super) fn next(&self, way: Way, head_bytes: u64) -> Option<(usize, Request)> {
        let &(first_batch, ..) = self.waiting.first()?;
        let before =
            |key: (u64, u64)| self.waiting.partition_point(|&(batch, offset, _)| (batch, offset) < key);
        let count = self.waiting.partition_point(|&(batch, ..)| batch == first_batch);
        let place = way.next(before((first_batch, head_bytes)), count);
        Some((place, self.waiting.get(place)?.2.request))
    }

    pub(super) fn take(&mut self, place: usize) -> Scheduled {
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

    /// Place of the next of the most urgent requests on the way of the arm.
    fn next(&self, way: Way, head_bytes: u64) -> Option<usize> {
        let first = self.queue.front()?;
        let key = (first.due_ns, head_bytes);
        let ahead =
            self.queue.partition_point(|timed| (timed.due_ns, timed.scheduled.request.offset_bytes) < key);
        let count = self.queue.partition_point(|timed| timed.due_ns == first.due_ns);
        Some(way.next(ahead, count))
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
    way: Way,
    interactive: Swept,
    real_time: RealTime,
    best_effort: Swept,
}

impl Schedule {
    pub(super) fn new(estimate: Estimate, deadline_batch_ns: u64, merged: bool, way: Way) -> Schedule {
        Schedule {
            estimate,
            merged,
            way,
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

    pub(super) fn len(&self) -> usize {
        self.interactive.len() + self.real_time.queue.len() + self.best_effort.len()
    }

    /// Removes the next request for a device that is free at `free_ns`.
    pub(super) fn take(&mut self, free_ns: u64, model: &dyn ServiceModel) -> Option<Scheduled> {
        let head_bytes = model.head_bytes();
        let taken = self.choose(free_ns, head_bytes, model)?;
        self.way = self.way.after(head_bytes, &taken.request);
        Some(taken)
    }

    fn choose(&mut self, free_ns: u64, head_bytes: u64, model: &dyn ServiceModel) -> Option<Scheduled> {
        if let Some((place, request)) = self.interactive.next(self.way, head_bytes)
            && !self.passes_real_time(head_bytes, &request)
            && self.has_slack(free_ns, &request, model)
        {
            return Some(self.interactive.take(place));
        }
        if let Some(place) = self.real_time.next(self.way, head_bytes) {
            // Those that the sweep passes over come later only if even so all are in time.
            let request = &self.real_time.queue[place].scheduled.request;
            let place = if place == 0 || self.has_slack(free_ns, request, model) { place } else { 0 };
            return self.real_time.take(place, self.estimate, model);
        }
        let (place, _) = self.best_effort.next(self.way, head_bytes)?;
        Some(self.best_effort.take(place))
    }

    /// Whether a real-time request is on the way to this one.
    fn passes_real_time(&self, head_bytes: u64, request: &Request) -> bool {
        let rank = |offset_bytes: u64| self.way.rank(head_bytes, offset_bytes);
        let next = self.real_time.next(self.way, head_bytes);
        let next = next.map(|place| &self.real_time.queue[place].scheduled.request);
        self.merged && next.is_some_and(|next| rank(next.offset_bytes) <= rank(request.offset_bytes))
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
