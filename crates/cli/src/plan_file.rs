//! Plans and runs read from files, and their limits.

use std::path::Path;

use serde::de::DeserializeOwned;
use weir_study::limits::Excess;
use weir_study::{Plan, Run};

use crate::exit::bad_input;

/// Bytes of a plan that are read: one of 100,000 runs had 500 MB in version 1 of the layout.
const MOST_PLAN_BYTES: u64 = 1 << 29;

/// Reads a run, or the run of a plan that has the id.
///
/// # Errors
/// The file cannot be read, is neither, has no such run, or the run is beyond a limit.
pub fn read_run(file: &Path, id: Option<&str>) -> anyhow::Result<Run> {
    let run = match id {
        None => read(file)?,
        Some(id) => {
            let found = read::<Plan>(file)?.runs.into_iter().find(|run| run.id == id);
            found.ok_or_else(|| bad_input(format!("{}: has no run {id}", file.display())))?
        }
    };
    check_limits(&run, file)?;
    Ok(run)
}

/// Refuses a run that is beyond a limit. Runs of a checked study are within the limits, but a file may have any text.
///
/// # Errors
/// File, field, found value and limit.
fn check_limits(run: &Run, file: &Path) -> anyhow::Result<()> {
    run.check_limits().map_err(|Excess { class, field, message }| {
        let class = if class.is_empty() { String::new() } else { format!("class {class}: ") };
        bad_input(format!("{}: run {}: {class}{field}: {message}", file.display(), run.id))
    })
}

/// Reads a plan, as `weir plan --json` prints it.
///
/// # Errors
/// The file cannot be read, is no plan, or a run is beyond a limit.
pub fn read_plan(file: &Path) -> anyhow::Result<Plan> {
    let plan: Plan = read(file)?;
    plan.runs.iter().try_for_each(|run| check_limits(run, file))?;
    Ok(plan)
}

fn read<T: DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let named = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", file.display()));
    let text = weir_specs::read_text(file, MOST_PLAN_BYTES).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}
