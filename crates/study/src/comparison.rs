//! Comparison that answers the question of a study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_specs::one_of;

use crate::cells::{levels_by_factor, same};
use crate::spec::Study;

/// Levels of one factor, each compared with a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Factor whose levels are compared.
    pub factor: String,
    /// Level that the others are compared with. The factor's first level if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Value>,
}

/// Problems, by field.
pub(crate) fn check(study: &Study) -> Vec<(String, String)> {
    let Some(comparison) = &study.comparison else { return Vec::new() };
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
