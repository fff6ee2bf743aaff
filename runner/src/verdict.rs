//! Whether a run's data may be believed: rules with ids, each with a status and a reason.

use std::path::Path;

use serde::{Deserialize, Serialize};
use weir_blockserver::Stats;
use weir_replayer::Fidelity;

use crate::access::Accessed;
use crate::fio::Report;
use crate::live::Way;
use crate::site::Findings;

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
}

/// Whether a folder holds a run that was judged invalid.
pub fn is_invalid(folder: &Path) -> bool {
    let text = std::fs::read(folder.join("verdict.json")).unwrap_or_default();
    serde_json::from_slice::<Verdict>(&text).is_ok_and(|verdict| verdict.status == Status::Invalid)
}

/// Whether a folder holds a run that this host could not carry out.
pub fn is_skipped(folder: &Path) -> bool {
    let text = std::fs::read(folder.join("verdict.json")).unwrap_or_default();
    serde_json::from_slice::<Verdict>(&text).is_ok_and(|verdict| verdict.status == Status::Skipped)
}

/// The verdict on a run that this host could not carry out.
pub(crate) fn skipped(why: &str) -> Verdict {
    Verdict { status: Status::Skipped, rules: vec![ruling("R-CONTROL", Status::Skipped, why)] }
}

/// Median lateness of a replay that changes no response time worth measuring on a disk.
const LATENESS_MEDIAN_LIMIT_NS: f64 = 250_000.0;
/// One request in a hundred may be as late as a scheduling tick of the kernel (250 Hz) and a half.
const LATENESS_P99_LIMIT_NS: f64 = 6_000_000.0;
/// A replay that stretches or shrinks its schedule measures another load.
const SPAN_ERROR_LIMIT: f64 = 0.002;
/// A modelled disk that answers later than its model is another disk.
const MODEL_MEDIAN_LIMIT_NS: f64 = 250_000.0;
const MODEL_P99_LIMIT_NS: f64 = 6_000_000.0;
/// Reads that never reached the device, as a share of bytes read; sharing of edge blocks explains the rest.
const CACHED_SHARE_LIMIT: f64 = 0.02;
/// fio's histogram has 64 bins to a factor of two, 1.6 % each; twice that is disagreement.
const PERCENTILE_DIFFERENCE_LIMIT: f64 = 0.03;
/// A step of the wall clock says that somebody set it.
const CLOCK_STEP_LIMIT_NS: f64 = 50_000_000.0;

/// What the rules look at.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    /// Of the open-loop classes.
    pub(crate) fidelity: Option<&'a Fidelity>,
    /// Of the closed-loop classes.
    pub(crate) fio: &'a [Report],
    /// Of the classes that go through a web server.
    pub(crate) web: Option<&'a weir_browsers::Report>,
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

/// io_uring, block layer, loop device, FUSE and back take 0.2 to 0.3 ms where processors are free.
const WAY_LIMIT_MS: f64 = 1.0;

/// Stolen time of which a verdict speaks.
const STOLEN_SHARE_TOLD: f64 = 0.02;

/// What a reason adds where something came too late on a machine that was not given its processors.
fn withheld(facts: &Facts<'_>, status: Status) -> String {
    if status != Status::Invalid || facts.stolen < STOLEN_SHARE_TOLD {
        return String::new();
    }
    format!(
        "; meanwhile the hypervisor kept {:.0} % of the processor time that was wanted",
        facts.stolen * 100.0
    )
}

/// Applies every rule.
pub(crate) fn judge(facts: &Facts<'_>) -> Verdict {
    let rules = vec![
        exits(facts),
        planned(facts),
        percentiles(facts),
        errors(facts),
        lateness(facts),
        span(facts),
        loss(facts),
        cached(facts),
        network(facts),
        sites(facts),
        model(facts),
        policy(facts),
        way(facts),
        clock(facts),
        state(facts),
        controls(facts),
    ];
    let broken = rules.iter().any(|ruling| ruling.status == Status::Invalid);
    Verdict { status: if broken { Status::Invalid } else { Status::Valid }, rules }
}

fn ruling(rule: &str, status: Status, reason: impl Into<String>) -> Ruling {
    Ruling { rule: rule.to_owned(), status, reason: reason.into(), value: None, limit: None }
}

fn at_most(rule: &str, value: f64, limit: f64, what: &str) -> Ruling {
    let status = if value <= limit { Status::Valid } else { Status::Invalid };
    Ruling { value: Some(value), limit: Some(limit), ..ruling(rule, status, what) }
}

fn exits(facts: &Facts<'_>) -> Ruling {
    match facts.fio.iter().find(|report| report.exit_code != Some(0) || report.errors > 0) {
        Some(report) => {
            let code = report.exit_code.map_or("a signal".to_owned(), |code| format!("code {code}"));
            let words = report.words.lines().next().unwrap_or("no words");
            ruling(
                "R-EXIT",
                Status::Invalid,
                format!("fio for class {} ended with {code}: {words}", report.class),
            )
        }
        None if facts.fio.is_empty() => ruling("R-EXIT", Status::Skipped, "no other program took part"),
        None => ruling("R-EXIT", Status::Valid, "every program ended with code 0"),
    }
}

fn planned(facts: &Facts<'_>) -> Ruling {
    let (mut planned, mut done) = (0, 0);
    if let Some(fidelity) = facts.fidelity {
        planned += fidelity.planned;
        done += fidelity.completed;
    }
    for report in facts.fio {
        planned += report.requests;
        done += report.rows;
    }
    // A request that came to nothing is a row as well: R-ERRORS counts it.
    for class in facts.web.iter().flat_map(|report| &report.classes) {
        planned += class.requests;
        done += class.answered + class.failed;
    }
    if let Some(accessed) = facts.access {
        let (taken, kept) = (accessed.taken.values().sum::<u64>(), accessed.kept.values().sum::<u64>());
        let (status, reason) = match accessed.unfit() {
            Some(reason) => (Status::Invalid, reason),
            None => (Status::Valid, format!("{kept} of {taken} samples were what they are called")),
        };
        return Ruling {
            value: Some(kept as f64),
            limit: Some(taken as f64),
            ..ruling("R-PLANNED", status, reason)
        };
    }
    let reason = format!("{done} of {planned} requests were sent and completed");
    let status =
        if done == planned && done > 0 && facts.rows >= done { Status::Valid } else { Status::Invalid };
    Ruling { value: Some(done as f64), limit: Some(planned as f64), ..ruling("R-PLANNED", status, reason) }
}

fn percentiles(facts: &Facts<'_>) -> Ruling {
    match facts.fio.iter().filter_map(|report| report.percentile_difference).reduce(f64::max) {
        None => ruling(
            "R-FIO",
            Status::Skipped,
            "no closed-loop class with enough requests to compare percentiles",
        ),
        Some(difference) => {
            let reason = format!(
                "percentiles of the rows differ from fio's own by at most {:.2} %",
                difference * 100.0
            );
            at_most("R-FIO", difference, PERCENTILE_DIFFERENCE_LIMIT, &reason)
        }
    }
}

fn errors(facts: &Facts<'_>) -> Ruling {
    let reason = match &facts.first_failure {
        Some(first) => format!("{} requests failed, the first with {first}", facts.failed),
        None => "no request failed".to_owned(),
    };
    at_most("R-ERRORS", facts.failed as f64, 0.0, &reason)
}

fn lateness(facts: &Facts<'_>) -> Ruling {
    let replayed =
        facts.fidelity.map(|fidelity| (fidelity.lateness_median_ns as f64, fidelity.lateness_p99_ns as f64));
    // A browser that waits for its answer is late as well where it does not turn to it.
    let asked = facts.web.map(|report| (report.lateness.p50_ns as f64, report.lateness.p99_ns as f64));
    let Some((median, p99)) = replayed.into_iter().chain(asked).reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
    else {
        return ruling("R-LATE", Status::Skipped, "nothing was sent by weir itself");
    };
    let reason = format!(
        "sent {:.3} ms late at the median (at most {:.3}), {:.3} ms at the 99th percentile (at most {:.3})",
        median / 1e6,
        LATENESS_MEDIAN_LIMIT_NS / 1e6,
        p99 / 1e6,
        LATENESS_P99_LIMIT_NS / 1e6
    );
    let late = median > LATENESS_MEDIAN_LIMIT_NS || p99 > LATENESS_P99_LIMIT_NS;
    let status = if late { Status::Invalid } else { Status::Valid };
    let reason = reason + &withheld(facts, status);
    Ruling { value: Some(p99), limit: Some(LATENESS_P99_LIMIT_NS), ..ruling("R-LATE", status, reason) }
}

fn span(facts: &Facts<'_>) -> Ruling {
    match facts.fidelity.map(|fidelity| fidelity.span_error) {
        None => ruling("R-SPAN", Status::Skipped, "no open-loop class"),
        Some(None) => ruling("R-SPAN", Status::Skipped, "fewer than two requests"),
        Some(Some(error)) => {
            let reason = format!("the schedule was stretched by {:.4} %", error * 100.0);
            at_most("R-SPAN", error.abs(), SPAN_ERROR_LIMIT, &reason)
        }
    }
}

pub(crate) fn loss(facts: &Facts<'_>) -> Ruling {
    match &facts.loss {
        None => ruling("R-LOSS", Status::Skipped, "nothing was to be captured at the block layer"),
        Some(Ok((share, words))) => at_most("R-LOSS", *share, facts.allowed_loss, words),
        Some(Err(why)) if facts.capture_required => ruling("R-LOSS", Status::Invalid, why),
        Some(Err(why)) => ruling("R-LOSS", Status::Skipped, why),
    }
}

fn cached(facts: &Facts<'_>) -> Ruling {
    if let Some(why) = facts.cached_by_right {
        return ruling("R-CACHED", Status::Skipped, why);
    }
    match facts.read_bytes {
        None => ruling("R-CACHED", Status::Skipped, "no block device lies below"),
        Some((0, _)) => ruling("R-CACHED", Status::Skipped, "nothing was read"),
        Some((application, device)) => {
            let missing = 1.0 - (device as f64 / application as f64).min(1.0);
            let reason = format!("{device} of {application} bytes read came from the devices");
            at_most("R-CACHED", missing, CACHED_SHARE_LIMIT, &reason)
        }
    }
}

fn network(facts: &Facts<'_>) -> Ruling {
    let Some((written, sent)) = facts.written else {
        return ruling(
            "R-NETWORK",
            Status::Skipped,
            "no network file system that a run brings up: it is local, or was mounted before",
        );
    };
    if written == 0 {
        return ruling(
            "R-NETWORK",
            Status::Skipped,
            "nothing was written: the files were there from an earlier run",
        );
    }
    let reason = format!("of {written} bytes of files that were written {sent} left the client's host");
    let status = if sent >= written { Status::Valid } else { Status::Invalid };
    Ruling { value: Some(sent as f64), limit: Some(written as f64), ..ruling("R-NETWORK", status, reason) }
}

fn sites(facts: &Facts<'_>) -> Ruling {
    if facts.sites.is_empty() {
        return ruling("R-SITE", Status::Skipped, "no site took part");
    }
    let tell = |site: &Findings| match &site.first {
        Some(first) => format!("{}: {} violations, the first {first}", site.site, site.violations),
        None => format!(
            "{}: {} rules hold, of {} acknowledged {} are there",
            site.site, site.rules, site.acknowledged, site.found
        ),
    };
    let reason = facts.sites.iter().map(tell).collect::<Vec<_>>().join("; ");
    let lost = |site: &Findings| site.acknowledged.saturating_sub(site.found).max(site.violations);
    at_most("R-SITE", facts.sites.iter().map(lost).sum::<u64>() as f64, 0.0, &reason)
}

fn model(facts: &Facts<'_>) -> Ruling {
    let timed: Vec<&(String, Stats)> =
        facts.models.iter().filter(|(_, stats)| stats.service_error.count > 0).collect();
    let Some((name, worst)) = timed.iter().max_by_key(|(_, stats)| stats.service_error.p99_ns) else {
        return ruling("R-MODEL", Status::Skipped, "no modelled device with service times");
    };
    let error = &worst.service_error;
    let reason = format!(
        "device {name} answered {:.3} ms after its model at the median, {:.3} ms at the 99th percentile",
        error.median_ns as f64 / 1e6,
        error.p99_ns as f64 / 1e6
    );
    let late = error.median_ns as f64 > MODEL_MEDIAN_LIMIT_NS || error.p99_ns as f64 > MODEL_P99_LIMIT_NS;
    let status = if late { Status::Invalid } else { Status::Valid };
    let reason = reason + &withheld(facts, status);
    let (value, limit) = (Some(error.p99_ns as f64), Some(MODEL_P99_LIMIT_NS));
    Ruling { value, limit, ..ruling("R-MODEL", status, reason) }
}

fn policy(facts: &Facts<'_>) -> Ruling {
    if facts.policies.is_empty() {
        return ruling("R-POLICY", Status::Skipped, "no server with policies stands before a device");
    }
    let words = |broken: bool| {
        let told = facts.policies.iter().filter(|(_, found)| found.is_err() == broken);
        let words = told.map(|(device, found)| {
            let (Ok(words) | Err(words)) = found;
            format!("device {device}: {words}")
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let (kept, broken) = (words(false), words(true));
    match broken.is_empty() {
        true => ruling("R-POLICY", Status::Valid, kept),
        false => ruling("R-POLICY", Status::Invalid, broken),
    }
}

/// What a policy does not see it cannot order: a client that gets no processor, or more requests than a device has tags. Nor does it
/// see what was asked for where the kernel makes many requests of one.
fn way(facts: &Facts<'_>) -> Ruling {
    let cut = facts.ways.iter().find_map(|(class, way)| match way {
        Way::Cut { asked, came } => Some((class, asked, came)),
        Way::Whole(_) => None,
    });
    if let (true, Some((class, asked, came))) = (facts.is_raw, cut) {
        let words = format!(
            "of the {asked} requests of class {class} the kernel made {came}: ask for no more at once than the device takes \
             (queue/max_sectors_kb)"
        );
        return at_most("R-WAY", *came as f64, *asked as f64, &words);
    }
    let whole = facts.ways.iter().filter_map(|(class, way)| match way {
        Way::Whole(ms) => Some((class, *ms)),
        Way::Cut { .. } => None,
    });
    let Some((class, way_ms)) = whole.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return ruling(
            "R-WAY",
            Status::Skipped,
            "no class under a policy of weir's own whose requests came whole",
        );
    };
    let words = format!(
        "requests and answers of class {class} were {way_ms:.3} ms on their way between client and server on average"
    );
    let found = at_most("R-WAY", way_ms, WAY_LIMIT_MS, &words);
    Ruling { reason: words + &withheld(facts, found.status), ..found }
}

pub(crate) fn clock(facts: &Facts<'_>) -> Ruling {
    let reason =
        format!("the wall clock moved {:.3} ms against the monotonic one", facts.clock_step_ns / 1e6);
    at_most("R-CLOCK", facts.clock_step_ns.abs(), CLOCK_STEP_LIMIT_NS, &reason)
}

fn state(facts: &Facts<'_>) -> Ruling {
    match facts.state.first() {
        Some(first) => ruling("R-STATE", Status::Invalid, format!("not as it was set: {first}")),
        None => ruling("R-STATE", Status::Valid, "mounts and queues were as set, before and after"),
    }
}

fn controls(facts: &Facts<'_>) -> Ruling {
    match &facts.controls {
        None => ruling("R-CONTROL", Status::Skipped, "no class has a control group of its own"),
        Some(Ok(words)) => ruling("R-CONTROL", Status::Valid, words),
        Some(Err(problem)) => ruling("R-CONTROL", Status::Invalid, problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(requests: u64, rows: u64) -> Report {
        Report {
            class: "records".to_owned(),
            version: String::new(),
            exit_code: Some(0),
            requests,
            rows,
            errors: 0,
            percentile_difference: None,
            words: String::new(),
        }
    }

    fn status(verdict: &Verdict, rule: &str) -> Status {
        verdict.rules.iter().find(|ruling| ruling.rule == rule).unwrap().status
    }

    #[test]
    fn a_clean_run_is_valid() {
        let fio = [report(10, 10)];
        let facts = Facts {
            fio: &fio,
            rows: 10,
            loss: Some(Ok((0.0, "none".to_owned()))),
            allowed_loss: 1e-4,
            read_bytes: Some((100, 100)),
            ..Facts::default()
        };
        assert_eq!(judge(&facts).status, Status::Valid);
    }

    #[test]
    fn every_broken_rule_makes_the_run_invalid() {
        let good = [report(10, 10)];
        let short = [report(10, 9)];
        let mut ended = [report(10, 10)];
        ended[0].exit_code = None;
        let base = || Facts { fio: &good, rows: 10, allowed_loss: 1e-4, ..Facts::default() };
        let whole = |class: &str, ms| (class.to_owned(), Way::Whole(ms));
        let cut = ("c".to_owned(), Way::Cut { asked: 10, came: 20 });
        let kept = Findings {
            site: "shop".to_owned(),
            rules: 9,
            violations: 0,
            acknowledged: 7,
            found: 7,
            first: None,
        };
        assert_eq!(judge(&Facts { sites: vec![kept.clone()], ..base() }).status, Status::Valid);
        for (rule, facts) in [
            ("R-PLANNED", Facts { fio: &short, ..base() }),
            ("R-PLANNED", Facts { fio: &[], rows: 0, ..base() }),
            ("R-EXIT", Facts { fio: &ended, ..base() }),
            ("R-ERRORS", Facts { failed: 1, first_failure: Some("EIO".to_owned()), ..base() }),
            ("R-LOSS", Facts { loss: Some(Ok((0.01, String::new()))), ..base() }),
            ("R-LOSS", Facts { loss: Some(Err("no BPF".to_owned())), capture_required: true, ..base() }),
            ("R-CACHED", Facts { read_bytes: Some((100, 50)), ..base() }),
            ("R-NETWORK", Facts { written: Some((100, 7)), ..base() }),
            ("R-SITE", Facts { sites: vec![Findings { violations: 1, ..kept.clone() }], ..base() }),
            ("R-SITE", Facts { sites: vec![Findings { found: 6, ..kept.clone() }], ..base() }),
            ("R-POLICY", Facts { policies: vec![("shared".to_owned(), Err("fcfs".to_owned()))], ..base() }),
            ("R-WAY", Facts { ways: vec![whole("a", 0.2), whole("b", 1.2)], ..base() }),
            ("R-WAY", Facts { ways: vec![whole("a", 0.2), cut.clone()], is_raw: true, ..base() }),
            ("R-CLOCK", Facts { clock_step_ns: -1e9, ..base() }),
            ("R-STATE", Facts { state: vec!["scheduler".to_owned()], ..base() }),
        ] {
            let verdict = judge(&facts);
            assert_eq!(verdict.status, Status::Invalid, "{rule}");
            assert_eq!(status(&verdict, rule), Status::Invalid, "{rule}");
        }
    }

    #[test]
    fn what_does_not_apply_is_skipped_with_its_reason() {
        let good = [report(10, 10)];
        // A file system may place one file in many extents.
        let cut = vec![("c".to_owned(), Way::Cut { asked: 10, came: 20 })];
        let facts = Facts {
            fio: &good,
            rows: 10,
            loss: Some(Err("no BPF".to_owned())),
            ways: cut,
            ..Facts::default()
        };
        let verdict = judge(&facts);
        assert_eq!(status(&verdict, "R-LOSS"), Status::Skipped);
        assert_eq!(status(&verdict, "R-WAY"), Status::Skipped);
        assert_eq!(verdict.status, Status::Valid);
        assert!(verdict.rules.iter().all(|ruling| !ruling.reason.is_empty()));
    }
}
