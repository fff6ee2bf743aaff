//! Each rule broken, kept and not applicable.

use weir_blockserver::LatencySummary;

use weir_blockserver::Stats;

use super::facts::Facts;
use super::judge::judge;
use super::rule::{Status, Validity};
use super::testbed_rules::MODEL_P99_LIMIT_NS;
use super::transit::Transit;
use crate::daemon::site::Findings;
use crate::load::fio::Report;

fn report(requests: u64, rows: u64) -> Report {
    Report {
        class: "records".to_owned(),
        version: String::new(),
        exit_code: Some(0),
        requests,
        rows,
        errors: 0,
        percentile_difference: None,
        began_late_ns: 1,
        words: String::new(),
    }
}

fn status(validity: &Validity, rule: &str) -> Status {
    validity.rules.iter().find(|ruling| ruling.rule == rule).unwrap().status
}

#[test]
fn a_clean_run_is_valid() {
    let fio = [report(10, 10)];
    let facts = Facts {
        fio: &fio,
        late_start_limit_ns: 1,
        rows: 10,
        loss: Some(Ok((0.0, "none".to_owned()))),
        allowed_loss: 1e-4,
        read_bytes: Some((100, 100)),
        ..Facts::default()
    };
    assert_eq!(judge(&facts).status, Status::Valid);
}

#[test]
fn only_what_a_hypervisor_alone_broke_was_disturbed() {
    let fio = [report(10, 10)];
    let judged = |p99_ns: f64, cpu_steal, failed| {
        let service_error = LatencySummary { count: 10, p99_ns: p99_ns as u64, ..LatencySummary::default() };
        let models = vec![("disk".to_owned(), Stats { service_error, ..Stats::default() })];
        judge(&Facts {
            fio: &fio,
            late_start_limit_ns: 1,
            rows: 10,
            models,
            cpu_steal,
            failed,
            ..Facts::default()
        })
    };
    let late = 2.0 * MODEL_P99_LIMIT_NS;
    let told = |validity: &Validity, rule: &str| {
        let found = validity.rules.iter().find(|ruling| ruling.rule == rule).unwrap();
        found.reason.ends_with("CPU steal was 50 % of the wanted CPU time")
    };
    let alone = judged(late, 0.5, 0);
    assert!(alone.disturbed && told(&alone, "R-MODEL") && !told(&alone, "R-EXIT"));
    let mine = judged(late, 0.0, 0);
    assert!(!mine.disturbed && !told(&mine, "R-MODEL"), "the processors were its own");
    let failed = judged(late, 0.5, 1);
    assert!(!failed.disturbed && !told(&failed, "R-ERRORS"), "requests failed as well");
    assert!(!judged(0.0, 0.5, 0).disturbed, "it is valid");
}

#[test]
fn every_broken_rule_makes_the_run_invalid() {
    let good = [report(10, 10)];
    let short = [report(10, 9)];
    let mut ended = [report(10, 10)];
    ended[0].exit_code = None;
    let mut late = [report(10, 10), report(10, 10)];
    late[1].began_late_ns = 3;
    let base =
        || Facts { fio: &good, late_start_limit_ns: 2, rows: 10, allowed_loss: 1e-4, ..Facts::default() };
    let whole = |class: &str, ms| (class.to_owned(), Transit::Whole { least_ms: ms, most_ms: ms });
    let between = |least_ms, most_ms| ("b".to_owned(), Transit::Whole { least_ms, most_ms });
    assert_eq!(judge(&Facts { transits: vec![between(-1.0, 9.0)], ..base() }).status, Status::Valid);
    let cut = ("c".to_owned(), Transit::Cut { asked: 10, came: 20 });
    let kept =
        Findings { site: "shop".to_owned(), rules: 9, violations: 0, acknowledged: 7, found: 7, first: None };
    assert_eq!(judge(&Facts { sites: vec![kept.clone()], ..base() }).status, Status::Valid);
    for (rule, facts) in [
        ("R-PLANNED", Facts { fio: &short, ..base() }),
        ("R-PLANNED", Facts { fio: &[], rows: 0, ..base() }),
        ("R-EXIT", Facts { fio: &ended, ..base() }),
        ("R-START", Facts { fio: &late, rows: 20, ..base() }),
        ("R-ERRORS", Facts { failed: 1, first_failure: Some("EIO".to_owned()), ..base() }),
        ("R-LOSS", Facts { loss: Some(Ok((0.01, String::new()))), ..base() }),
        ("R-LOSS", Facts { loss: Some(Err("no BPF".to_owned())), capture_required: true, ..base() }),
        ("R-CACHED", Facts { read_bytes: Some((100, 50)), ..base() }),
        ("R-NETWORK", Facts { written: Some((100, 7)), ..base() }),
        ("R-SITE", Facts { sites: vec![Findings { violations: 1, ..kept.clone() }], ..base() }),
        ("R-SITE", Facts { sites: vec![Findings { found: 6, ..kept.clone() }], ..base() }),
        ("R-POLICY", Facts { schedulers: vec![("shared".to_owned(), Err("fcfs".to_owned()))], ..base() }),
        ("R-WAY", Facts { transits: vec![whole("a", 0.2), whole("b", 1.2)], ..base() }),
        ("R-WAY", Facts { transits: vec![between(1.1, 9.0)], ..base() }),
        ("R-WHOLE", Facts { transits: vec![whole("a", 0.2), cut.clone()], is_raw: true, ..base() }),
        ("R-CLOCK", Facts { clock_step_ns: -1e9, ..base() }),
        ("R-STATE", Facts { state: vec!["scheduler".to_owned()], ..base() }),
    ] {
        let validity = judge(&facts);
        assert_eq!(validity.status, Status::Invalid, "{rule}");
        assert_eq!(status(&validity, rule), Status::Invalid, "{rule}");
    }
}

#[test]
fn what_does_not_apply_is_skipped_with_its_reason() {
    let good = [report(10, 10)];
    // A file system may place one file in many extents.
    let cut = vec![("c".to_owned(), Transit::Cut { asked: 10, came: 20 })];
    let facts = Facts {
        fio: &good,
        late_start_limit_ns: 1,
        rows: 10,
        loss: Some(Err("no BPF".to_owned())),
        transits: cut,
        ..Facts::default()
    };
    let validity = judge(&facts);
    assert_eq!(status(&validity, "R-LOSS"), Status::Skipped);
    assert_eq!(status(&validity, "R-WAY"), Status::Skipped);
    assert_eq!(status(&validity, "R-WHOLE"), Status::Skipped);
    assert_eq!(validity.status, Status::Valid);
    assert!(validity.rules.iter().all(|ruling| !ruling.reason.is_empty()));
}
