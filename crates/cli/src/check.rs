//! `weir check`: problems of studies and workloads. Changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weir_specs::{Document, Problems};
use weir_workload::sessions::AnyWorkload;

use crate::exit;
use crate::output::{self, Output};
use crate::project::Project;

/// Check study and workload files.
#[derive(clap::Args)]
pub struct Args {
    /// Study or workload files; without any, all of the project.
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    file: PathBuf,
    kind: &'static str,
    problems: Vec<String>,
    /// Limit of its use, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// What `weir check` says of every workload of sessions.
const SESSIONS: &str = "a workload of sessions asks a web site, not a disk: weir generate writes its interactions; \
    a study can use it for a class that goes through a service with a site";

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let project = Project::find()?;
    let files = if args.files.is_empty() { all_files(&project)? } else { args.files };
    let reports: Vec<Report> = files.into_iter().map(|file| check(&project, file)).collect();
    if output.is_json() {
        output::document(&reports)?;
    } else {
        for report in &reports {
            if report.problems.is_empty() {
                println!("{}: ok ({})", report.file.display(), report.kind);
                report.note.iter().for_each(|note| println!("  note: {note}"));
            }
            report.problems.iter().for_each(|problem| eprintln!("{problem}"));
        }
    }
    let bad = reports.iter().any(|report| !report.problems.is_empty());
    Ok(if bad { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn all_files(project: &Project) -> anyhow::Result<Vec<PathBuf>> {
    let workloads = project.workloads()?;
    let mut files: Vec<PathBuf> = workloads
        .names()
        .chain(workloads.session_names())
        .filter_map(|name| workloads.file(name).map(Path::to_owned))
        .collect();
    for study in project.studies()? {
        files.push(project.study_file(&study)?);
    }
    Ok(files)
}

fn check(project: &Project, file: PathBuf) -> Report {
    let (kind, checked) = match kind_of(&file) {
        Ok(kind @ ("workload" | "sessions")) => {
            (kind, Document::read(&file).and_then(|document| workload(&document)))
        }
        Ok(kind) => (kind, project.check_study(&file).map(drop)),
        Err(problems) => ("unreadable", Err(problems)),
    };
    let problems = match checked {
        Ok(()) => Vec::new(),
        Err(problems) => problems.0.iter().map(ToString::to_string).collect(),
    };
    let note = (kind == "sessions" && problems.is_empty()).then_some(SESSIONS);
    Report { file, kind, problems, note }
}

/// A workload by itself, with its recording if it has one.
fn workload(document: &Document) -> Result<(), Problems> {
    if let AnyWorkload::Requests(workload) = AnyWorkload::from_document(document)? {
        let folder = document.file().parent().unwrap_or(Path::new(""));
        workload
            .look_for_recording(folder)
            .map_err(|(field, message)| Problems::from(document.problem(field, message)))?;
    }
    Ok(())
}

/// A workload says when its clients ask, or what sessions they have; a study has classes.
fn kind_of(file: &Path) -> Result<&'static str, Problems> {
    let document = Document::read(file)?;
    let has = |field: &str| document.value().get(field).is_some();
    Ok(match (has("classes"), has("sessions"), has("arrivals")) {
        (false, true, _) => "sessions",
        (false, false, true) => "workload",
        _ => "study",
    })
}
