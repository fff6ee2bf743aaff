//! Validity rules and their outcomes: `verdict.json`.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a rule, or of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The rule holds.
    Valid,
    /// The rule is broken: the run's data are not plotted.
    Invalid,
    /// The rule does not apply, or could not be checked; the reason says why.
    Skipped,
    /// Another program carried out the run (`weir import results`): no rule was judged, and its data are used as they are.
    Imported,
}

/// Outcome of one rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleOutcome {
    /// Id of the rule, documented in docs/reference/validity.md.
    pub rule: String,
    /// Whether the rule holds.
    pub status: Status,
    /// Reason, as text.
    pub reason: String,
    /// Measured value, if it is a number.
    pub value: Option<f64>,
    /// Limit, if it is a number.
    pub limit: Option<f64>,
}

/// Validity of a run: `verdict.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Invalid if any rule is broken.
    pub status: Status,
    /// All rules, in a fixed order.
    pub rules: Vec<RuleOutcome>,
    /// Whether only rules about time are broken and there was CPU steal: a new attempt may be valid.
    #[serde(default)]
    pub disturbed: bool,
    /// Number of the attempt, from 1; CPU steal disturbed the earlier ones.
    #[serde(default = "first")]
    pub attempt: u32,
}

fn first() -> u32 {
    1
}

impl Validity {
    /// Validity that follows from rules, at the first attempt.
    pub(crate) fn of(rules: Vec<RuleOutcome>) -> Validity {
        let broken = rules.iter().any(|rule| rule.status == Status::Invalid);
        let status = if broken { Status::Invalid } else { Status::Valid };
        Validity { status, rules, disturbed: false, attempt: first() }
    }
}

/// Whether a folder holds an invalid run.
pub fn is_invalid(folder: &Path) -> bool {
    is_in(folder, Status::Invalid)
}

/// Whether a folder holds a run that this host could not carry out.
pub fn is_skipped(folder: &Path) -> bool {
    is_in(folder, Status::Skipped)
}

fn is_in(folder: &Path, status: Status) -> bool {
    let text = std::fs::read(folder.join("verdict.json")).unwrap_or_default();
    serde_json::from_slice::<Validity>(&text).is_ok_and(|validity| validity.status == status)
}

/// The validity of a run that this host could not carry out.
pub(crate) fn skipped(why: &str) -> Validity {
    let rules = vec![outcome("R-CONTROL", Status::Skipped, why)];
    Validity { status: Status::Skipped, ..Validity::of(rules) }
}

/// Rules about time, which CPU steal may break.
const RULES_OF_TIME: [&str; 5] = ["R-LATE", "R-SPAN", "R-START", "R-MODEL", "R-WAY"];

impl RuleOutcome {
    pub(super) fn is_broken(&self) -> bool {
        self.status == Status::Invalid
    }

    pub(super) fn is_of_time(&self) -> bool {
        RULES_OF_TIME.contains(&self.rule.as_str())
    }
}

pub(crate) fn outcome(rule: &str, status: Status, reason: impl Into<String>) -> RuleOutcome {
    RuleOutcome { rule: rule.to_owned(), status, reason: reason.into(), value: None, limit: None }
}

pub(super) fn at_most(rule: &str, value: f64, limit: f64, what: &str) -> RuleOutcome {
    let status = if value <= limit { Status::Valid } else { Status::Invalid };
    RuleOutcome { value: Some(value), limit: Some(limit), ..outcome(rule, status, what) }
}
