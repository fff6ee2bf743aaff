//! Repetitions that a study with `precision` needs now, by the last decision about it.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use weir_study::{Plan, Precision};

use crate::exit::bad_input;

/// The file of a study's results that has the last decision. `python -m weir precision` writes it.
const FILE: &str = "precision.json";

#[derive(Deserialize)]
struct Decision {
    /// What was decided about. Another precision is decided about anew.
    precision: Precision,
    /// Repetitions to make.
    repetitions: u32,
}

/// Repetitions of each cell to make: all of a study without `precision`.
///
/// # Errors
/// The file of the decision cannot be read, or is no decision.
pub fn repetitions(plan: &Plan, folder: &Path) -> anyhow::Result<u32> {
    let (Some(precision), Some(first)) = (&plan.precision, plan.first_repetitions) else {
        return Ok(plan.repetitions);
    };
    let file = folder.join(FILE);
    let wrong = |error: &dyn std::fmt::Display| {
        bad_input(format!(
            "{}: {error}. Remove it and decide again: python -m weir precision",
            file.display()
        ))
    };
    let text = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(first),
        text => text.map_err(|error| wrong(&error))?,
    };
    let decision: Decision = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    Ok(if decision.precision == *precision {
        decision.repetitions.clamp(first, plan.repetitions)
    } else {
        first
    })
}
