//! Whether a run's data may be believed: rules with ids, each with a status and a reason.

mod load;
mod machine;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::{Deserialize, Serialize};
use weir_blockserver::Stats;
use weir_replayer::Fidelity;

use crate::access::Accessed;
use crate::fio::Report;
use crate::live::Way;
use crate::site::Findings;

pub(crate) use machine::{clock, loss};

/// What became of a rule, or of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Kept.
    Valid,
    /// Broken: the run's data are not to be plotted.
    Invalid,
    /// It does not apply, or could not be checked; the reason says which.
    Skipped,
}

/// One rule and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ruling {
    /// Its id, documented in docs/verdicts.md.
    pub rule: String,
    /// What became of it.
    pub status: Status,
    /// Why, for people.
    pub reason: String,
    /// What was measured, where that is a number.
    pub value: Option<f64>,
    /// What is allowed, where that is a number.
    pub limit: Option<f64>,
}

/// `verdict.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Invalid if any rule is broken.
    pub status: Status,
    /// All rules, in a fixed order.
    pub rules: Vec<Ruling>,
    /// Whether nothing but time broke a rule, while a hypervisor kept processors: the same run may be valid another time.
    #[serde(default)]
    pub disturbed: bool,
    /// Which attempt at the run this is, from 1: those before it were disturbed.
    #[serde(default = "first")]
    pub attempt: u32,
}

fn first() -> u32 {
    1
}

impl Verdict {
    /// What follows from rules, at the first attempt.
    pub(crate) fn of(rules: Vec<Ruling>) -> Verdict {
        let broken = rules.iter().any(|ruling| ruling.status == Status::Invalid);
        let status = if broken { Status::Invalid } else { Status::Valid };
        Verdict { status, rules, disturbed: false, attempt: first() }
    }
}

/// Whether a folder holds a run that was judged invalid.
pub fn is_invalid(folder: &Path) -> bool {
    is_in(folder, Status::Invalid)
}

/// Whether a folder holds a run that this host could not carry out.
pub fn is_skipped(folder: &Path) -> bool {
    is_in(folder, Status::Skipped)
}

fn is_in(folder: &Path, status: Status) -> bool {
    let text = std::fs::read(folder.join("verdict.json")).unwrap_or_default();
    serde_json::from_slice::<Verdict>(&text).is_ok_and(|verdict| verdict.status == status)
}

/// The verdict on a run that this host could not carry out.
pub(crate) fn skipped(why: &str) -> Verdict {
    let rules = vec![ruling("R-CONTROL", Status::Skipped, why)];
    Verdict { status: Status::Skipped, ..Verdict::of(rules) }
}

/// What the rules look at.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    /// Of the open-loop classes.
    pub(crate) fidelity: Option<&'a Fidelity>,
    /// Of the closed-loop classes.
    pub(crate) fio: &'a [Report],
    /// Of the classes that go through a web server.
    pub(crate) web: Option<&'a weir_web_client::Report>,
    /// Of opening and reading files.
    pub(crate) access: Option<&'a Accessed>,
    /// Requests whose status is not 0.
    pub(crate) failed: u64,
    /// The first such status, in words.
    pub(crate) first_failure: Option<String>,
    /// Requests in `requests.parquet`.
    pub(crate) rows: u64,
    /// Share of block requests lost, and the words for it; `Err` says why nothing was captured.
    pub(crate) loss: Option<Result<(f64, String), String>>,
    /// Share that may be lost.
    pub(crate) allowed_loss: f64,
    /// Whether a capture is required.
    pub(crate) capture_required: bool,
    /// Bytes that the application read, and that the devices did; absent where there is no device.
    pub(crate) read_bytes: Option<(u64, u64)>,
    /// Why what was read need not have come from the devices; absent if it must.
    pub(crate) cached_by_right: Option<&'static str>,
    /// Of a network file system: bytes that were written to it, and that left the client's host meanwhile.
    pub(crate) written: Option<(u64, u64)>,
    /// What was found at each site afterwards.
    pub(crate) sites: Vec<Findings>,
    /// How far the wall clock moved against the monotonic one, in ns.
    pub(crate) clock_step_ns: f64,
    /// Mounts and queues that are not as they should be at the end.
    pub(crate) state: Vec<String>,
    /// Of control groups of classes: that they were as set and had the requests, or what is wrong; absent where there are none.
    pub(crate) controls: Option<Result<String, String>>,
    /// Of modelled devices, by name.
    pub(crate) models: Vec<(String, Stats)>,
    /// Of devices with policies, by name: which was in force, or what was not as the run asked.
    pub(crate) policies: Vec<(String, Result<String, String>)>,
    /// Of classes under these policies, by name: what their requests met on their way there.
    pub(crate) ways: Vec<(String, Way)>,
    /// Whether files are ranges of the device, so that only its limits can cut a request.
    pub(crate) is_raw: bool,
    /// Share of the time in which processors had work and were not given to this machine.
    pub(crate) stolen: f64,
}

/// The rules that a machine breaks which comes too late.
const RULES_OF_TIME: [&str; 4] = ["R-LATE", "R-SPAN", "R-MODEL", "R-WAY"];

impl Ruling {
    fn is_broken(&self) -> bool {
        self.status == Status::Invalid
    }

    fn is_of_time(&self) -> bool {
        RULES_OF_TIME.contains(&self.rule.as_str())
    }
}

/// Applies every rule.
pub(crate) fn judge(facts: &Facts<'_>) -> Verdict {
    let rules = vec![
        load::exits(facts),
        load::planned(facts),
        load::percentiles(facts),
        load::errors(facts),
        load::lateness(facts),
        load::span(facts),
        machine::loss(facts),
        machine::cached(facts),
        machine::network(facts),
        machine::sites(facts),
        machine::model(facts),
        machine::policy(facts),
        machine::whole(facts),
        machine::way(facts),
        machine::clock(facts),
        machine::state(facts),
        machine::controls(facts),
    ];
    let mut verdict = Verdict::of(rules);
    if verdict.status == Status::Invalid && facts.stolen >= weir_host::steal::DISTURBING_SHARE {
        verdict.disturbed = verdict.rules.iter().filter(|rule| rule.is_broken()).all(Ruling::is_of_time);
        let told = format!(
            "; meanwhile the hypervisor kept {:.0} % of the processor time that was wanted",
            facts.stolen * 100.0
        );
        verdict
            .rules
            .iter_mut()
            .filter(|rule| rule.is_broken() && rule.is_of_time())
            .for_each(|rule| rule.reason += &told);
    }
    verdict
}

fn ruling(rule: &str, status: Status, reason: impl Into<String>) -> Ruling {
    Ruling { rule: rule.to_owned(), status, reason: reason.into(), value: None, limit: None }
}

fn at_most(rule: &str, value: f64, limit: f64, what: &str) -> Ruling {
    let status = if value <= limit { Status::Valid } else { Status::Invalid };
    Ruling { value: Some(value), limit: Some(limit), ..ruling(rule, status, what) }
}
