//! Rules about the load: every request was sent, on time, and answered.

use super::facts::Facts;
use super::rule::{RuleOutcome, Status, at_most, outcome};

/// Median lateness of a replay that changes no response time worth measuring on a disk.
const LATENESS_MEDIAN_LIMIT_NS: f64 = 250_000.0;
/// One request in a hundred may be as late as a scheduling tick of the kernel (250 Hz) and a half.
const LATENESS_P99_LIMIT_NS: f64 = 6_000_000.0;
/// A replay that stretches or shrinks its schedule measures another load.
const SPAN_ERROR_LIMIT: f64 = 0.002;
/// fio's histogram has 64 bins to a factor of two, 1.6 % each; twice that is disagreement.
const PERCENTILE_DIFFERENCE_LIMIT: f64 = 0.03;

pub(super) fn exits(facts: &Facts<'_>) -> RuleOutcome {
    match facts.fio.iter().find(|report| report.exit_code != Some(0) || report.errors > 0) {
        Some(report) => {
            let code = report.exit_code.map_or("a signal".to_owned(), |code| format!("code {code}"));
            let words = report.words.lines().next().unwrap_or("no words");
            outcome(
                "R-EXIT",
                Status::Invalid,
                format!("fio for class {} ended with {code}: {words}", report.class),
            )
        }
        None if facts.fio.is_empty() => outcome("R-EXIT", Status::Skipped, "fio carried out no class"),
        None => outcome("R-EXIT", Status::Valid, "fio ended with code 0"),
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
    // A failed request is a row as well: R-ERRORS counts it.
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

pub(super) fn errors(facts: &Facts<'_>) -> RuleOutcome {
    let reason = match &facts.first_failure {
        Some(first) => format!("{} requests failed, the first with {first}", facts.failed),
        None => "no request failed".to_owned(),
    };
    at_most("R-ERRORS", facts.failed as f64, 0.0, &reason)
}

pub(super) fn lateness(facts: &Facts<'_>) -> RuleOutcome {
    let replayed =
        facts.fidelity.map(|fidelity| (fidelity.lateness_median_ns as f64, fidelity.lateness_p99_ns as f64));
    // A browser that is busy with another answer is late as well.
    let asked = facts.web.map(|report| (report.lateness.p50_ns as f64, report.lateness.p99_ns as f64));
    let Some((median, p99)) = replayed.into_iter().chain(asked).reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
    else {
        return outcome("R-LATE", Status::Skipped, "weir itself sent no requests");
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
    RuleOutcome { value: Some(p99), limit: Some(LATENESS_P99_LIMIT_NS), ..outcome("R-LATE", status, reason) }
}

pub(super) fn span(facts: &Facts<'_>) -> RuleOutcome {
    match facts.fidelity.map(|fidelity| fidelity.span_error) {
        None => outcome("R-SPAN", Status::Skipped, "no open-loop class"),
        Some(None) => outcome("R-SPAN", Status::Skipped, "fewer than two requests"),
        Some(Some(error)) => {
            let reason = format!("the schedule was stretched by {:.4} %", error * 100.0);
            at_most("R-SPAN", error.abs(), SPAN_ERROR_LIMIT, &reason)
        }
    }
}
