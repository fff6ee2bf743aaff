//! Comparison that answers the question of a study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
