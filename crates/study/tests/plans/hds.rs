//! Tests of the shipped studies of hierarchical disk sharing, and of errors in trees.

use weir_workload::Arrivals;

use crate::support::{plan_named, shipped, study_file};

/// What is wrong with a shipped study of which one piece of text was replaced.
fn problems(name: &str, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(study_file(name)).unwrap();
    assert!(text.contains(from), "{name} does not hold {from}");
    plan_named(name, &text.replacen(from, to, 1)).err().unwrap_or_default()
}

#[test]
fn the_studies_have_a_run_of_each_cell_and_repetition() {
    for (name, runs) in [
        ("hds-overload", 12 * 3 * 5),
        ("hds-reservation", 5),
        ("hds-isolation", 7 * 2 * 5),
        ("hds-borrowing", 7 * 5),
        ("hds-throughput", 7 * 5),
        ("hds-root", 7 * 5),
        ("hds-adaptive", 7 * 5),
        ("hds-request-size", 7 * 3 * 5),
        ("hds-bandwidth", 3 * 5),
        ("hds-sensitivity", 8 * 9 * 5),
        ("hds-alone", 2 * 5 * 5),
    ] {
        assert_eq!(shipped(name).runs.len(), runs, "{name}");
    }
}

#[test]
fn streams_begin_when_the_paper_s_do() {
    let plan = shipped("hds-borrowing");
    let start_s = |class: usize| match plan.runs[0].classes[class].recipe.requests().unwrap().arrivals {
        Arrivals::Closed { start_s, .. } => start_s,
        _ => f64::NAN,
    };
    assert_eq!([0, 1, 2].map(start_s), [0.0, 60.0, 120.0]);
}

#[test]
fn a_wrong_tree_is_named_with_its_line_field_and_place() {
    let said = problems("hds-isolation", "stream3:0.35", "stream3:0.36");
    assert!(said.contains("hds-isolation.yml:29: factors.scheduler.0:"), "{said}");
    assert!(said.contains("stream3 in B: the fractions add up to more than 1"), "{said}");
    let said = problems("hds-isolation", "stream3:0.35", "stram:0.35");
    assert!(said.contains("`stram` has no children and is no class; the classes are stream1"), "{said}");
    let said = problems("hds-bandwidth", "stream1:6000kb_s", "stream1:60000kb_s");
    assert!(said.contains("factors.scheduler.2") && said.contains("Raise root_kb_s"), "{said}");
}

#[test]
fn a_start_or_pace_that_cannot_be_is_named() {
    let said = problems("hds-borrowing", "start_s: 60", "start_s: -1");
    assert!(
        said.contains("classes.stream2.with.arrivals.closed.start_s: is -1; it must be from 0"),
        "{said}"
    );
    let said = problems("hds-borrowing", "start_s: 60", "rate_per_s: 0");
    assert!(said.contains("arrivals.closed.rate_per_s: is 0; it must be from 0.001"), "{said}");
}
