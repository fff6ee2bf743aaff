//! Label of runs: keeps results of several kernels or commits apart in one folder.

use serde::{Deserialize, Deserializer, de};
use weir_specs::label_problem;

/// Name of the factor whose levels are the labels.
pub(crate) const LABEL: &str = "label";
/// Level of runs without a label beside runs with one (`analysis/weir/plans.py`).
const UNLABELLED: &str = "unlabelled";

/// The problem of a label. `None` if it is valid.
pub fn problem(label: &str) -> Option<String> {
    if label == UNLABELLED {
        return Some(format!("is `{UNLABELLED}`, which stands for runs without a label: use another"));
    }
    label_problem(label)
}

/// Name of the file of a plan in the study's folder of results.
pub(crate) fn plan_file(label: Option<&str>) -> String {
    label.map_or_else(|| "plan.json".to_owned(), |label| format!("plan@{label}.json"))
}

/// Reads the label of a plan, which is part of a file name.
pub(crate) fn of_plan<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let label = Option::<String>::deserialize(from)?;
    match label.as_deref().and_then(problem) {
        None => Ok(label),
        Some(problem) => {
            Err(de::Error::custom(format!("label: {problem}. Plan the study again: weir plan STUDY --json")))
        }
    }
}
