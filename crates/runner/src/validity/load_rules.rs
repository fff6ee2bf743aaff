//! Rules about the load: every request was sent and answered, and fio agrees (R-EXIT, R-PLANNED, R-FIO, R-START,
//! R-ERRORS).

use super::facts::Facts;
use super::rule::{RuleOutcome, Status, at_most, outcome};

/// Limit on the difference of percentiles: two bins of fio's histogram, which has 64 bins per factor of two (1.6 % each).
const PERCENTILE_DIFFERENCE_LIMIT: f64 = 0.03;

pub(super) fn exits(facts: &Facts<'_>) -> RuleOutcome {
    match facts.fio.iter().find(|report| report.exit_code != Some(0) || report.errors > 0) {
        Some(report) => {
            let code = report.exit_code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            let words = report.words.lines().next().unwrap_or("it printed nothing");
            outcome(
                "R-EXIT",
                Status::Invalid,
                format!("fio for class {} ended with {code}: {words}", report.class),
            )
        }
        None if facts.fio.is_empty() => outcome("R-EXIT", Status::Skipped, "no class is sent by fio"),
        None => outcome("R-EXIT", Status::Valid, "fio ended with exit code 0"),
    }
}

pub(super) fn planned(facts: &Facts<'_>) -> RuleOutcome {
    let (mut planned, mut done) = (0, 0);
    if let Some(fidelity) = facts.fidelity {
        planned += fidelity.planned;
        done += fidelity.completed;
    }
    for report in facts.fio {
        planned += report.requests;
        done += report.rows;
    }
    // A failed request is a row too: R-ERRORS counts it.
    for class in facts.web.iter().flat_map(|report| &report.classes) {
        planned += class.requests;
        done += class.answered + class.failed;
    }
    if let Some(accessed) = facts.access {
        let (taken, kept) = (accessed.taken.values().sum::<u64>(), accessed.kept.values().sum::<u64>());
        let (status, reason) = match accessed.unfit() {
            Some(reason) => (Status::Invalid, reason),
            None => (Status::Valid, format!("{kept} of {taken} samples were cached or uncached as intended")),
        };
        return RuleOutcome {
            value: Some(kept as f64),
            limit: Some(taken as f64),
            ..outcome("R-PLANNED", status, reason)
        };
    }
    let reason = format!("{done} of {planned} requests were sent and completed");
    let status =
        if done == planned && done > 0 && facts.rows >= done { Status::Valid } else { Status::Invalid };
    RuleOutcome {
        value: Some(done as f64),
        limit: Some(planned as f64),
        ..outcome("R-PLANNED", status, reason)
    }
}

pub(super) fn percentiles(facts: &Facts<'_>) -> RuleOutcome {
    match facts.fio.iter().filter_map(|report| report.percentile_difference).reduce(f64::max) {
        None => outcome(
            "R-FIO",
            Status::Skipped,
            "no closed-loop class has enough requests to compare percentiles",
        ),
        Some(difference) => {
            let reason = format!(
                "percentiles of requests.parquet differ from fio's own by at most {:.2} %",
                difference * 100.0
            );
            at_most("R-FIO", difference, PERCENTILE_DIFFERENCE_LIMIT, &reason)
        }
    }
}

pub(super) fn start(facts: &Facts<'_>) -> RuleOutcome {
    match facts.fio.iter().max_by_key(|report| report.began_late_ns) {
        None => outcome("R-START", Status::Skipped, "no closed-loop class"),
        Some(latest) => {
            let reason = format!(
                "the last client of class {} began {:.2} s after the time that the study gives it",
                latest.class,
                latest.began_late_ns as f64 / 1e9
            );
            at_most("R-START", latest.began_late_ns as f64, facts.late_start_limit_ns as f64, &reason)
        }
    }
}

pub(super) fn errors(facts: &Facts<'_>) -> RuleOutcome {
    let reason = match &facts.first_failure {
        Some(first) => format!("{} requests failed, the first with: {first}", facts.failed),
        None => "no request failed".to_owned(),
    };
    at_most("R-ERRORS", facts.failed as f64, 0.0, &reason)
}
