//! Every mistake is reported with its file, line and field.

use std::path::Path;

use proptest::prelude::*;
use serde::Deserialize;
use weir_specs::{Document, Problem, Problems};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Study {
    name: String,
    classes: Vec<Class>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Class {
    clients: u32,
    arrivals: Arrivals,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Arrivals {
    Poisson { rate_per_s: f64 },
    Closed { depth: u32 },
}

fn parse(text: &str) -> Result<Study, Problems> {
    Document::from_text(Path::new("study.yml"), text)?.parse()
}

fn only(text: &str) -> Problem {
    let problems = parse(text).unwrap_err().0;
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}

const GOOD: &str = "name: quick\nclasses:\n  - clients: 2\n    arrivals:\n      poisson: {rate_per_s: 3}\n";

#[test]
fn a_good_document_parses() {
    let study = parse(GOOD).unwrap();
    assert_eq!(study.classes[0].arrivals, Arrivals::Poisson { rate_per_s: 3.0 });
}

#[test]
fn an_unknown_field_names_its_line_and_the_nearest_name() {
    let problem = only(&GOOD.replace("clients", "cleints"));
    assert_eq!((problem.line, problem.field.as_str()), (Some(3), "classes.0.cleints"));
    assert!(problem.message.ends_with("did you mean `clients`?"), "{}", problem.message);
}

#[test]
fn a_word_that_yaml_takes_for_something_else_is_to_be_quoted() {
    for word in ["null", "off", "7"] {
        let problem = only(&GOOD.replace("quick", word));
        assert_eq!((problem.line, problem.field.as_str()), (Some(1), "name"));
        assert!(problem.message.contains("expected a string; if that"), "{}", problem.message);
    }
}

#[test]
fn an_unknown_field_inside_a_variant_is_placed_too() {
    let problem = only(&GOOD.replace("rate_per_s", "rate"));
    assert_eq!((problem.line, problem.field.as_str()), (Some(5), "classes.0.arrivals.poisson.rate"));
}

#[test]
fn an_unknown_variant_names_the_nearest() {
    let problem = only(&GOOD.replace("poisson", "poison"));
    assert_eq!(problem.line, Some(4));
    assert!(problem.message.contains("did you mean `poisson`?"), "{}", problem.message);
}

#[test]
fn a_wrong_type_names_what_was_found() {
    let problem = only(&GOOD.replace("clients: 2", "clients: many"));
    assert_eq!((problem.line, problem.field.as_str()), (Some(3), "classes.0.clients"));
    assert!(problem.message.contains("many"), "{}", problem.message);
}

#[test]
fn a_missing_field_is_named() {
    let problem = only("name: quick\n");
    assert!(problem.message.contains("missing field `classes`"), "{}", problem.message);
}

#[test]
fn a_field_given_twice_is_refused() {
    assert!(only(&format!("{GOOD}name: again\n")).message.contains("name"));
}

#[test]
fn a_problem_prints_like_a_compiler_would() {
    let text = parse(&GOOD.replace("clients", "cleints")).unwrap_err().to_string();
    assert!(text.starts_with("study.yml:3: classes.0.cleints: unknown field"), "{text}");
}

#[test]
fn a_file_that_is_absent_is_named() {
    let error = Document::read(Path::new("/nonexistent/x.yml")).err().unwrap();
    assert!(error.to_string().starts_with("/nonexistent/x.yml: cannot be read"), "{error}");
}

proptest! {
    #[test]
    fn whatever_the_text_nothing_panics(text in "[ -~\n]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_damaged_document_never_panics(at in 0..GOOD.len(), byte in 0x20u8..0x7f) {
        let mut text = GOOD.as_bytes().to_vec();
        text[at] = byte;
        let _ = parse(std::str::from_utf8(&text).unwrap());
    }
}
