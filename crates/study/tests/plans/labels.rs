//! Tests of labels: runs of two kernels or commits have ids of their own, and runs without a label keep theirs.

use std::collections::BTreeSet;

use serde_json::json;
use weir_study::Plan;

use crate::support::{plan_labelled, plan_text, trial};

const STUDY: &str = trial!(
    "classes:\n  text: {workload: poisson-text, clients: 4}\nfactors:\n  scheduler: [none, mq-deadline]\n"
);

fn ids(plan: &Plan) -> BTreeSet<&str> {
    plan.runs.iter().map(|run| run.id.as_str()).collect()
}

#[test]
fn a_label_changes_ids_and_levels_and_nothing_else() {
    let plain = plan_text(STUDY).unwrap();
    let one = plan_labelled("trial", STUDY, Some("6.12")).unwrap();
    let other = plan_labelled("trial", STUDY, Some("6.18")).unwrap();
    let all: BTreeSet<&str> = [&plain, &one, &other].into_iter().flat_map(ids).collect();
    assert_eq!(all.len(), 3 * plain.runs.len());
    assert_eq!(one.factors["label"], json!(["6.12"]));
    assert_eq!(plain.factors.get("label"), None);
    for (with, without) in one.runs.iter().zip(&plain.runs) {
        assert_eq!(with.levels["label"], "6.12");
        // The same requests in the same order: labels are compared in pairs.
        assert_eq!((with.seed, with.order, &with.settings), (without.seed, without.order, &without.settings));
        assert_ne!(with.cell, without.cell);
    }
    assert_eq!((plain.file_name(), one.file_name()), ("plan.json".to_owned(), "plan@6.12.json".to_owned()));
}

#[test]
fn the_label_of_the_study_is_replaced_by_that_of_the_command() {
    let labelled = STUDY.replace("seed: 7", "seed: 7\nlabel: \"6.12\"");
    let of_study = plan_text(&labelled).unwrap();
    assert_eq!(of_study, plan_labelled("trial", STUDY, Some("6.12")).unwrap());
    let of_command = plan_labelled("trial", &labelled, Some("6.18")).unwrap();
    assert_eq!(of_command, plan_labelled("trial", STUDY, Some("6.18")).unwrap());
    let text = serde_json::to_string(&of_study).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), of_study);
}

/// Ids of runs without a label are those of the version before labels: nothing that was measured is measured again.
#[test]
fn runs_without_a_label_keep_their_ids() {
    let plan = plan_text(STUDY).unwrap();
    let known: Vec<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(known, ["c6965066ad39", "95063ffd0ce0"]);
    assert!(!serde_json::to_string(&plan).unwrap().contains("label"));
}

#[test]
fn wrong_labels_are_refused_by_file_field_value_and_remedy() {
    for (label, says) in [
        ("\"\"", "label: is ``; use 1 to 40 letters"),
        ("a/b", "label: is `a/b`; use"),
        ("\"a b\"", "label: is `a b`; use"),
        (".hidden", "label: is `.hidden`; use"),
        ("unlabelled", "label: is `unlabelled`, which stands for runs without a label: use another"),
        ("6.12", "label"),
    ] {
        let error = plan_text(&STUDY.replace("seed: 7", &format!("seed: 7\nlabel: {label}"))).unwrap_err();
        assert!(error.contains("trial.yml:") && error.contains(says), "{error}");
    }
    let varied =
        STUDY.replace("  scheduler: [none, mq-deadline]", "  variant: {a: {label: x}, b: {seed: 1}}");
    assert!(plan_text(&varied).unwrap_err().contains("`label` is the same in all variants"));
    let plan = serde_json::to_value(plan_labelled("trial", STUDY, Some("a")).unwrap()).unwrap();
    let mut wrong = plan;
    wrong["label"] = json!("../a");
    assert!(serde_json::from_value::<Plan>(wrong).unwrap_err().to_string().contains("label: is `../a`"));
}

#[test]
fn labels_and_precision_exclude_each_other() {
    let precise = STUDY.replace(
        "repetitions: 1",
        "repetitions: 3\ncomparison: {factor: scheduler}\nprecision: {class: text, effect: 0.1, at_most: 20}",
    );
    let error = plan_labelled("trial", &precise, Some("6.12")).unwrap_err();
    assert!(
        error.contains("precision: is given, but its decisions are of runs without a label (found `6.12`)"),
        "{error}"
    );
}

#[test]
fn a_study_may_ask_about_its_labels() {
    let asks = |baseline: &str| {
        let comparison = format!("seed: 7\ncomparison: {{factor: label{baseline}}}");
        plan_labelled("trial", &STUDY.replace("seed: 7", &comparison), Some("6.18"))
    };
    assert_eq!(asks("").unwrap().comparison.unwrap().factor, "label");
    assert_eq!(asks(", baseline: \"6.12\"").unwrap().comparison.unwrap().baseline, Some(json!("6.12")));
    assert!(
        asks(", baseline: 6.12").unwrap_err().contains("comparison.baseline: is 6.12, which is no label")
    );
}
