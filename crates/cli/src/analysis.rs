//! Commands of the Python package: `weir report` is `python -m weir report`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::exit::bad_input;
use crate::project::Project;

/// The Python that `make setup` installs, relative to the project.
const PYTHON: &str = ".venv/bin/python";

/// What brings the package where there is no checkout. No package registry has it: a wheel is a file.
pub const INSTALL: &str = "python3 -m venv .venv && .venv/bin/pip install weir_bench-*.whl (the wheel that make packages builds), in the folder of the project";

/// Arguments of a command of the Python package, passed on as they are.
#[derive(clap::Args)]
pub struct Args {
    /// Arguments; --help explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    rest: Vec<OsString>,
}

impl Args {
    /// These arguments.
    pub fn of(rest: Vec<OsString>) -> Self {
        Self { rest }
    }
}

/// Replaces this process by a command of the package.
pub fn run(command: &str, args: &Args) -> anyhow::Result<ExitCode> {
    let project = Project::find()?;
    let python = python(&project)?;
    let mut process = Command::new(&python);
    process.args(["-m", "weir", command]).args(&args.rest).env("WEIR_ROOT", project.root());
    Err(anyhow::Error::new(process.exec()).context(python.display().to_string()))
}

/// Replaces this process by the power analysis. Returns only if the process cannot be replaced.
pub fn power(project: &Project, study: &str, results: Option<&Path>, is_json: bool) -> anyhow::Error {
    let python = match python(project) {
        Ok(python) => python,
        Err(error) => return error,
    };
    let mut command = Command::new(&python);
    command.args(["-m", "weir", "power", study]).env("WEIR_ROOT", project.root());
    if let Some(results) = results {
        command.arg("--results").arg(results);
    }
    if is_json {
        command.arg("--json");
    }
    anyhow::Error::new(command.exec()).context(python.display().to_string())
}

/// Replaces this process by the one that lets the workers of a Dask scheduler simulate the runs of a study.
///
/// # Errors
/// There is no Python with the package, or the process cannot be replaced.
pub fn simulate(
    address: &str,
    study: &str,
    results: &Path,
    label: Option<&str>,
    retry_invalid: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let project = Project::find()?;
    let python = python(&project)?;
    let mut command = Command::new(&python);
    command.args(["-m", "weir", "simulate", study, "--dask", address, "--out"]).arg(results);
    if let Some(label) = label {
        command.args(["--label", label]);
    }
    if retry_invalid {
        command.arg("--retry-invalid");
    }
    if is_json {
        command.arg("--json");
    }
    command.env("WEIR_ROOT", project.root());
    // The same binary makes the plan, is compared with those of the workers, and stores the runs.
    if let Ok(own) = std::env::current_exe() {
        command.env("WEIR_BINARY", own);
    }
    Err(anyhow::Error::new(command.exec()).context(python.display().to_string()))
}

/// Why there is no Python with the package; none if there is one.
pub fn missing(project: &Project) -> Option<String> {
    python(project).err().map(|error| error.to_string())
}

/// A Python that has the package: that of `WEIR_PYTHON`, of the project, beside this program, or on PATH.
fn python(project: &Project) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("WEIR_PYTHON") {
        return Ok(named.into());
    }
    let own = project.root().join(PYTHON);
    if own.is_file() {
        return Ok(own);
    }
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("python3")));
    let candidates = beside.into_iter().filter(|path| path.is_file()).chain([PathBuf::from("python3")]);
    let has_package = |python: &PathBuf| {
        let silent = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        silent(Command::new(python).args(["-c", "import weir.cli"])).is_ok_and(|status| status.success())
    };
    candidates.into_iter().find(has_package).ok_or_else(|| {
        bad_input(format!(
            "no Python with the package weir was found ({} is absent, and python3 has none). In a checkout call `make setup`; \
             elsewhere {INSTALL}; or name the Python in WEIR_PYTHON",
            own.display()
        ))
    })
}
