//! Checks of the fields `comparison` and `duplicate` of a study.

use serde_json::Value;
use weir_specs::{label_problem, one_of};

use crate::cells::{levels_by_factor, same};
use crate::label::LABEL;
use crate::spec::Study;
use crate::testbed::Testbed;

/// Problems, by field.
pub(crate) fn check(study: &Study) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if study.duplicate == Some(true) && !study.testbed.all().contains(&Testbed::Device) {
        let message = "needs testbed `device`: in virtual time equal cells have equal results".to_owned();
        found.push(("duplicate".to_owned(), message));
    }
    found.extend(baseline(study));
    found
}

fn baseline(study: &Study) -> Vec<(String, String)> {
    let Some(comparison) = &study.comparison else { return Vec::new() };
    if comparison.factor == LABEL {
        // Its levels are the labels of the results.
        let baseline = comparison.baseline.as_ref();
        let wrong =
            baseline.filter(|level| level.as_str().is_none_or(|label| label_problem(label).is_some()));
        return wrong
            .map(|level| {
                (
                    "comparison.baseline".to_owned(),
                    format!("is {level}, which is no label: give its text in quotes"),
                )
            })
            .into_iter()
            .collect();
    }
    let factors: Vec<(String, Vec<Value>)> =
        levels_by_factor(study).into_iter().filter(|(_, levels)| levels.len() > 1).collect();
    let Some((_, levels)) = factors.iter().find(|(name, _)| *name == comparison.factor) else {
        let known = factors.iter().map(|(name, _)| name.as_str());
        return vec![("comparison.factor".to_owned(), one_of("varied factor", &comparison.factor, known))];
    };
    match &comparison.baseline {
        Some(baseline) if !levels.iter().any(|level| same(level, baseline)) => {
            let known: Vec<String> = levels.iter().map(Value::to_string).collect();
            let message = format!(
                "is {baseline}, which is no level of `{}`: use one of {}",
                comparison.factor,
                known.join(", ")
            );
            vec![("comparison.baseline".to_owned(), message)]
        }
        _ => Vec::new(),
    }
}
