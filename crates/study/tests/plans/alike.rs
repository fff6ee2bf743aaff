//! Runs of `plan.json` by what differs from an earlier run, and whole.

use serde_json::{Value, json};
use weir_study::{Plan, to_rows};

use crate::support::{plan_text, shipped, trial};

/// Cells of two shapes: one for each architecture.
const STUDY: &str = trial!(
    r#"classes:
  text:
    workload: poisson-text
    clients: 20
  video:
    workload: mpeg-vbr
    clients: 8
factors:
  scheduler: [none, mq-deadline, bfq]
  load: [0.5, 1.0]
  architecture: [partitioned, integrated]
  variant:
    usual: {}
    other: {classes.text.with.files.count: 7}
"#
);

/// What `plan.json` has of a plan.
fn written(plan: &Plan) -> Value {
    serde_json::from_str(&to_rows(plan).unwrap()).unwrap()
}

#[test]
fn plans_are_read_as_they_were_whether_runs_are_whole_or_not() {
    let trial = plan_text(&STUDY.replace("repetitions: 1", "repetitions: 4")).unwrap();
    for plan in
        [trial, shipped("quick"), shipped("hds-alone"), shipped("access"), shipped("kernel-schedulers")]
    {
        assert_eq!(serde_json::from_value::<Plan>(written(&plan)).unwrap(), plan);
        // As version 1 of the layout has it.
        let mut whole = serde_json::to_value(&plan).unwrap();
        whole["format"] = json!(1);
        whole["runs"] = serde_json::to_value(&plan.runs).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(whole).unwrap(), Plan { format: 1, ..plan });
    }
}

#[test]
fn a_repetition_has_no_recipe_and_a_cell_only_its_levels() {
    let plan = plan_text(&STUDY.replace("repetitions: 1", "repetitions: 4\nduplicate: false")).unwrap();
    let rows = written(&plan)["runs"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 3 * 2 * 2 * 2 * 4);
    let whole = rows.iter().filter(|row| row.get("like").is_none()).count();
    assert!((1..=4).contains(&whole), "{whole}");
    let fields = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let later = rows.iter().filter(|row| row["block"] == 3);
    assert!(later.map(fields).all(|names| names == "id like repetition block order seed"));
    let cells = rows[1..24].iter().filter(|row| row.get("like").is_some());
    assert!(cells.clone().all(|row| row.to_string().len() < 1000));
    assert!(cells.clone().any(|row| row["classes"]["text"]["clients"].is_u64()));
}

#[test]
fn a_run_is_like_an_earlier_one_or_refused() {
    let mut value = written(&plan_text(STUDY).unwrap());
    let second = value["runs"].as_array().unwrap().iter().position(|row| row.get("like").is_some()).unwrap();
    for (like, said) in
        [(json!(24), "`like` is 24"), (json!("x"), "`like` is \"x\""), (json!(-1), "`like` is -1")]
    {
        value["runs"][second]["like"] = like;
        let error = serde_json::from_value::<Plan>(value.clone()).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("it must be the place of one of"), "{error}");
    }
    value["runs"][second]["like"] = json!(0);
    value["runs"][second]["classes"] = json!(3);
    assert!(serde_json::from_value::<Plan>(value).is_err());
}

#[test]
fn a_line_of_the_text_is_a_run() {
    let plan = plan_text(&STUDY.replace("repetitions: 1", "repetitions: 4")).unwrap();
    let text = to_rows(&plan).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("    {\"id\": \"")).count(),
        96 + 4 - whole_runs(&text)
    );
    assert!(text.starts_with("{\n  \"format\": 2,\n  \"study\": \"trial\","), "{text}");
    assert!(text.ends_with("\n  ]\n}"), "{text}");
    assert_eq!(to_rows(&json!({"a": [], "b": {}, "c": [{"d": [1, 2]}]})).unwrap(), EMPTY);
}

const EMPTY: &str = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    {\"d\": [1, 2]}\n  ]\n}";

fn whole_runs(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("    {\"format\": 1, \"id\": ")).count()
}

#[test]
fn the_largest_plan_is_small() {
    // 100 cells, 1000 repetitions.
    let loads: Vec<String> = (1..=50).map(|load| format!("{}", f64::from(load) / 50.0)).collect();
    let study = STUDY.split("  variant:").next().unwrap();
    let study = study
        .replace("testbed: device", "testbed: simulator")
        .replace("[none, mq-deadline, bfq]", "[fcfs]")
        .replace("clients: 20", "clients: 100")
        .replace("clients: 8", "clients: 100")
        .replace("[0.5, 1.0]", &format!("[{}]", loads.join(", ")))
        .replace("repetitions: 1\n", "repetitions: 1000\n");
    let plan = plan_text(&study).unwrap();
    assert_eq!(plan.runs.len(), 100_000);
    let bytes = to_rows(&plan).unwrap().len();
    assert!(bytes < 20_000_000, "{bytes}");
}
