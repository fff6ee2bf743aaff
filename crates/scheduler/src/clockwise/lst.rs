//! LST: best-effort requests are served while released requests can still begin in time.
//!
//! Shenoy, Goyal, Rao and Vin, "Symphony: an integrated multimedia file system", MMCN 1998; Bosch 1999, section 6.4.2. The
//! test ignores requests that are released during a best-effort request: deadlines can be missed.

use super::background::test;
use super::best_effort::{ORDER, SYNC, WRITES};
use super::contracts::{LEAST_SLACK, REJECTED, SERVER, admit};
use super::core::{Core, EARLY, ESTIMATE, Intake, LONG, SPARE};
use crate::entry::Entry;
use crate::model::ServiceModel;
use crate::policy::{Decision, Policy};
use crate::request::{Class, Request};
use crate::settings::{SettingError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "lst",
    label: "LST",
    about: "best effort as long as released requests can begin at their latest start times (Symphony: Shenoy, Goyal, Rao \
            and Vin 1998; Bosch 1999, section 6.4.2)",
    promises: "released requests in deadline order; a best-effort request begins only if all released requests can meet their \
               deadlines after it; no deadline is guaranteed, since requests may be released during its service",
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
        SPARE,
        ESTIMATE,
        ORDER,
        SYNC,
        WRITES,
    ],
    build,
};

fn build(classes: &[Class], settings: &Settings) -> Result<Box<dyn Policy>, SettingError> {
    let test = test(settings, &["jeffay", "sum", "none"])?;
    let admitted = admit("lst", classes, settings, test, false)?;
    let intake = Intake { loose: true, by_slices: false, punish_percent: 0 };
    Ok(Box::new(Lst(Core::new(classes, settings, admitted, intake)?)))
}

#[derive(Debug)]
struct Lst(Core);

impl Policy for Lst {
    fn arrive(&mut self, now_ns: u64, request: Request, model: &dyn ServiceModel) {
        self.0.arrive(now_ns, request, model);
    }

    fn next(&mut self, now_ns: u64, model: &dyn ServiceModel) -> Decision {
        if let Some(busy) = self.0.is_busy(now_ns) {
            return busy;
        }
        let latest_ns = self.0.real_time.latest_start_ns(now_ns);
        let limit_ns = latest_ns.map_or(u64::MAX, |latest_ns| latest_ns.saturating_sub(now_ns));
        self.0
            .begin_extra(now_ns, model, limit_ns, u64::MAX)
            .or_else(|| self.0.begin_in_spare(now_ns, model, u64::MAX))
            .or_else(|| self.0.begin_released(now_ns))
            .unwrap_or_else(|| self.0.rest())
    }

    fn complete(&mut self, now_ns: u64, request: &Request, _: u64) {
        self.0.complete(now_ns, request);
    }

    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}
