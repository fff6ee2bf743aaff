//! Common part of the schedulers with contracts: requests by traffic kind, and the one in service.

use super::best_effort::BestEffort;
use super::contracts::{Admitted, Contracts};
use super::real_time::{Grant, Key, RealTime, worst_ns};
use crate::model::ServiceModel;
use crate::policy::Decision;
use crate::request::{Class, ClassId, Request, TrafficKind};
use crate::settings::{SettingError, Settings};

pub(super) const EARLY: (&str, &str) = (
    "early",
    "an early request, served before its release. keep: the next request gets its slot; spend: the slot is used up; default \
     keep",
);

pub(super) const LONG: (&str, &str) = (
    "long",
    "a stream's request whose bound exceeds the cost of its contract. trust: served as part of the contract; best-effort: \
     served as best effort; default trust",
);

pub(super) const ESTIMATE: (&str, &str) = (
    "estimate",
    "service time of requests ahead of released ones. bound: with a whole revolution; expected: with half a revolution, \
     without guarantees; default bound",
);

pub(super) const SPARE: (&str, &str) = (
    "spare",
    "unused part of a contract's cost, because a request lies in a fast zone. leave: unused; fill: unreleased and \
     best-effort requests that fit are served first; default leave",
);

pub(super) const OVERSIZE: (&str, &str) = (
    "oversize",
    "an unreleased or best-effort request that takes longer than ΔL. skip: passed over; block: it blocks all behind it in its \
     queue, as the thesis's FCFS queue reads (section 6.3.2); default skip",
);

/// Request in the device.
#[derive(Debug)]
struct InService {
    tag: u64,
    class: ClassId,
    grant: Grant,
    is_best_effort: bool,
    /// It is not released, or best effort.
    extra: Option<Extra>,
    begun_ns: u64,
}

/// Service of an unreleased or best-effort request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extra {
    /// Others were released when it was begun.
    pub(super) was_ahead: bool,
    /// It is served before one of them, at its cost.
    pub(super) is_lent: bool,
    pub(super) estimate_ns: u64,
}

/// Requests that wait, and the one in service.
#[derive(Debug)]
pub(super) struct Core {
    contracts: Contracts,
    pub(super) real_time: RealTime,
    best_effort: BestEffort,
    /// By class, whether requests of no contract are served by their own deadlines.
    by_deadline: Vec<bool>,
    trusts_cost: bool,
    by_slices: bool,
    expected: bool,
    fills_spare: bool,
    /// Whether a request that never fits blocks those behind it.
    blocks: bool,
    punish_percent: u64,
    in_service: Option<InService>,
}

/// Differences between the schedulers in the classification of arrivals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Intake {
    /// Requests of real-time classes without a contract are served by their own deadlines, if they have some; otherwise
    /// they are best effort.
    pub(super) loose: bool,
    /// Contracts are slices; slices of late requests are cut by a percentage.
    pub(super) by_slices: bool,
    pub(super) punish_percent: u64,
}

impl Core {
    pub(super) fn new(
        classes: &[Class],
        settings: &Settings,
        (contracts, slots, _): Admitted,
        intake: Intake,
    ) -> Result<Core, SettingError> {
        let spend_early = settings.word("early", &["keep", "spend"])? == "spend";
        let by_deadline = |class: &Class| intake.loose && class.kind == TrafficKind::RealTime;
        Ok(Core {
            contracts,
            real_time: RealTime::new(slots, spend_early),
            best_effort: BestEffort::new(classes, settings)?,
            by_deadline: classes.iter().map(by_deadline).collect(),
            trusts_cost: settings.word("long", &["trust", "best-effort"])? == "trust",
            by_slices: intake.by_slices,
            expected: settings.word("estimate", &["bound", "expected"])? == "expected",
            fills_spare: settings.word("spare", &["leave", "fill"])? == "fill",
            blocks: settings.word("oversize", &["skip", "block"])? == "block",
            punish_percent: intake.punish_percent,
            in_service: None,
        })
    }

    pub(super) fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel) {
        let Some(member) = self.contracts.member(&request) else {
            let by_deadline = self.by_deadline.get(usize::from(request.class)).copied().unwrap_or(false);
            if by_deadline && request.deadline_ns.is_some() {
                self.real_time.arrive_loose(request, model);
            } else {
                self.best_effort.push(request);
            }
            return;
        };
        let cost_ns = if member.is_server { worst_ns(model, &request) } else { member.cost_ns };
        let is_checked = !self.by_slices && (member.is_server || !self.trusts_cost);
        if is_checked && worst_ns(model, &request) > member.cost_ns {
            self.best_effort.push(request);
        } else {
            self.real_time.arrive(now_ns, request, member, cost_ns);
        }
    }

    /// The decision if the device is busy; otherwise releases due requests.
    pub(super) fn is_busy(&mut self, now_ns: u64) -> Option<Decision> {
        if self.in_service.is_some() {
            return Some(if self.waiting() == 0 { Decision::Idle } else { Decision::UNTIL_COMPLETION });
        }
        self.real_time.release(now_ns);
        None
    }

    /// Begins the released request with the earliest deadline.
    pub(super) fn begin_released(&mut self, now_ns: u64) -> Option<Decision> {
        let (request, grant) = self.real_time.take_released(now_ns)?;
        self.in_service = Some(InService {
            tag: request.tag,
            class: request.class,
            grant,
            is_best_effort: false,
            extra: None,
            begun_ns: now_ns,
        });
        Some(Decision::Serve(request))
    }

    /// Like [`Core::begin_extra`], within the unused part of the next released request's contract (thesis, section
    /// 6.5.2). For others the two are one request of that contract: a request that becomes the next one between them
    /// waits for less than its cost.
    pub(super) fn begin_in_spare(
        &mut self,
        now_ns: u64,
        model: &dyn ServiceModel,
        most_ns: u64,
    ) -> Option<Decision> {
        if !self.fills_spare || self.best_effort.len() == 0 && self.real_time.next_release_ns().is_none() {
            return None;
        }
        let spare_ns = self.real_time.spare_ns(model).filter(|spare_ns| *spare_ns > 0)?;
        let decision = self.begin_extra(now_ns, model, spare_ns, most_ns)?;
        let extra = self.in_service.as_mut()?.extra.as_mut()?;
        extra.is_lent = true;
        self.real_time.lend(extra.estimate_ns);
        Some(decision)
    }

    /// Begins something that is not released or of a best-effort class's contract, the earliest deadline first, or best effort
    /// without one, if it takes at most `limit_ns`.
    /// What takes more than `most_ns` is passed over, unless it blocks; for what takes more than `limit_ns` the others wait.
    pub(super) fn begin_extra(
        &mut self,
        now_ns: u64,
        model: &dyn ServiceModel,
        limit_ns: u64,
        most_ns: u64,
    ) -> Option<Decision> {
        let was_ahead = self.real_time.is_any_released();
        let is_short = |key: Key, request: &Request| {
            Some((key, self.estimate_ns(request, model)))
                .filter(|(_, estimate_ns)| self.blocks || *estimate_ns <= most_ns)
        };
        // Most often there is none, and nothing to be put in order.
        let first = (self.real_time.is_any_early())
            .then(|| self.real_time.early().find_map(|(key, request)| is_short(key, request)))
            .flatten();
        let (early, estimate_ns) = match first {
            Some((_, estimate_ns)) if estimate_ns > limit_ns => return None,
            Some((key, estimate_ns)) => (Some(key), estimate_ns),
            None => (None, self.choose_best_effort(model, limit_ns, most_ns)?),
        };
        let (request, grant) = match early {
            Some(key) => self.real_time.take_early(key, now_ns)?,
            None => (self.best_effort.take(model.head_bytes())?, Grant::NONE),
        };
        self.in_service = Some(InService {
            tag: request.tag,
            class: request.class,
            grant,
            is_best_effort: early.is_none(),
            extra: Some(Extra { was_ahead, is_lent: false, estimate_ns }),
            begun_ns: now_ns,
        });
        Some(Decision::Serve(request))
    }

    fn estimate_ns(&self, request: &Request, model: &dyn ServiceModel) -> u64 {
        let from_bytes = model.head_bytes();
        if self.expected {
            model.expected_ns(from_bytes, request)
        } else {
            model.bound_ns(from_bytes, request)
        }
    }

    /// Skips requests with an estimate above `most_ns`, and returns the estimate of the next one if it is at most
    /// `limit_ns`.
    fn choose_best_effort(&mut self, model: &dyn ServiceModel, limit_ns: u64, most_ns: u64) -> Option<u64> {
        let head_bytes = model.head_bytes();
        loop {
            let estimate_ns = self.estimate_ns(self.best_effort.peek(head_bytes)?, model);
            if self.blocks || estimate_ns <= most_ns {
                return (estimate_ns <= limit_ns).then_some(estimate_ns);
            }
            self.best_effort.set_aside(head_bytes);
        }
    }

    /// Expected service time of the request in service.
    pub(super) fn estimate_in_service_ns(&self) -> u64 {
        let extra = self.in_service.as_ref().and_then(|in_service| in_service.extra.as_ref());
        extra.map_or(0, |extra| extra.estimate_ns)
    }

    /// Nothing can be begun.
    pub(super) fn rest(&self) -> Decision {
        match (self.waiting(), self.real_time.next_release_ns()) {
            (0, _) => Decision::Idle,
            (_, Some(release_ns)) => Decision::WaitUntil(release_ns),
            (_, None) => Decision::UNTIL_COMPLETION,
        }
    }

    /// Reports a completion; returns the request and its start if it was not a released one.
    pub(super) fn complete(&mut self, now_ns: u64, request: &Request) -> Option<(Extra, u64)> {
        let done = self.in_service.as_ref()?;
        if done.tag != request.tag || done.class != request.class {
            return None;
        }
        let took_ns = now_ns.saturating_sub(done.begun_ns);
        self.real_time.complete(now_ns, &done.grant, took_ns, self.punish_percent);
        if done.is_best_effort {
            self.best_effort.complete(request);
        }
        let (extra, begun_ns) = (done.extra, done.begun_ns);
        self.in_service = None;
        self.best_effort.bring_back();
        self.real_time.release(now_ns);
        extra.map(|extra| (extra, begun_ns))
    }

    pub(super) fn waiting(&self) -> usize {
        self.real_time.len() + self.best_effort.len()
    }
}
