//! `weir completions` and `weir man`: what a package installs beside the binary.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::exit;

/// Print the completions of a shell.
///
/// For bash: `weir completions bash > /usr/share/bash-completion/completions/weir`; for the shell at hand:
/// `source <(weir completions bash)`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "weir", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}

/// Write the manual pages, one for each command.
#[derive(clap::Args)]
pub struct ManArgs {
    /// Folder for weir.1, weir-plan.1 and so on; made if it is not there.
    folder: PathBuf,
}

pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    clap_mangen::generate_to(crate::Cli::command(), folder).with_context(|| folder.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
