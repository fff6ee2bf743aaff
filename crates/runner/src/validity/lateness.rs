//! Lateness rules: requests were sent at their intended times (R-LATE, R-SPAN).

use super::facts::Facts;
use super::rule::{RuleOutcome, Status, at_most, outcome};

/// Limit on median lateness: smaller than any response time of interest on a disk.
const LATENESS_MEDIAN_LIMIT_NS: f64 = 250_000.0;
/// Limit on the 99th percentile of lateness: one and a half scheduling ticks of the kernel (250 Hz).
const LATENESS_P99_LIMIT_NS: f64 = 6_000_000.0;
/// Limit on the change of the schedule's length: a stretched schedule is another load.
const SPAN_ERROR_LIMIT: f64 = 0.002;

pub(super) fn lateness(facts: &Facts<'_>) -> RuleOutcome {
    let replayed =
        facts.fidelity.map(|fidelity| (fidelity.lateness_median_ns as f64, fidelity.lateness_p99_ns as f64));
    // A browser that waits for another answer is late too.
    let asked = facts.web.map(|report| (report.lateness.p50_ns as f64, report.lateness.p99_ns as f64));
    let Some((median, p99)) = replayed.into_iter().chain(asked).reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
    else {
        return outcome("R-LATE", Status::Skipped, "no class is sent by the replayer or by browsers");
    };
    let reason = format!(
        "lateness of requests: median {:.3} ms (at most {:.3}), 99th percentile {:.3} ms (at most {:.3})",
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
            let reason = format!("the length of the schedule changed by {:+.4} %", error * 100.0);
            at_most("R-SPAN", error.abs(), SPAN_ERROR_LIMIT, &reason)
        }
    }
}
