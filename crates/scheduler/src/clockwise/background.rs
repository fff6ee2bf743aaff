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
    promises: "of released requests none with an earlier deadline waits; best-effort ones begin when none with a deadline \
               waits; no deadline is promised, since a best-effort request that was just begun can be too long",
    settings: &[
        (
            "admission",
            "of contracts. jeffay: for devices that do not stop a request; sum: of cost / period; none; default jeffay",
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
    promises: "of streams with something left of their slices none with an earlier deadline waits; what is idle goes to \
               streams that have used theirs up, then to best effort; no deadline is promised",
    settings: &[
        (
            "admission",
            "of contracts. sum: of cost / period; jeffay: for devices that do not stop a request; none; default sum",
        ),
        ("punish", "percent of its next slice that a stream loses by a request that was late; default 50"),
        REJECTED,
        EARLY,
        ORDER,
        SYNC,
        WRITES,
    ],
    build: usd,
};

/// What the `admission` setting says.
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
