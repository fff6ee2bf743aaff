//! Precision at which a study stops: repetitions are added block by block until it is reached.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the repetitions of a study are to reach. One of `width` and `effect` is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Precision {
    /// Class whose metric is judged. Every class if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Metric, such as `response_p95_ms` or `throughput_mb_s`. If absent: the response quantile of the class's objective,
    /// and the 95th percentile without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Levels of factors: the means of the cells with these levels are judged, instead of the study's comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<BTreeMap<String, Value>>,
    /// Relative half-width at which an interval is narrow enough: 0.1 is from 1/1.1 to 1.1 times its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// Relative change that matters: 0.1 stops as soon as each interval excludes 1, or excludes every change of 10 % or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<f64>,
    /// With `cell`: whether all cells stop together, or `each` as soon as its own means are precise enough.
    #[serde(default, skip_serializing_if = "Stop::is_together")]
    pub stop: Stop,
    /// Confidence of the intervals, which is kept however early the study stops: of all together, or with `stop: each` of each one.
    #[serde(default = "default_confidence")]
    pub confidence: f64,
    /// Most repetitions of each cell.
    pub at_most: u32,
}

/// Which cells are repeated until the precision is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Every cell, as long as any interval is too wide.
    #[default]
    Together,
    /// Those of which a mean is not precise enough. Cells that `cell` does not name are repeated as long as any other one.
    Each,
}

impl Stop {
    /// Whether all cells stop together.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
    fn is_together(&self) -> bool {
        *self == Self::Together
    }
}

fn default_confidence() -> f64 {
    0.95
}
