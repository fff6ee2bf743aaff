//! `weir init`: a folder for studies of one's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use weir_specs::name_problem;

use crate::exit::bad_input;
use crate::output::{self, Output, WrittenFile};
use crate::project::{STUDIES, WORKLOADS};

/// Make a folder for studies of your own: a study in virtual time to begin with, and room for workloads and results.
///
/// The studies and workloads that come with weir are known in it by name; a file of the same name overrides one.
#[derive(clap::Args)]
pub struct Args {
    /// The folder, which must be empty or absent; the first study has its name.
    folder: PathBuf,
}

const STUDY: &str = include_str!("init_study.yml");
const README: &str = include_str!("init_readme.md");

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    let name = name_of(folder)?;
    if let Ok(mut entries) = folder.read_dir() {
        if entries.next().is_some() {
            return Err(bad_input(format!(
                "{}: is not empty. Name a folder that is empty or absent",
                folder.display()
            )));
        }
    } else if folder.exists() {
        return Err(bad_input(format!(
            "{}: is no folder. Name a folder that is empty or absent",
            folder.display()
        )));
    }
    let write = |path: PathBuf, text: &str| {
        let text = text.replace("NAME", &name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        WrittenFile::at(&path)
    };
    for inner in [STUDIES, WORKLOADS, "results"] {
        let inner = folder.join(inner);
        fs::create_dir_all(&inner).with_context(|| inner.display().to_string())?;
    }
    let files = [
        write(folder.join(STUDIES).join(format!("{name}.yml")), STUDY)?,
        write(folder.join("README.md"), README)?,
        write(folder.join(".gitignore"), "/results/\n")?,
    ];
    let made = format!("{}: a project with the study {name}", folder.display());
    output.result(&json!({"study": name, "folder": output::text(folder), "files": files}), made)?;
    let enter = match folder.as_path() == Path::new(".") {
        true => String::new(),
        false => format!("cd {} && ", folder.display()),
    };
    output.say(format_args!("next: {enter}weir simulate {name} && weir report {name}"));
    Ok(ExitCode::SUCCESS)
}

/// The name of the folder, as that of a study.
fn name_of(folder: &Path) -> anyhow::Result<String> {
    let named = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
    let name = named.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name_problem(&name) {
        None => Ok(name),
        Some(message) => Err(bad_input(format!("{}: as the name of a study it {message}", folder.display()))),
    }
}
