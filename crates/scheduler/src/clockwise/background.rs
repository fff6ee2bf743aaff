//! Deadline order with best-effort requests in idle time: the thesis's EDF, and the User-Safe Disk.

use super::best_effort::{ORDER, SYNC, WRITES};
use super::contracts::{LEAST_SLACK, REJECTED, SERVER, Test, admit};
use super::core::{Core, EARLY, Intake, LONG};
use crate::entry::Entry;
use crate::guarantee::Mode;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Class, Request};
use crate::settings::{SettingError, Settings};

pub(crate) const EDF_BACKGROUND: Entry = Entry {
    name: "edf-background",
    label: "EDF+background",
    about: "earliest deadline first, best effort in the background (Bosch 1999, section 6.5)",
    promises: "released requests in deadline order; best-effort requests begin when no request with a deadline waits; no \
               deadline is guaranteed, since a best-effort request in service can take too long",
    settings: &[
        (
            "admission",
            "test of contracts. jeffay: non-preemptive device; sum: sum of cost / period; none: no test; default jeffay",
        ),
        REJECTED,
        LEAST_SLACK,
        SERVER,
        EARLY,
        LONG,
        ORDER,
        SYNC,
        WRITES,
    ],
    build: edf_background,
};

pub(crate) const USD: Entry = Entry {
    name: "usd",
    label: "USD",
    about: "slices of periods in deadline order, as if the disk could be preempted (User-Safe Disk with the Atropos \
            scheduler: Barham 1997; Bosch 1999, sections 2.7 and 6.4.1)",
    promises: "streams with unused slices in deadline order; idle time goes to streams without unused slices, then to best \
               effort; no deadline is guaranteed",
    settings: &[
        (
            "admission",
            "test of contracts. sum: sum of cost / period; jeffay: non-preemptive device; none: no test; default sum",
        ),
        ("punish", "percent of its next slice that a stream loses after a late request; default 50"),
        REJECTED,
        EARLY,
        ORDER,
        SYNC,
        WRITES,
    ],
    build: usd,
};

/// Admission test of the `admission` setting.
pub(super) fn test(settings: &Settings, words: &[&'static str; 3]) -> Result<Test, SettingError> {
    Ok(match settings.word("admission", words)? {
        "sum" => Test::Sum,
        "none" => Test::None,
        _ => Test::Slack(Mode::Exact),
    })
}

fn edf_background(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let test = test(settings, &["jeffay", "sum", "none"])?;
    let admitted = admit("edf-background", classes, settings, test, false)?;
    let intake = Intake { loose: true, by_slices: false, punish_percent: 0 };
    Ok(Box::new(Background(Core::new(classes, settings, admitted, intake)?)))
}

fn usd(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let test = test(settings, &["sum", "jeffay", "none"])?;
    let admitted = admit("usd", classes, settings, test, true)?;
    let punish_percent = settings.count("punish", 50, 0, 100)?;
    let intake = Intake { loose: true, by_slices: true, punish_percent };
    Ok(Box::new(Background(Core::new(classes, settings, admitted, intake)?)))
}

#[derive(Debug)]
struct Background(Core);

impl Policy for Background {
    fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel) {
        self.0.arrive(now_ns, request, model);
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        if let Some(busy) = self.0.is_busy(now_ns) {
            return busy;
        }
        self.0
            .begin_released(now_ns)
            .or_else(|| self.0.begin_extra(now_ns, model, u64::MAX, u64::MAX))
            .unwrap_or_else(|| self.0.rest())
    }

    fn complete(&mut self, now_ns: u64, request: &Request, _: u64) {
        self.0.complete(now_ns, request);
    }

    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}
