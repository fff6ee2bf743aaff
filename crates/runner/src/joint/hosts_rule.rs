//! Rule R-HOSTS: the hosts of a run began together, and their clock offsets are known.

use weir_coordination::Record;

use crate::validity::rule::{self, RuleOutcome, Status, Validity};

/// Limit on the error of a clock offset, a tenth of a disk's service time: with a larger one the order of requests is unknown.
const BOUND_LIMIT_NS: i64 = 500_000;
/// Limit on drift: two quartz clocks of 50 ppm each. With more, a clock was set or its machine was paused.
const DRIFT_LIMIT_PPM: f64 = 100.0;

fn outcome(status: Status, reason: String) -> RuleOutcome {
    rule::outcome("R-HOSTS", status, reason)
}

/// Outcome for a run that some host did not complete.
pub(super) fn not_together(reason: String) -> RuleOutcome {
    outcome(Status::Invalid, reason)
}

/// Outcome for a run that all hosts completed: its clocks.
pub(super) fn together(records: &[Record]) -> RuleOutcome {
    let clocks = || records.iter().filter_map(|record| Some((record.host.as_str(), record.clocks?)));
    let Some((host, worst)) = clocks().max_by_key(|(_, clocks)| clocks.bound_ns()) else {
        return outcome(Status::Invalid, "no host knows its clock offset".to_owned());
    };
    let bound_ns = worst.bound_ns();
    let numbers = |outcome: RuleOutcome| RuleOutcome {
        value: Some(bound_ns as f64),
        limit: Some(BOUND_LIMIT_NS as f64),
        ..outcome
    };
    if bound_ns > BOUND_LIMIT_NS {
        let reason = format!(
            "the clock offset of host {host} is known to within {:.3} ms (at most {:.3}): the network between the hosts is too slow or too busy",
            bound_ns as f64 / 1e6,
            BOUND_LIMIT_NS as f64 / 1e6
        );
        return numbers(outcome(Status::Invalid, reason));
    }
    let drifts = || clocks().filter_map(|(host, clocks)| Some((host, clocks.drift_ppm()?)));
    if let Some((host, (drift, unsure))) =
        drifts().find(|(_, (drift, unsure))| drift.abs() > DRIFT_LIMIT_PPM + unsure)
    {
        let reason = format!(
            "the clock of host {host} drifted by {drift:.0} ppm (known to within {unsure:.0}; at most {DRIFT_LIMIT_PPM}): the clock was set, or the machine was paused"
        );
        return numbers(outcome(Status::Invalid, reason));
    }
    let drift = drifts().map(|(_, (drift, _))| drift.abs()).fold(0.0, f64::max);
    let reason = format!(
        "{} hosts began together; clock offsets are known to within {:.3} ms and clocks drifted by at most {drift:.1} ppm",
        records.len(),
        bound_ns as f64 / 1e6
    );
    numbers(outcome(Status::Valid, reason))
}

/// The worst outcome of each rule on any host; the reason names the host.
pub(super) fn worst(validities: &[(String, Validity)]) -> Vec<RuleOutcome> {
    let rank = |status: Status| match status {
        Status::Invalid => 2,
        Status::Valid | Status::Imported => 1,
        Status::Skipped => 0,
    };
    let mut names: Vec<&str> = Vec::new();
    for outcome in validities.iter().flat_map(|(_, validity)| &validity.rules) {
        if !names.contains(&outcome.rule.as_str()) {
            names.push(&outcome.rule);
        }
    }
    let of_rule = |rule: &str| {
        let all = validities
            .iter()
            .flat_map(|(host, validity)| validity.rules.iter().map(move |outcome| (host, outcome)));
        let mut found: Option<(&String, &RuleOutcome)> = None;
        for (host, outcome) in all.filter(|(_, outcome)| outcome.rule == rule) {
            if found.is_none_or(|(_, known)| rank(outcome.status) > rank(known.status)) {
                found = Some((host, outcome));
            }
        }
        found.map(|(host, outcome)| RuleOutcome {
            reason: format!("{host}: {}", outcome.reason),
            ..outcome.clone()
        })
    };
    names.into_iter().filter_map(of_rule).collect()
}

#[cfg(test)]
mod tests {
    use weir_coordination::{Clocks, Offset, Role};

    use super::*;

    fn record(host: &str, bound_ns: i64, drifted_ns: i64) -> Record {
        let offset = |offset_ns, at_ns| Offset { offset_ns, bound_ns, at_ns };
        let clocks = Clocks { start: offset(7, 0), end: Some(offset(7 + drifted_ns, 10_000_000_000)) };
        Record {
            host: host.to_owned(),
            role: Role::Client,
            client: Some(0),
            run: "run".to_owned(),
            epoch_ns: Some(0),
            local_epoch_ns: Some(0),
            clocks: Some(clocks),
            ended: None,
        }
    }

    #[test]
    fn clocks_must_be_known_and_steady() {
        let judge = |bound_ns, drifted_ns| together(&[record("a", 0, 0), record("b", bound_ns, drifted_ns)]);
        let good = judge(50_000, 1_000_000);
        assert_eq!((good.status, good.value, good.limit), (Status::Valid, Some(50_000.0), Some(500_000.0)));
        assert!(good.reason.contains("0.050 ms") && good.reason.contains("100.0 ppm"), "{}", good.reason);
        let vague = judge(500_001, 0);
        assert!(vague.status == Status::Invalid && vague.reason.contains("host b"), "{}", vague.reason);
        // 111 ppm, of which 10 may be the measurement's.
        let set = judge(50_000, 1_110_000);
        assert!(set.status == Status::Invalid && set.reason.contains("drifted by 111 ppm"), "{}", set.reason);
        assert_eq!(judge(50_000, 1_090_000).status, Status::Valid);
        assert_eq!(together(&[]).status, Status::Invalid);
    }

    #[test]
    fn the_worst_of_each_rule_is_named_with_its_host() {
        let rule = |name: &str, status, reason: &str| RuleOutcome {
            rule: name.to_owned(),
            reason: reason.to_owned(),
            ..outcome(status, String::new())
        };
        let validities = [
            (
                "a".to_owned(),
                vec![rule("R-LATE", Status::Valid, "0.1 ms"), rule("R-LOSS", Status::Skipped, "no disk")],
            ),
            (
                "b".to_owned(),
                vec![rule("R-LATE", Status::Invalid, "9 ms"), rule("R-LOSS", Status::Skipped, "no disk")],
            ),
            (
                "s".to_owned(),
                vec![rule("R-LOSS", Status::Valid, "none lost"), rule("R-CLOCK", Status::Valid, "0")],
            ),
        ];
        let validities = validities.map(|(host, rules)| (host, Validity::of(rules)));
        let found = worst(&validities);
        let told: Vec<(&str, Status, &str)> =
            found.iter().map(|one| (one.rule.as_str(), one.status, one.reason.as_str())).collect();
        assert_eq!(
            told,
            [
                ("R-LATE", Status::Invalid, "b: 9 ms"),
                ("R-LOSS", Status::Valid, "s: none lost"),
                ("R-CLOCK", Status::Valid, "s: 0")
            ]
        );
    }
}
