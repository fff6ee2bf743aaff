//! `weir plan`: the runs that a study stands for, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use weir_runner::Testbed as Devices;
use weir_study::limits::Estimate;
use weir_study::{Plan, Run, Testbed, WHOLE_FORMAT, to_rows};

use crate::analysis;
use crate::exit::{self, bad_input};
use crate::needs::Needs;
use crate::output::{self, Output};
use crate::project::Project;
use crate::shard::is_of_shard;
use crate::wanted::Wanted;

/// Print the runs of a study: order, levels, estimated time. Runs nothing.
///
/// --json prints the whole plan; with --devices including the device of each class.
#[derive(clap::Args)]
pub struct Args {
    /// Name or file of the study.
    study: String,
    /// Label of the runs, in place of that of the study: keeps the runs of two kernels or commits apart in one results folder.
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Only the runs of this testbed, if the study names both.
    #[arg(long)]
    testbed: Option<Only>,
    /// With --testbed: the reason, shown in the report.
    #[arg(long, value_name = "TEXT", default_value = "", requires = "testbed")]
    note: String,
    /// Show the device of each class according to this file (testbed.json). Default: modelled disks.
    #[arg(long, value_name = "FILE")]
    devices: Option<PathBuf>,
    /// With --json: print the plan as plan.json has it, each run with only what differs from the run that `like` names by its place
    /// in the list, from 0.
    #[arg(long, requires = "json")]
    compact: bool,
    /// Leave out runs that this results folder already has; skipped runs are tried again. Of a study with `precision`: only
    /// the repetitions up to the next decision.
    #[arg(long, value_name = "DIR")]
    missing: Option<PathBuf>,
    /// With --missing: repeat invalid runs, too.
    #[arg(long, requires = "missing")]
    retry_invalid: bool,
    /// With --missing: also leave out skipped runs.
    #[arg(long, requires = "missing")]
    leave_skipped: bool,
    /// Leave out all other runs.
    #[arg(long = "id", value_name = "ID", value_delimiter = ',')]
    ids: Vec<String>,
    /// With --json: also the ids of simulated runs by host, as `weir simulate --shard 1/N` to `N/N` divide them.
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u32).range(1..))]
    shards: Option<u32>,
    /// Print commands of `weir simulate`, one a line, each for at most N runs: for GNU parallel, HyperQueue or the array jobs of
    /// Slurm. With --missing DIR the commands write there, and finished runs are left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(conflicts_with_all = ["compact", "shards", "needs", "power", "devices"])]
    tasks: Option<u32>,
    /// Print what a host needs for the runs on devices, as JSON: commands and their Debian packages, parts of the kernel and their
    /// modules, memory, disks, devices to model. --devices FILE names its disks and mounts.
    #[arg(long)]
    needs: bool,
    /// Print how many repetitions show a change of 5, 10 and 20 %, and the time that they take. The study's runs so far are the
    /// pilot.
    #[arg(long, conflicts_with_all = ["testbed", "devices", "compact", "shards", "missing", "ids", "needs"])]
    power: bool,
    /// With --power: the folder of results. Default: that of the project.
    #[arg(long, value_name = "DIR", requires = "power")]
    results: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Only {
    Device,
    Simulator,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    let devices = args.devices.as_deref().map(Devices::read).transpose().map_err(bad_input)?;
    let project = Project::find()?;
    let mut plan = project.plan(&args.study, args.label.as_deref())?;
    if args.power {
        return Err(analysis::power(&project, &plan.study, args.results.as_deref(), output.is_json()));
    }
    if let Some(only) = args.testbed {
        let testbed = match only {
            Only::Device => Testbed::Device,
            Only::Simulator => Testbed::Simulator,
        };
        if !plan.testbeds.contains(&testbed) {
            return Err(bad_input(format!("{}: has no runs on testbed {}", plan.study, testbed.name())));
        }
        plan = plan.on(testbed, &args.note);
    }
    let mut all = plan.runs.len();
    if let Some(results) = &args.missing {
        let folder = results.join(&plan.study);
        let done = |folder: &Path| {
            let again = args.retry_invalid && weir_runner::is_invalid(folder);
            folder.is_dir() && !again && (args.leave_skipped || !weir_runner::is_skipped(folder))
        };
        let wanted = Wanted::of(&plan, &folder)?;
        all = plan.runs.iter().filter(|run| wanted.has(run)).count();
        plan = plan.of_runs(|run| wanted.has(run) && !done(&folder.join(&run.id)));
    }
    let missing = plan.runs.len();
    if !args.ids.is_empty() {
        // An empty list of a script is `--id ""`.
        if let Some(id) =
            args.ids.iter().find(|id| !id.is_empty() && !plan.runs.iter().any(|run| run.id == **id))
        {
            return Err(bad_input(format!("--id {id}: study {} has no such run here", plan.study)));
        }
        plan = plan.of_runs(|run| args.ids.contains(&run.id));
    }
    if let Some(size) = args.tasks {
        return tasks(&args, &plan, size as usize, output);
    }
    if args.needs {
        let needs = Needs::of(&plan.runs, &devices.unwrap_or_default());
        output::document(&needs)?;
    } else if output.is_json() {
        println!("{}", json(&plan, args.compact, devices.as_ref(), args.shards)?);
    } else {
        print(&plan, all - missing, devices.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the commands that simulate the runs.
fn tasks(args: &Args, plan: &Plan, size: usize, output: Output) -> anyhow::Result<ExitCode> {
    let ids: Vec<&str> =
        plan.runs.iter().filter(|run| run.testbed.is_virtual()).map(|run| run.id.as_str()).collect();
    if ids.is_empty() && !plan.testbeds.iter().any(|testbed| testbed.is_virtual()) {
        return Err(bad_input(format!(
            "--tasks: {} has no runs in virtual time. Runs on devices are Ansible's: make study STUDY={}",
            plan.study, plan.study
        )));
    }
    let results = args.missing.as_deref().unwrap_or(Path::new("results"));
    let results =
        results.to_str().ok_or_else(|| bad_input(format!("--missing {}: not UTF-8", results.display())))?;
    let mut common = format!("{} --out {} --jobs 1", shell_word(&args.study), shell_word(results));
    if let Some(label) = &args.label {
        common += &format!(" --label {}", shell_word(label));
    }
    let command = |ids: &[&str]| format!("weir simulate {common} --id {}", ids.join(","));
    let commands: Vec<String> = ids.chunks(size).map(command).collect();
    if output.is_json() {
        output::document(&serde_json::json!({"study": plan.study, "commands": commands}))?;
    } else {
        commands.iter().for_each(|command| println!("{command}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The word as a shell reads it back.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The plan, with the medium of each class if the testbed is known, and with the shards that were asked for.
fn json(
    plan: &Plan,
    is_compact: bool,
    devices: Option<&Devices>,
    shards: Option<u32>,
) -> anyhow::Result<String> {
    if is_compact && devices.is_none() && shards.is_none() {
        return Ok(to_rows(plan)?);
    }
    let mut value = serde_json::to_value(plan)?;
    if !is_compact {
        value["format"] = WHOLE_FORMAT.into();
        value["runs"] = serde_json::to_value(&plan.runs)?;
    }
    if let Some(devices) = devices {
        let media = |run: &Run| (run.id.clone(), weir_runner::of_classes(run, devices));
        value["media"] = serde_json::to_value(plan.runs.iter().map(media).collect::<BTreeMap<_, _>>())?;
        value["media_by_class"] = serde_json::to_value(media_by_class(plan, devices))?;
    }
    if let Some(parts) = shards {
        let of_part = |part| plan.runs.iter().filter(move |run| is_of_shard(run, part, parts));
        let ids = (0..parts).map(|part| of_part(part).map(|run| run.id.as_str()).collect());
        value["shards"] = serde_json::to_value(ids.collect::<Vec<Vec<_>>>())?;
    }
    Ok(if is_compact { to_rows(&value)? } else { serde_json::to_string_pretty(&value)? })
}

/// What each class is carried out on, in any of the runs.
fn media_by_class(plan: &Plan, devices: &Devices) -> BTreeMap<String, BTreeSet<String>> {
    let mut media: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (class, medium) in plan.runs.iter().flat_map(|run| weir_runner::of_classes(run, devices)) {
        media.entry(class).or_default().insert(medium);
    }
    media
}

fn print(plan: &Plan, done: usize, devices: Option<&Devices>) {
    println!("{}: {}", plan.study, plan.question);
    if !plan.note.is_empty() {
        println!("  {}", plan.note);
    }
    for (factor, levels) in &plan.factors {
        println!("  {factor}: {levels}");
    }
    for (class, media) in media_by_class(plan, devices.unwrap_or(&Devices::default())) {
        let media = media.into_iter().collect::<Vec<_>>().join(", or ");
        println!("  class {class} on {media}");
    }
    if devices.is_none() && plan.testbeds.contains(&Testbed::Device) {
        println!("  (an inventory may list real disks instead: --devices FILE)");
    }
    let done = if done > 0 { format!(", {done} more are done") } else { String::new() };
    println!("  {} runs{done}, about {}", plan.runs.len(), duration(plan.estimate_s));
    let duplicates = plan.runs.iter().filter(|run| run.duplicate).count();
    if duplicates > 0 {
        println!("  {duplicates} of them are duplicates (A/A): they show how far equal cells differ");
    }
    if let (Some(precision), Some(first)) = (&plan.precision, plan.first_repetitions) {
        println!("  {first} to {} repetitions, until the precision is reached", precision.at_most);
    }
    println!("  largest run: {}", asked(plan.largest_run));
    for run in &plan.runs {
        println!("{:>5}  {}  {}", run.order, run.id, describe(run));
    }
}

/// Estimated requests and memory of a run.
fn asked(run: Estimate) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let mut text = format!("about {} requests, {} MiB of memory", run.requests, mib(run.memory_bytes));
    if run.device_bytes > 0 {
        text += &format!(", {} MiB of files written to devices", mib(run.device_bytes));
    }
    if run.table_bytes > 0 {
        text += &format!(", {} MiB of tables", mib(run.table_bytes));
    }
    text
}

/// One line that tells a run from the others of its study.
pub fn describe(run: &Run) -> String {
    let level = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let levels: Vec<String> =
        run.levels.iter().map(|(name, value)| format!("{name}={}", level(value))).collect();
    let duplicate = if run.duplicate { ", duplicate" } else { "" };
    format!("repetition {}{duplicate} {}", run.repetition + 1, levels.join(" "))
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor();
    if minutes >= 1.0 {
        format!("{minutes} min {:.0} s", seconds - minutes * 60.0)
    } else {
        format!("{seconds:.0} s")
    }
}
