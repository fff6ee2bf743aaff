//! Plans and runs read from files, and their limits.

use std::path::Path;

use weir_study::limits::Excess;
use weir_study::{Plan, Run};

use crate::exit::bad_input;

/// Bytes of a plan that are read: one of 100,000 runs has 400 MB.
const MOST_PLAN_BYTES: u64 = 1 << 29;

/// A run, or that of a plan which has the id.
///
/// # Errors
/// The file cannot be read, is neither, has no such run, or the run is beyond a limit.
pub fn read_run(file: &Path, id: Option<&str>) -> anyhow::Result<Run> {
    let named = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", file.display()));
    let text = weir_specs::read_text(file, MOST_PLAN_BYTES).map_err(|error| named(&error))?;
    let run: Run = match id {
        None => serde_json::from_str(&text).map_err(|error| named(&error))?,
        Some(id) => {
            let plan: Plan = serde_json::from_str(&text).map_err(|error| named(&error))?;
            let found = plan.runs.into_iter().find(|run| run.id == id);
            found.ok_or_else(|| named(&format!("has no run {id}")))?
        }
    };
    check_limits(&run, file)?;
    Ok(run)
}

/// Refuses a run that is beyond a limit. That of a checked study never is; a file may hold anything.
///
/// # Errors
/// The file, the field, what was found and the limit.
fn check_limits(run: &Run, file: &Path) -> anyhow::Result<()> {
    run.check_limits().map_err(|Excess { class, field, message }| {
        let class = if class.is_empty() { String::new() } else { format!("class {class}: ") };
        bad_input(format!("{}: run {}: {class}{field}: {message}", file.display(), run.id))
    })
}

/// A plan, as `weir plan --json` prints it.
///
/// # Errors
/// The file cannot be read, is no plan, or a run is beyond a limit.
pub fn read_plan(file: &Path) -> anyhow::Result<Plan> {
    let named = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", file.display()));
    let text = weir_specs::read_text(file, MOST_PLAN_BYTES).map_err(|error| named(&error))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| named(&error))?;
    plan.runs.iter().try_for_each(|run| check_limits(run, file))?;
    Ok(plan)
}
