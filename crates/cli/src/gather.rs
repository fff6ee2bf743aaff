//! `weir gather`: runs that were simulated elsewhere, taken into a study's results.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use serde_json::json;
use weir_runner::{Gathered, Gathering};
use weir_study::Run;

use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::plan_file::read_plan;
use crate::project::Project;
use crate::simulate::write_plan;
use crate::verify;

/// Most bytes of an archive on standard input, which is kept in memory: 4 GiB.
const MOST_ARCHIVE_BYTES: u64 = 4 << 30;

/// Take runs that were simulated elsewhere into the results of a study.
///
/// An archive is a tar file of run folders, without compression: `tar -cf runs.tar -C DIR/STUDY ID ID ...`. Each run is checked as
/// `weir verify` does, and compared with the plan; a damaged one is left out, and named. Runs that are there are not
/// replaced. Exit codes: 0 all runs are stored, 1 something was left out, 3 some runs are invalid.
#[derive(clap::Args)]
pub struct Args {
    /// Name or file of the study, or its plan (`plan.json`).
    study: String,
    /// The archives.
    #[arg(value_name = "ARCHIVE", required_unless_present = "stream")]
    archives: Vec<PathBuf>,
    /// Folder of results; the study gets a folder in it.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Label of the runs, in place of that of the study.
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Replace invalid runs that are there.
    #[arg(long)]
    retry_invalid: bool,
    /// Read archives from standard input, each after a line with its size in bytes. Prints a line of JSON when it is ready, and
    /// one for each archive: its number, from 0, and the ids of runs that were `stored`, were `present`, are `invalid`, and
    /// `problems`.
    #[arg(long, conflicts_with = "archives")]
    stream: bool,
    /// With --stream: archives in parallel, so that one waits for the disk while another is unpacked.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "stream")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let given = Path::new(&args.study);
    let is_plan = given.extension().is_some_and(|extension| extension == "json");
    let plan = if is_plan {
        read_plan(given)?
    } else {
        Project::find()?.plan(&args.study, args.label.as_deref())?
    };
    let runs: HashMap<&str, &Run> =
        plan.runs.iter().filter(|run| run.testbed.is_virtual()).map(|run| (run.id.as_str(), run)).collect();
    if runs.is_empty() {
        return Err(bad_input(format!(
            "{}: has no runs in virtual time. Runs on devices are fetched by Ansible: make study STUDY={}",
            plan.study, plan.study
        )));
    }
    for archive in &args.archives {
        File::open(archive).map_err(|error| bad_input(format!("{}: {error}", archive.display())))?;
    }
    let results = args.out.join(&plan.study);
    std::fs::create_dir_all(&results)
        .map_err(|error| bad_input(format!("--out {}: {error}", results.display())))?;
    weir_runner::sweep(&results)?.iter().for_each(|left| eprintln!("{left}"));
    if !is_plan {
        write_plan(&plan, &results)?;
    }
    let planned = |id: &str| runs.get(id).copied();
    let gathering = Gathering {
        results: &results,
        planned: &planned,
        check: &verify::damages,
        retry_invalid: args.retry_invalid,
    };
    if args.stream {
        output::line(&json!({"ready": plan.study}))?;
        return stream(&gathering, args.jobs);
    }
    let mut all = Gathered::default();
    for archive in &args.archives {
        let open = File::open(archive).with_context(|| archive.display().to_string())?;
        let found = gathering.take(BufReader::new(open))?;
        found.problems.iter().for_each(|problem| eprintln!("{}: {problem}", archive.display()));
        all.problems.extend(found.problems);
        all.stored.extend(found.stored);
        all.invalid.extend(found.invalid);
        all.present.extend(found.present);
    }
    let problems = all.problems.len();
    let text = format!(
        "{}: {} runs stored, {} of them INVALID; {} were there already; {problems} problems",
        plan.study,
        all.stored.len(),
        all.invalid.len(),
        all.present.len()
    );
    let mut document = serde_json::to_value(&all)?;
    document["study"] = json!(plan.study);
    document["folder"] = output::text(&results).into();
    output.result(&document, text)?;
    if problems > 0 {
        eprintln!(
            "Simulate what was left out again: weir plan {} --missing {}",
            plan.study,
            args.out.display()
        );
    }
    Ok(match (problems, all.invalid.len()) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    })
}

/// Takes archives of standard input until it ends.
fn stream(gathering: &Gathering, jobs: u8) -> anyhow::Result<ExitCode> {
    let input = Mutex::new((BufReader::new(std::io::stdin()), 0_u64));
    let worker = || -> anyhow::Result<()> {
        loop {
            let (number, archive) = {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(archive) = next(&mut input.0)? else { return Ok(()) };
                input.1 += 1;
                (input.1 - 1, archive)
            };
            let mut reply = serde_json::to_value(gathering.take(&*archive)?)?;
            reply["archive"] = number.into();
            let mut output = std::io::stdout().lock();
            writeln!(output, "{reply}").and_then(|()| output.flush()).context("standard output")?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        let ends = workers
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.collect::<anyhow::Result<Vec<()>>>()
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The next archive; `None` at the end.
fn next(input: &mut impl BufRead) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if input.take(32).read_line(&mut line).context("standard input")? == 0 {
        return Ok(None);
    }
    let size_bytes = line.trim_end().parse().ok().filter(|size| *size <= MOST_ARCHIVE_BYTES);
    let size_bytes: u64 = size_bytes.ok_or_else(|| {
        bad_input(format!(
            "standard input: found {line:?}, expected the size of an archive in bytes, at most {MOST_ARCHIVE_BYTES}"
        ))
    })?;
    let mut archive = Vec::new();
    input.take(size_bytes).read_to_end(&mut archive).context("standard input")?;
    if archive.len() as u64 != size_bytes {
        // The sender was killed. What it sent before is stored.
        return Ok(None);
    }
    Ok(Some(archive))
}
