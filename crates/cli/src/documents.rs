//! `weir documents`: the files of a workload as a tree that a web server serves.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use weir_web_client::tree::{self, LaidOut};
use weir_web_client::{Documents, Error, Folders, Visit, Visitors};

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::project::Project;
use crate::with::WithArgs;

/// Write the documents of a workload to a folder for a web server, or check such a folder.
///
/// Names and bytes are those that `weir run` writes for a class of this name and seed, and that `weir browse`
/// expects with the same --seed, --class and --with. Up to 10,000 documents are in DIR itself (000000.dat,
/// 000001.dat, ...), more in folders of a thousand (001/001000.dat). A folder with the same documents is kept;
/// a folder with other files is refused. After a failure nothing is left.
///
/// Exit codes: 0 done, or the tree is right; 1 the tree is wrong, or the work failed; 2 bad input.
#[derive(clap::Args)]
pub struct Args {
    /// Name of a workload that reads whole files, such as zipf-class0.
    workload: String,
    /// Folder of the tree.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    with: WithArgs,
    /// Seed of the sizes and bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name of the class, on which sizes and bytes depend; the workload's own if absent.
    #[arg(long)]
    class: Option<String>,
    /// Put all documents in one folder, as `weir run` does.
    #[arg(long)]
    flat: bool,
    /// Compare every byte of an existing tree; write nothing.
    #[arg(long)]
    check: bool,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let catalog = Project::find()?.workloads()?;
    let workload = args.with.load(&catalog, &args.workload)?;
    let visitors = Visitors {
        class: args.class.clone().unwrap_or_else(|| args.workload.clone()),
        seed: args.seed,
        folders: args.flat.then_some(Folders::One),
        visit: Visit::Closed { clients: 0, think_ns: 0.0 },
        warmup_ns: 0,
        duration_ns: 0,
        folder: catalog.folder_of(&args.workload).to_owned(),
        threads: 1,
    };
    let documents = visitors.documents(&workload).map_err(bad_input)?;
    if args.check { check(&args, &documents, output) } else { lay_out(&args, &documents, output) }
}

fn lay_out(args: &Args, documents: &Documents, output: Output) -> anyhow::Result<ExitCode> {
    let bar = progress_bar(documents.total_bytes());
    let laid_out = tree::lay_out(documents, &args.out, |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let laid_out = laid_out.map_err(|error| match error {
        Error::Tree { .. } => bad_input(error),
        other => anyhow::Error::new(other),
    })?;
    let (files, bytes) = (documents.sizes_bytes().len(), documents.total_bytes());
    let written = laid_out == LaidOut::Written;
    if output.is_json() {
        output::line(&serde_json::json!({"documents": files, "bytes": bytes, "written": written}))?;
    } else {
        let what = if written { "laid out" } else { "there already" };
        println!("{}: {files} documents of {bytes} bytes in all, {what}", args.out.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: &Args, documents: &Documents, output: Output) -> anyhow::Result<ExitCode> {
    if !args.out.is_dir() {
        return Err(bad_input(format!("--out {}: there is no such folder to check", args.out.display())));
    }
    let checked = tree::check(documents, &args.out)?;
    if output.is_json() {
        output::document(&checked)?;
    } else {
        println!(
            "{}: {} of {} documents are right ({} bytes)",
            args.out.display(),
            checked.right,
            documents.sizes_bytes().len(),
            checked.bytes
        );
        checked.named.iter().for_each(|what| println!("wrong: {what}"));
        let more = checked.wrong - checked.named.len();
        if more > 0 {
            println!("wrong: {more} more");
        }
    }
    Ok(if checked.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn progress_bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {binary_bytes}/{binary_total_bytes}, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
