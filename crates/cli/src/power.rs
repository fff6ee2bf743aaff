//! `weir plan --power`: the analysis `python -m weir power` of the project's Python environment.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::exit::bad_input;
use crate::project::Project;

/// The Python that `make setup` installs, relative to the project.
const PYTHON: &str = ".venv/bin/python";

/// Replaces this process by the analysis. Returns only if the process cannot be replaced.
pub fn analyse(project: &Project, study: &str, results: Option<&Path>) -> anyhow::Error {
    let python = project.root().join(PYTHON);
    if !python.is_file() {
        return bad_input(format!("{}: there is no Python environment. Run `make setup`", python.display()));
    }
    let mut command = Command::new(&python);
    command.args(["-m", "weir", "power", study]).env("WEIR_ROOT", project.root());
    if let Some(results) = results {
        command.arg("--results").arg(results);
    }
    anyhow::Error::new(command.exec()).context(python.display().to_string())
}
