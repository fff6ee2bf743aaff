//! `weir verify`: whether runs are as they were written. Archives of `weir pack` are verified by the Python package.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use weir_records::manifest::{Depth, MANIFEST, METRICS, RESULTS_FORMAT_FIELD};
use weir_records::{BlockRequest, Damage, Manifest, Page, Record, Request, SeriesRow, TableReader, sealed};

use crate::analysis;
use crate::exit::{self, bad_input};
use crate::output::{self, Output};

/// The file that only an archive of `weir pack` has (`HEADER` in analysis/weir/pack/archive.py).
const PACKED: &str = "pack.json";

/// Verify that the files of runs are unchanged.
///
/// Reads every file of every run whole: its SHA-256 as the run's manifest.json has it, files that are missing
/// or not listed, checksums
/// of pages in tables, times that cannot be, JSON that is none. Each problem is a line that names the file.
/// Exit code 1 if
/// there is one. A run made before weir wrote manifests is counted, and its files are checked for what can be
/// known without.
///
/// An archive of `weir pack`, or the folder that one was unpacked to: its checksums, and every number of metrics,
/// figures and claims, computed again from raw rows. Exit codes: 0 verified, 1 something differs, 2 bad input.
#[derive(clap::Args)]
pub struct Args {
    /// A run's folder, a study's, or a folder of results; or one archive of `weir pack`.
    #[arg(required = true)]
    path: Vec<PathBuf>,
    /// Count a run without a manifest as damaged.
    #[arg(long)]
    strict: bool,
}

/// Result of the check.
#[derive(Default)]
struct Found {
    runs: u64,
    unsealed: u64,
    damaged: u64,
    problems: Vec<Damage>,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    if let Some(archive) = args.path.iter().find(|path| path.is_file() || path.join(PACKED).is_file()) {
        return verify_archive(archive, &args, output);
    }
    let mut found = Found::default();
    let mut runs = BTreeSet::new();
    for path in &args.path {
        runs.extend(runs_in(path, &mut found.problems)?);
    }
    let of_studies = found.problems.len();
    for folder in &runs {
        found.check(folder, args.strict);
    }
    report(&found, output)?;
    Ok(if found.damaged == 0 && of_studies == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replaces this process by the package's verification of an archive.
fn verify_archive(archive: &Path, args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    if args.path.len() > 1 || args.strict {
        return Err(bad_input(format!(
            "{}: an archive is verified alone and without --strict: give no other path or option but --json",
            archive.display()
        )));
    }
    let mut rest = vec![archive.as_os_str().to_owned()];
    rest.extend(output.is_json().then(|| "--json".into()));
    analysis::run("verify", &analysis::Args::of(rest))
}

fn report(found: &Found, output: Output) -> anyhow::Result<()> {
    let Found { runs, unsealed, damaged, problems } = found;
    if output.is_json() {
        let problems: Vec<Value> =
            problems.iter().map(|problem| json!({"file": problem.file, "problem": problem.what})).collect();
        let counts = json!({"runs": runs, "damaged": damaged, "unsealed": unsealed, "problems": problems});
        return output::line(&counts);
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    let old = match unsealed {
        0 => String::new(),
        _ => format!(", {unsealed} without a manifest (made by weir before it wrote them)"),
    };
    println!("{runs} runs: {} as they were written, {damaged} damaged{old}", runs - damaged - unsealed);
    if *damaged > 0 {
        println!(
            "Remove the folder of a damaged run and carry out the study again: only what is missing is run"
        );
    }
    Ok(())
}

/// The folders of runs in a folder: itself, or those of the study or the studies in it.
fn runs_in(path: &Path, problems: &mut Vec<Damage>) -> anyhow::Result<Vec<PathBuf>> {
    // Of `.` the name is asked for.
    let path = &path.canonicalize().map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    if is_run(path) {
        return Ok(vec![path.clone()]);
    }
    let inner = folders(path)?;
    if let Some(runs) = runs_of_study(path, &inner, problems) {
        return Ok(runs);
    }
    let mut all = Vec::new();
    for study in &inner {
        all.extend(runs_of_study(study, &folders(study)?, problems).unwrap_or_default());
    }
    if all.is_empty() {
        return Err(bad_input(format!(
            "{}: holds no run (a folder with run.json): name a run's folder, a study's, or a folder of results",
            path.display()
        )));
    }
    Ok(all)
}

/// The runs of a study; `None` if it is no study's folder.
fn runs_of_study(study: &Path, inner: &[PathBuf], problems: &mut Vec<Damage>) -> Option<Vec<PathBuf>> {
    let plans = plans(study);
    let mut planned = BTreeSet::new();
    for file in &plans {
        let ids = |plan: &Value| -> Option<BTreeSet<String>> {
            plan["runs"].as_array()?.iter().map(|run| Some(run["id"].as_str()?.to_owned())).collect()
        };
        match read_json(file).map(|plan| ids(&plan)) {
            Ok(Some(ids)) => planned.extend(ids),
            Ok(None) => problems.push(Damage::of(file, "lists no runs: is damaged, or is no plan")),
            Err(problem) => problems.push(problem),
        }
    }
    // A planned run's folder that lost its run.json is one all the same.
    let is_planned = |folder: &PathBuf| {
        folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| planned.contains(name))
    };
    let runs: Vec<PathBuf> =
        inner.iter().filter(|folder| is_run(folder) || is_planned(folder)).cloned().collect();
    (!runs.is_empty() || !plans.is_empty()).then_some(runs)
}

/// The plans of a study: `plan.json`, and `plan@LABEL.json` for each label.
fn plans(study: &Path) -> Vec<PathBuf> {
    let is_plan = |name: &str| name == "plan.json" || (name.starts_with("plan@") && name.ends_with(".json"));
    let entries = std::fs::read_dir(study).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_plan))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn is_run(folder: &Path) -> bool {
    folder.join("run.json").exists() || folder.join(MANIFEST).exists()
}

/// Complete folders in a folder.
fn folders(of: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let named = |error: std::io::Error| bad_input(format!("{}: {error}", of.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(of).map_err(named)? {
        let entry = entry.map_err(named)?;
        if entry.file_type().map_err(named)?.is_dir()
            && !entry.file_name().as_encoded_bytes().starts_with(b".")
        {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

impl Found {
    fn check(&mut self, folder: &Path, strict: bool) {
        self.runs += 1;
        let before = self.problems.len();
        let sealed = match Manifest::read(folder) {
            Err(damage) => {
                self.problems.push(damage);
                true
            }
            Ok(Some(manifest)) => {
                self.compare(folder, &manifest);
                true
            }
            Ok(None) => false,
        };
        // A file that is known to differ need not be read.
        let known: BTreeSet<PathBuf> =
            self.problems[before..].iter().map(|problem| problem.file.clone()).collect();
        for (name, check) in CONTENT {
            let file = folder.join(name);
            if file.exists() && !known.contains(&file) {
                self.problems.extend(check(&file).err());
            }
        }
        self.check_run(folder, sealed, &known);
        self.problems.extend(metrics(folder));
        if !sealed && strict {
            self.problems.push(Damage::of(&folder.join(MANIFEST), "is missing: the run was never sealed"));
        }
        if self.problems.len() > before {
            self.damaged += 1;
        } else if !sealed {
            self.unsealed += 1;
        }
    }

    fn compare(&mut self, folder: &Path, manifest: &Manifest) {
        let name = folder.file_name().unwrap_or_default();
        if name != manifest.run.as_str() {
            let what = format!("is of run {}; its folder is called {}", manifest.run, name.display());
            self.problems.push(Damage::of(&folder.join(MANIFEST), what));
        }
        match manifest.compare(folder, Depth::Content) {
            Ok(differences) => self.problems.extend(differences),
            Err(damage) => self.problems.push(damage),
        }
    }

    /// `run.json` says whose folder it is, and whether it was sealed.
    fn check_run(&mut self, folder: &Path, sealed: bool, known: &BTreeSet<PathBuf>) {
        let file = folder.join("run.json");
        if known.contains(&file) {
            return;
        }
        let run = match read_json(&file) {
            Ok(run) => run,
            Err(problem) => return self.problems.push(problem),
        };
        let name = folder.file_name().unwrap_or_default();
        if run["id"].as_str().is_none_or(|id| name != id) {
            let what = format!("id is {}; its folder is called {}", run["id"], name.display());
            self.problems.push(Damage::of(&file, what));
        }
        if !sealed && !run[RESULTS_FORMAT_FIELD].is_null() {
            self.problems.push(Damage::of(&folder.join(MANIFEST), "is missing: the run had one"));
        }
    }
}

/// Damages of a run's folder, which must have a manifest.
pub fn damages(folder: &Path) -> Vec<Damage> {
    let mut found = Found::default();
    found.check(folder, true);
    found.problems
}

type Check = fn(&Path) -> Result<(), Damage>;

/// Content check of a run's files, by name.
const CONTENT: [(&str, Check); 12] = [
    ("requests.parquet", table::<Request>),
    ("pages.parquet", table::<Page>),
    ("series.parquet", table::<SeriesRow>),
    ("block.parquet", table::<BlockRequest>),
    ("host.json", document),
    ("observed.json", document),
    ("summary.json", document),
    ("series.json", document),
    ("verdict.json", document),
    ("admission.json", document),
    ("load.json", document),
    ("part.json", document),
];

/// Every row of a table, with the checksums of its pages.
fn table<R: Record>(file: &Path) -> Result<(), Damage> {
    let whole = || TableReader::<R>::open(file)?.try_for_each(|row| row.map(drop));
    whole().map_err(|error| {
        let text = error.to_string();
        let what = text.strip_prefix(&format!("{}: ", file.display())).unwrap_or(&text);
        Damage::of(file, what)
    })
}

fn document(file: &Path) -> Result<(), Damage> {
    read_json(file).map(drop)
}

fn read_json(file: &Path) -> Result<Value, Damage> {
    let text = std::fs::read(file).map_err(|error| Damage::of(file, format!("cannot be read ({error})")))?;
    match serde_json::from_slice(&text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Damage::of(file, "is no JSON object")),
        Err(error) => Err(Damage::of(file, format!("is no JSON ({error})"))),
    }
}

/// Definitions of metrics from which on `metrics.json` has a checksum (`DEFINITIONS` in analysis/weir/derive.py).
const SEALED_METRICS: u64 = 4;

/// Metrics can be computed again. They are damaged only if the analysis would accept them.
fn metrics(folder: &Path) -> Option<Damage> {
    let file = folder.join(METRICS);
    let text = match std::fs::read(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Damage::of(&file, format!("cannot be read ({error})"))),
        Ok(text) => text,
    };
    let sealed = std::str::from_utf8(&text).ok().and_then(sealed::unseal).map(|(object, _)| object);
    let document: Value =
        serde_json::from_slice(sealed.as_deref().map_or(&*text, str::as_bytes)).unwrap_or_default();
    let what = if sealed.is_none() {
        let is_old = document["definitions"].as_u64().is_some_and(|version| version < SEALED_METRICS);
        (!is_old).then_some("is damaged: its checksum does not match its content")
    } else {
        let manifest = std::fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
        let expected = sealed::unseal(&manifest).map(|(_, checksum)| checksum);
        (document["manifest"].as_str() != expected)
            .then_some("was computed from other files than the run has")
    };
    what.map(|what| Damage::of(&file, format!("{what}. Remove it: it is computed again")))
}
