//! What the policies with contracts have in common: requests by their kind, and the one that the device has.

use super::best_effort::BestEffort;
use super::contracts::{Admitted, Contracts};
use super::real_time::{RealTime, Taken, worst_ns};
use crate::model::ServiceModel;
use crate::policy::Decision;
use crate::request::{Class, Request, Service};
use crate::settings::{SettingError, Settings};

pub(super) const EARLY: (&str, &str) = (
    "early",
    "a request that comes faster than its contract says and is served before its release. keep: its slot is there for the \
     next one; spend: it uses its slot up; default keep",
);

pub(super) const LONG: (&str, &str) = (
    "long",
    "a stream's request that may take longer than its contract says. trust: the contract is believed; best-effort: the \
     request is best effort; default trust",
);

pub(super) const ESTIMATE: (&str, &str) = (
    "estimate",
    "of what is served ahead of released requests. bound: with a whole revolution; expected: with half of one, which \
     promises nothing; default bound",
);

pub(super) const SPARE: (&str, &str) = (
    "spare",
    "what a stream's request does not need of its contract, because it lies where the disk is fast. leave: nobody gets it;      fill: what is not released and best effort that fits goes before it; default leave",
);

/// What the device has.
#[derive(Debug, Clone, Copy)]
pub(super) struct InService {
    taken: Taken,
    is_best_effort: bool,
    /// It is not released, or best effort.
    pub(super) is_extra: bool,
    /// Others were released when it was begun.
    pub(super) was_ahead: bool,
    /// It goes before one of them at its cost.
    pub(super) is_lent: bool,
    pub(super) estimate_ns: u64,
    pub(super) begun_ns: u64,
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
    punish_percent: u64,
    in_service: Option<InService>,
}

/// How the policies differ in what they take in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Intake {
    /// Requests of real-time classes without a contract are served by their own deadlines, if they have some; otherwise
    /// they are best effort.
    pub(super) loose: bool,
    /// Contracts are slices, and those of late requests are cut by so many percent.
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
        let by_deadline = |class: &Class| intake.loose && class.service == Service::RealTime;
        Ok(Core {
            contracts,
            real_time: RealTime::new(slots, spend_early),
            best_effort: BestEffort::new(classes, settings)?,
            by_deadline: classes.iter().map(by_deadline).collect(),
            trusts_cost: settings.word("long", &["trust", "best-effort"])? == "trust",
            by_slices: intake.by_slices,
            expected: settings.word("estimate", &["bound", "expected"])? == "expected",
            fills_spare: settings.word("spare", &["leave", "fill"])? == "fill",
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

    /// What to do if the device is not free; otherwise releases what is to be released.
    pub(super) fn is_busy(&mut self, now_ns: u64) -> Option<Decision> {
        if self.in_service.is_some() {
            return Some(if self.waiting() == 0 { Decision::Idle } else { Decision::UNTIL_COMPLETION });
        }
        self.real_time.release(now_ns);
        None
    }

    /// Begins the released request with the earliest deadline.
    pub(super) fn begin_released(&mut self, now_ns: u64) -> Option<Decision> {
        let taken = self.real_time.take_released(now_ns)?;
        Some(self.begin(InService {
            taken,
            is_best_effort: false,
            is_extra: false,
            was_ahead: true,
            is_lent: false,
            estimate_ns: 0,
            begun_ns: now_ns,
        }))
    }

    /// Begins something as [`Core::begin_extra`] does within what the next released request does not need of its contract
    /// (thesis, section 6.5.2). To the others both are one request, of that contract: a request that becomes the next one
    /// between them waits for less than that.
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
        let in_service = self.in_service.as_mut()?;
        in_service.is_lent = true;
        self.real_time.lend(in_service.estimate_ns);
        Some(decision)
    }

    /// Begins something that is not released or of a best-effort class's contract, the earliest deadline first, or best effort
    /// without one, if it takes at most `limit_ns`.
    /// What takes more than `most_ns` is passed over; for what takes more than `limit_ns` the others wait.
    pub(super) fn begin_extra(
        &mut self,
        now_ns: u64,
        model: &dyn ServiceModel,
        limit_ns: u64,
        most_ns: u64,
    ) -> Option<Decision> {
        let was_ahead = self.real_time.is_any_released();
        let first = self
            .real_time
            .early()
            .map(|(key, request)| (key, self.estimate_ns(request, model)))
            .find(|(_, estimate_ns)| *estimate_ns <= most_ns);
        let (taken, estimate_ns, is_best_effort) = match first {
            Some((_, estimate_ns)) if estimate_ns > limit_ns => return None,
            Some((key, estimate_ns)) => (self.real_time.take_early(key, now_ns)?, estimate_ns, false),
            None => {
                let (taken, estimate_ns) = self.take_best_effort(model, limit_ns, most_ns)?;
                (taken, estimate_ns, true)
            }
        };
        Some(self.begin(InService {
            taken,
            is_best_effort,
            is_extra: true,
            was_ahead,
            is_lent: false,
            estimate_ns,
            begun_ns: now_ns,
        }))
    }

    fn estimate_ns(&self, request: &Request, model: &dyn ServiceModel) -> u64 {
        let from_bytes = model.head_bytes();
        if self.expected {
            model.expected_ns(from_bytes, request)
        } else {
            model.bound_ns(from_bytes, request)
        }
    }

    fn take_best_effort(
        &mut self,
        model: &dyn ServiceModel,
        limit_ns: u64,
        most_ns: u64,
    ) -> Option<(Taken, u64)> {
        let head_bytes = model.head_bytes();
        loop {
            let request = self.best_effort.peek(head_bytes)?;
            let estimate_ns = self.estimate_ns(&request, model);
            if estimate_ns > most_ns {
                self.best_effort.set_aside(head_bytes);
                continue;
            }
            if estimate_ns > limit_ns {
                return None;
            }
            let request = self.best_effort.take(head_bytes)?;
            return Some((Taken { request, due_ns: u64::MAX, spent: None }, estimate_ns));
        }
    }

    fn begin(&mut self, in_service: InService) -> Decision {
        self.in_service = Some(in_service);
        Decision::Serve(in_service.taken.request)
    }

    /// What the one in service was expected to take.
    pub(super) fn estimate_in_service_ns(&self) -> u64 {
        self.in_service.map_or(0, |in_service| in_service.estimate_ns)
    }

    /// Nothing can be begun.
    pub(super) fn rest(&self) -> Decision {
        match (self.waiting(), self.real_time.next_release_ns()) {
            (0, _) => Decision::Idle,
            (_, Some(release_ns)) => Decision::WaitUntil(release_ns),
            (_, None) => Decision::UNTIL_COMPLETION,
        }
    }

    /// What was in service, if this is it.
    pub(super) fn complete(&mut self, now_ns: u64, request: &Request) -> Option<InService> {
        let is_it = |in_service: &mut InService| {
            let taken = &in_service.taken.request;
            taken.tag == request.tag && taken.class == request.class
        };
        let done = self.in_service.take_if(is_it)?;
        let took_ns = now_ns.saturating_sub(done.begun_ns);
        self.real_time.complete(now_ns, &done.taken, took_ns, self.punish_percent);
        if done.is_best_effort {
            self.best_effort.complete(request);
        }
        self.best_effort.bring_back();
        self.real_time.release(now_ns);
        Some(done)
    }

    pub(super) fn waiting(&self) -> usize {
        self.real_time.len() + self.best_effort.len()
    }
}
