//! `weir completions` and `weir man`: what a package installs beside the binary.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap_complete::Shell;
use serde_json::json;

use crate::exit;
use crate::output::{self, Output, WrittenFile};

/// Print the completions of a shell.
///
/// For bash: `weir completions bash > /usr/share/bash-completion/completions/weir`; for the shell at hand:
/// `source <(weir completions bash)`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

pub fn run(args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "weir", &mut script);
    let script = String::from_utf8(script)?;
    output.result(&json!({"shell": args.shell.to_string(), "script": script}), script.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Write the manual pages, one for each command.
#[derive(clap::Args)]
pub struct ManArgs {
    /// Folder for weir.1, weir-plan.1 and so on; made if it is not there.
    folder: PathBuf,
}

pub fn man(args: &ManArgs, output: Output) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    clap_mangen::generate_to(crate::command(), folder).with_context(|| folder.display().to_string())?;
    if output.is_json() {
        let mut pages: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        pages
            .retain(|page| page.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"weir")));
        pages.sort();
        let files = pages.iter().map(|page| WrittenFile::at(page)).collect::<anyhow::Result<Vec<_>>>()?;
        output::document(&json!({"files": files}))?;
    }
    Ok(ExitCode::SUCCESS)
}
