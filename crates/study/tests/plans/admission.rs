//! Tests of studies on testbed `admission`.

use crate::support::plan_text;

const ADMISSION: &str = "\
name: trial
question: How many streams get in?
testbed: admission
seed: 7
repetitions: 2
warmup_s: 0
duration_s: 100
records: summary
storage: {profile: hdd-7200, heads: 2, size_mib: 1024}
classes:
  lambs: {workload: mpeg-lambs, clients: 1}
  news: {workload: mpeg-news, clients: 3}
factors:
  admission: {layout: [cdl, bctl], latency_target_rounds: [0, 100], stream: [mix, news]}
hold:
  admission: {block_kib: 32, policy: prime-hopping}
";

#[test]
fn parameters_of_admission_are_factors() {
    let plan = plan_text(ADMISSION).unwrap();
    assert_eq!(plan.runs.len(), 2 * 2 * 2 * 2);
    let names: Vec<&str> = plan.factors.keys().map(String::as_str).collect();
    assert_eq!(names, ["admission.layout", "admission.latency_target_rounds", "admission.stream"]);
    for run in &plan.runs {
        let settings = run.settings.admission.as_ref().unwrap();
        assert_eq!(run.levels["admission.latency_target_rounds"], settings.latency_target_rounds);
        assert_eq!((settings.block_kib, settings.hop_rounds, settings.capacity_ns()), (32, 17, 500_000_000));
    }
}

#[test]
fn what_admission_cannot_be_is_refused_by_field() {
    for (from, to, field) in [
        ("latency_target_rounds: [0, 100]", "latency_target_rounds: [16]", "admission.hop_rounds"),
        ("stream: [mix, news]", "stream: [mix, nws]", "admission.stream"),
        ("block_kib: 32", "block_kib: 0", "admission.block_kib"),
        ("block_kib: 32", "share_pct: 101", "admission.share_pct"),
        ("block_kib: 32", "round_ms: 510", "admission.round_ms"),
        ("block_kib: 32", "blok_kib: 32", "blok_kib"),
        ("workload: mpeg-news", "workload: poisson-text", "classes.news.workload"),
        ("factors:\n", "factors:\n  load: [1, 2]\n", "factors.load"),
        ("testbed: admission", "testbed: device", "factors.admission"),
        ("block_kib: 32", "drop_pct: 200", "admission.drop_pct"),
    ] {
        let changed = ADMISSION.replace(from, to);
        assert_ne!(changed, ADMISSION, "{from}");
        let error = plan_text(&changed).unwrap_err();
        assert!(error.contains(field), "{from}: {error}");
    }
    let simulated = ADMISSION.replace("testbed: admission", "testbed: simulator");
    assert!(plan_text(&simulated).is_ok());
    let dropping = simulated.replace("block_kib: 32", "drop_pct: 1");
    assert!(plan_text(&dropping).unwrap_err().contains("testbed: admission"));
}
