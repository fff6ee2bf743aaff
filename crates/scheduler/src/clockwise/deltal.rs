//! ΔL: best-effort requests within the slack of all admitted contracts.
//!
//! Bosch 1999, sections 6.2 and 6.3. Every request of an admitted set completes at least ΔL before its deadline. Released
//! requests can therefore be postponed by ΔL in total. When no released request is left, the account is full again. If
//! best-effort requests are short compared with ΔL, they are served in one burst.

use super::best_effort::{ORDER, SYNC, WRITES};
use super::contracts::{LEAST_SLACK, REJECTED, SERVER, Test, admit};
use super::core::{Core, EARLY, ESTIMATE, Extra, Intake, LONG, OVERSIZE, SPARE};
use crate::entry::Entry;
use crate::guarantee::{Mode, Slack};
use crate::model::ServiceModel;
use crate::policy::{Account, Decision, Policy};
use crate::request::{Class, Request};
use crate::settings::{SettingError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "deltal",
    label: "ΔL",
    about: "best effort within the slack of the admitted contracts (Clockwise: Bosch 1999, sections 6.2, 6.3)",
    promises: "with mode=exact, accounting=overlap, server=sporadic and estimate=bound: every request of an admitted \
               contract within its rate meets its deadline, if no request takes longer than its contract or bound; a \
               best-effort request that takes longer than ΔL is never served, nor those behind it with oversize=block",
    settings: &[
        (
            "rules",
            "defaults of other settings. exact; thesis: mode=thesis accounting=free server=container oversize=block, section \
             6.3 as printed; default exact",
        ),
        ("mode", "computation of ΔL. exact; thesis: only intervals up to the longest period; default exact"),
        (
            "accounting",
            "charge of a request that begins while nothing is released. overlap: from the first release during its \
             service; free: none, as in the thesis, and deadlines can be missed; default overlap",
        ),
        (
            "debit",
            "charge of a request served ahead of released ones. estimate: at least its estimate; actual: its service \
             time; default estimate",
        ),
        OVERSIZE,
        REJECTED,
        LEAST_SLACK,
        SERVER,
        EARLY,
        LONG,
        SPARE,
        ESTIMATE,
        ORDER,
        SYNC,
        WRITES,
    ],
    build,
};

/// Settings of the thesis's rules, which weir corrects by default.
const THESIS: [(&str, &str); 4] =
    [("mode", "thesis"), ("accounting", "free"), ("server", "container"), ("oversize", "block")];

fn build(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let mut settings = settings.clone();
    if settings.word("rules", &["exact", "thesis"])? == "thesis" {
        for (key, value) in THESIS {
            settings.0.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    let settings = &settings;
    let mode = match settings.word("mode", &["exact", "thesis"])? {
        "thesis" => Mode::Thesis,
        _ => Mode::Exact,
    };
    let admitted = admit("deltal", classes, settings, Test::Slack(mode), false)?;
    // Without contracts there are no deadlines.
    let slack_ns = admitted.2.map_or(u64::MAX, Slack::slack_ns);
    let intake = Intake { loose: false, by_slices: false, punish_percent: 0 };
    Ok(Box::new(DeltaL {
        core: Core::new(classes, settings, admitted, intake)?,
        slack_ns,
        left_ns: slack_ns,
        charges_overlap: settings.word("accounting", &["overlap", "free"])? == "overlap",
        refunds: settings.word("debit", &["estimate", "actual"])? == "actual",
    }))
}

#[derive(Debug)]
struct DeltaL {
    core: Core,
    /// ΔL.
    slack_ns: u64,
    /// Rest of ΔL until no request is released.
    left_ns: u64,
    charges_overlap: bool,
    refunds: bool,
}

impl DeltaL {
    /// Charges the service of requests ahead of released ones.
    fn charge(&mut self, now_ns: u64, done: &Extra, begun_ns: u64) {
        let took_ns = now_ns.saturating_sub(begun_ns);
        if done.was_ahead {
            // The estimate was charged when it was begun.
            self.left_ns = self.left_ns.saturating_sub(took_ns.saturating_sub(done.estimate_ns));
            if self.refunds && !done.is_lent {
                self.left_ns = self.left_ns.saturating_add(done.estimate_ns.saturating_sub(took_ns));
            }
        } else if self.charges_overlap
            && let Some(release_ns) = self.core.real_time.first_release_ns()
        {
            let overlap_ns = now_ns.saturating_sub(release_ns.max(begun_ns));
            self.left_ns = self.left_ns.saturating_sub(overlap_ns);
        }
    }
}

impl Policy for DeltaL {
    fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel) {
        self.core.arrive(now_ns, request, model);
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        if let Some(busy) = self.core.is_busy(now_ns) {
            return busy;
        }
        let is_ahead = self.core.real_time.is_any_released();
        if !is_ahead {
            self.left_ns = self.slack_ns;
        }
        if self.waiting() == 0 {
            return Decision::Idle;
        }
        if let Some(decision) = self.core.begin_in_spare(now_ns, model, self.slack_ns) {
            return decision;
        }
        if let Some(decision) = self.core.begin_extra(now_ns, model, self.left_ns, self.slack_ns) {
            if is_ahead {
                self.left_ns = self.left_ns.saturating_sub(self.core.estimate_in_service_ns());
            }
            return decision;
        }
        self.core.begin_released(now_ns).unwrap_or_else(|| self.core.rest())
    }

    fn complete(&mut self, now_ns: u64, request: &Request, _: u64) {
        if let Some((done, begun_ns)) = self.core.complete(now_ns, request) {
            self.charge(now_ns, &done, begun_ns);
        }
    }

    fn slack_ns(&self) -> Option<u64> {
        // Without contracts there is no slack.
        (self.slack_ns < u64::MAX).then_some(self.slack_ns)
    }

    fn accounts(&self) -> Vec<Account> {
        let left = |_| Account { name: "slack_left_ms", class: None, value: self.left_ns as f64 / 1e6 };
        self.slack_ns().map(left).into_iter().collect()
    }

    fn waiting(&self) -> usize {
        self.core.waiting()
    }
}
