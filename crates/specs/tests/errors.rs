//! Tests that every mistake is reported with file, line and field.

use std::path::Path;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use weir_specs::{Document, Problem, Problems};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Study {
    name: String,
    classes: Vec<Class>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Class {
    clients: u32,
    arrivals: Arrivals,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
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
        assert!(problem.message.contains("expected text; if the text is meant"), "{}", problem.message);
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
    assert!(problem.message.contains("`classes` is missing"), "{}", problem.message);
}

#[test]
fn a_field_given_twice_is_refused() {
    assert!(only(&format!("{GOOD}name: again\n")).message.contains("name"));
}

fn all(text: &str) -> Vec<String> {
    let document = Document::from_text(Path::new("study.yml"), text).unwrap();
    document.parse_all::<Study>().unwrap_err().0.iter().map(ToString::to_string).collect()
}

#[test]
fn all_problems_of_a_file_are_found_at_once() {
    let text =
        "name: 7\nclasess: []\nclasses:\n  - clients: two\n    arrivals:\n      poisson: {rate: 3}\n  - {}\n";
    let expected = [
        "study.yml:4: classes.0.clients: found the text `two`, expected a whole number of 0 or more",
        "study.yml:6: classes.0.arrivals.poisson.rate: unknown field (known: rate_per_s)",
        "study.yml:6: classes.0.arrivals.poisson: `rate_per_s` is missing: expected a number",
        "study.yml:7: classes.1: `arrivals` is missing: expected {closed: ...} or {poisson: ...}",
        "study.yml:7: classes.1: `clients` is missing: expected a whole number of 0 or more",
        "study.yml:1: name: found `7`, expected text; if the text is meant, put it in quotes",
    ];
    let found = all(text);
    for line in expected {
        assert!(found.iter().any(|one| one == line), "{line}\n{found:#?}");
    }
    assert!(
        found
            .iter()
            .any(|one| one.starts_with("study.yml:2: clasess: unknown field; did you mean `classes`?"))
    );
    assert_eq!(found.len(), expected.len() + 1, "{found:#?}");
}

#[test]
fn the_alternative_that_was_meant_is_explained() {
    let arrivals = |text: &str| {
        let text = format!("name: x\nclasses:\n  - clients: 1\n    arrivals: {text}\n");
        let found = all(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].split_once("arrivals").unwrap().1.to_owned()
    };
    assert_eq!(
        arrivals("{poison: {rate_per_s: 3}}"),
        ".poison: unknown field; did you mean `poisson`? (known: poisson, closed)"
    );
    assert_eq!(arrivals("3"), ": found `3`, expected {closed: ...} or {poisson: ...}");
    assert_eq!(
        arrivals("{closed: {depth: -1}}"),
        ".closed.depth: found -1, expected a whole number of 0 or more"
    );
}

#[test]
fn words_of_the_parser_are_not_shown() {
    let texts = ["[1", "a: b: c", "name: x\nname: y", "hello", "", "classes: [{clients: 1.5}]", "- a"];
    for text in texts {
        let found = match Document::from_text(Path::new("study.yml"), text) {
            Ok(document) => document.parse_all::<Study>().unwrap_err().to_string(),
            Err(problems) => problems.to_string(),
        };
        for word in ["struct", "u32", "invalid type", "DuplicateKeyPolicy", "unit value", "Options"] {
            assert!(!found.contains(word), "{text}: {found}");
        }
    }
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

/// Far below what the parser's stack or the machine's memory would bear: all of these ended in minutes or in an abort.
#[test]
fn documents_that_would_exhaust_memory_stack_or_time_are_refused() {
    use std::fmt::Write as _;
    let deep = ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000) + "a"];
    for text in &deep {
        assert!(only(text).message.contains("is nested too deeply (at most 64 levels"), "{}", only(text));
    }
    let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let uses = vec![format!("*a{}", level - 1); 9].join(",");
        let _ = writeln!(laughs, "a{level}: &a{level} [{uses}]");
    }
    assert!(
        only(&laughs).message.contains("has too many nodes, each use of an anchor counted"),
        "{}",
        only(&laughs)
    );
    assert!(!parse("a: &a [*a]").unwrap_err().0.is_empty());
    // Each key was compared with each other.
    let keys: String = (0..90_000).fold(String::new(), |mut text, key| {
        let _ = writeln!(text, "k{key}: 1");
        text
    });
    let began = std::time::Instant::now();
    assert!(only(&keys).message.contains("unknown field"), "{}", only(&keys));
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn what_is_no_specification_is_not_read_to_its_end() {
    let said = |path: &Path| Document::read(path).map(drop).unwrap_err().to_string();
    let endless = Path::new("/dev/zero");
    assert!(
        said(endless).contains("/dev/zero: is longer; at most 1048576 bytes are read"),
        "{}",
        said(endless)
    );
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.yml");
    std::fs::File::create(&large).unwrap().set_len(1 << 30).unwrap();
    assert!(said(&large).contains("is 1073741824 bytes long; at most 1048576"), "{}", said(&large));
    let binary = folder.path().join("binary.yml");
    std::fs::write(&binary, b"name: a\n\xff\xfe").unwrap();
    assert!(said(&binary).contains("is not text in UTF-8 (byte 8, in line 2)"), "{}", said(&binary));
    assert!(said(folder.path()).contains("cannot be read"), "{}", said(folder.path()));
}
