//! Runs that a study with `precision` needs now, by the last decision about it.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use weir_study::{Plan, Precision, Run};

use crate::exit::bad_input;

/// The file of a study's results that has the last decision. `python -m weir precision` writes it.
const FILE: &str = "precision.json";

#[derive(Deserialize)]
struct Decision {
    /// What was decided about. Another precision is decided about anew.
    precision: Precision,
    /// Repetitions to make.
    repetitions: u32,
    /// Repetitions of cells that are repeated no more, by their ids.
    #[serde(default)]
    stopped: HashMap<String, u32>,
}

/// How often each cell is to be repeated.
pub struct Wanted {
    repetitions: u32,
    stopped: HashMap<String, u32>,
}

impl Wanted {
    /// Every run of a plan.
    pub fn all() -> Self {
        Self { repetitions: u32::MAX, stopped: HashMap::new() }
    }

    /// By the last decision in the folder of a study's results. Without `precision`: every run.
    ///
    /// # Errors
    /// The file of the decision cannot be read, or is no decision.
    pub fn of(plan: &Plan, folder: &Path) -> anyhow::Result<Self> {
        let (Some(precision), Some(first)) = (&plan.precision, plan.first_repetitions) else {
            return Ok(Self::all());
        };
        let before_the_first = Self { repetitions: first, stopped: HashMap::new() };
        let file = folder.join(FILE);
        let wrong = |error: &dyn std::fmt::Display| {
            bad_input(format!(
                "{}: {error}. Remove it and decide again: python -m weir precision",
                file.display()
            ))
        };
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(before_the_first),
            text => text.map_err(|error| wrong(&error))?,
        };
        let decision: Decision = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        if decision.precision != *precision {
            return Ok(before_the_first);
        }
        let repetitions = decision.repetitions.clamp(first, plan.repetitions);
        Ok(Self { repetitions, stopped: decision.stopped })
    }

    /// The same cells, up to another number of repetitions.
    pub fn up_to(self, repetitions: u32) -> Self {
        Self { repetitions, ..self }
    }

    /// Whether a run is to be made.
    pub fn has(&self, run: &Run) -> bool {
        let stopped = self.stopped.get(&run.cell).copied();
        run.block < stopped.unwrap_or(u32::MAX).min(self.repetitions)
    }
}
