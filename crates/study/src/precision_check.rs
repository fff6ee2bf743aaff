//! Check of the field `precision` of a study.

use serde_json::Value;
use weir_specs::one_of;

use crate::cells::{TESTBED, levels_by_factor, same};
use crate::precision::{Precision, Stop};
use crate::spec::Study;
use crate::testbed::Testbed;

/// Metrics that are positive, so that their logarithms have intervals.
const METRICS: [&str; 9] = [
    "response_mean_ms",
    "response_p50_ms",
    "response_p90_ms",
    "response_p95_ms",
    "response_p99_ms",
    "response_p999_ms",
    "response_max_ms",
    "throughput_mb_s",
    "requests_per_s",
];
/// Most repetitions of a study.
const MOST_REPETITIONS: u32 = 1000;

/// Problems, by field.
pub(crate) fn check(study: &Study) -> Vec<(String, String)> {
    let Some(precision) = &study.precision else { return Vec::new() };
    let mut problems = Vec::new();
    let mut problem = |field: &str, message: String| problems.push((format!("precision{field}"), message));
    for (field, value) in [(".width", precision.width), (".effect", precision.effect)] {
        if let Some(value) = value.filter(|value| !(0.001..=10.0).contains(value)) {
            problem(field, format!("is {value}; it must be from 0.001 (0.1 %) to 10"));
        }
    }
    match (precision.width, precision.effect) {
        (None, None) => problem("", "has neither `width` nor `effect`: say `effect: 0.1`".to_owned()),
        (Some(_), Some(_)) => problem("", "has both `width` and `effect`: remove one".to_owned()),
        (None, Some(_)) if precision.cell.is_some() => {
            problem(".effect", "needs a comparison, but `cell` names means: use `width`".to_owned());
        }
        _ => {}
    }
    if precision.stop == Stop::Each && precision.cell.is_none() {
        let message = "is `each`, but a comparison needs its levels together: name the cells with `cell` (all: `cell: {}`)";
        problem(".stop", message.to_owned());
    }
    if !(0.5..=0.999).contains(&precision.confidence) {
        problem(".confidence", format!("is {}; it must be from 0.5 to 0.999", precision.confidence));
    }
    if !(study.repetitions.max(2)..=MOST_REPETITIONS).contains(&precision.at_most) {
        let (found, least) = (precision.at_most, study.repetitions.max(2));
        problem(".at_most", format!("is {found}; it must be from {least} to {MOST_REPETITIONS}"));
    }
    if let Some(class) = precision.class.as_ref().filter(|class| !study.classes.contains_key(*class)) {
        problem(".class", one_of("class", class, study.classes.keys().map(String::as_str)));
    }
    if let Some(metric) = precision.metric.as_deref().filter(|metric| !METRICS.contains(metric)) {
        problem(".metric", one_of("metric", metric, METRICS));
    }
    if study.repetitions < 2 {
        let message = "needs `repetitions: 2` or more: the first decision is made after them";
        problem("", message.to_owned());
    }
    if study.classes.is_empty() || study.testbed.all().contains(&Testbed::Admission) {
        problem("", "judges the responses of classes, which this study does not have: remove it".to_owned());
    }
    if study.hosts.is_some() {
        problem("", "cannot be combined with `hosts`: remove one of them".to_owned());
    }
    let factors = levels_by_factor(study);
    match &precision.cell {
        Some(cell) => cell_problems(cell.iter(), &factors).for_each(|(field, text)| problem(&field, text)),
        None if !has_comparison(study, precision, &factors) => {
            let message =
                "needs a comparison: give `comparison: {factor: ...}`, or `cell` for means of cells";
            problem("", message.to_owned());
        }
        None => {}
    }
    problems
}

/// Whether there are levels to compare: of the study's `comparison`, or of a factor of names.
fn has_comparison(study: &Study, precision: &Precision, factors: &[(String, Vec<Value>)]) -> bool {
    let has_names = |(name, levels): &(String, Vec<Value>)| {
        name != TESTBED && levels.len() > 1 && !levels.iter().all(Value::is_number)
    };
    precision.cell.is_some() || study.comparison.is_some() || factors.iter().any(has_names)
}

fn cell_problems<'a>(
    cell: impl Iterator<Item = (&'a String, &'a Value)>,
    factors: &[(String, Vec<Value>)],
) -> impl Iterator<Item = (String, String)> {
    cell.filter_map(|(name, wanted)| {
        let field = format!(".cell.{name}");
        let Some((_, levels)) = factors.iter().find(|(known, _)| known == name) else {
            let known = factors.iter().map(|(name, _)| name.as_str());
            return Some((field, one_of("factor", name, known)));
        };
        if levels.iter().any(|level| same(level, wanted)) {
            return None;
        }
        let known: Vec<String> = levels.iter().map(Value::to_string).collect();
        Some((field, format!("is {wanted}, which is no level of `{name}`: use one of {}", known.join(", "))))
    })
}
