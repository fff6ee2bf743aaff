//! `weir workload`: holds a workload against the figures that it declares.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use weir_specs::Document;
use weir_workload::{Achieved, Calibration, STATISTICS, Workload, calibrate, movie};

use crate::exit::{self, bad_input};
use crate::output::{self, Output, WrittenFile};
use crate::project::Project;

/// Calibrate and inspect one workload.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Calibrate(Calibrate),
    Frames(Frames),
    /// List the statistics that a target may name.
    Statistics,
}

/// Generate a workload with several seeds and compare statistics with its targets.
///
/// Exit code 1 if the mean over the seeds misses a band.
#[derive(clap::Args)]
struct Calibrate {
    /// Name of a workload, or the path of its file.
    spec: String,
    /// Number of seeds: 1, 2, and so on.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
}

/// Write the frames of a video workload, one size in bytes on each line, in display order.
///
/// What is written is a trace: `weir trace stat F --option unit=bytes --option rate_hz=25` describes it.
#[derive(clap::Args)]
struct Frames {
    /// Name of a workload, or the path of its file.
    spec: String,
    /// File to write.
    #[arg(long, value_name = "F")]
    out: PathBuf,
    /// Seed; the same seed gives the film that `weir generate` shows its clients.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length in seconds of a film that has none of its own.
    #[arg(long, default_value_t = 200.0)]
    duration_s: f64,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    match args.command {
        Command::Calibrate(args) => run_calibrate(&args, output),
        Command::Frames(args) => run_frames(&args, output),
        Command::Statistics => run_statistics(output),
    }
}

fn run_calibrate(args: &Calibrate, output: Output) -> anyhow::Result<ExitCode> {
    let (workload, folder) = load(&args.spec)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let calibration = calibrate(&workload, &folder, args.seeds, threads).map_err(bad_input)?;
    if output.is_json() {
        output::document(&calibration)?;
    } else {
        print(&calibration);
    }
    Ok(if calibration.is_met() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The workload of a name or a path, and the folder that paths in it are relative to.
fn load(spec: &str) -> anyhow::Result<(Workload, PathBuf)> {
    let path = Path::new(spec);
    if path.extension().is_some() || path.components().count() > 1 {
        let document = Document::read(path).map_err(bad_input)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return Ok((Workload::from_document(&document).map_err(bad_input)?, folder));
    }
    let catalog = Project::find()?.workloads()?;
    Ok((catalog.load(spec).map_err(bad_input)?, catalog.folder_of(spec).to_owned()))
}

fn run_frames(args: &Frames, output: Output) -> anyhow::Result<ExitCode> {
    let (workload, folder) = load(&args.spec)?;
    if !(args.duration_s > 0.0 && args.duration_s < 1e7) {
        return Err(bad_input(format!(
            "--duration-s is {}; it must be above 0 and below 1e7",
            args.duration_s
        )));
    }
    let movie =
        movie(&workload, &folder, args.seed, args.duration_s).map_err(bad_input)?.ok_or_else(|| {
            bad_input(format!("workload `{}` is no video: its sizes are not `frames`", workload.name))
        })?;
    let file = std::fs::File::create(&args.out)
        .map_err(|error| bad_input(format!("{}: cannot be written: {error}", args.out.display())))?;
    let mut out = std::io::BufWriter::new(file);
    for bytes in &movie.frames_bytes {
        writeln!(out, "{bytes}")?;
    }
    out.flush()?;
    let (frames, rate_hz) = (movie.frames_bytes.len(), movie.rate_hz);
    let files = [WrittenFile::at(&args.out)?];
    let document = json!({"workload": workload.name, "files": files, "frames": frames, "rate_hz": rate_hz});
    output
        .result(&document, format_args!("{}: {frames} frames at {rate_hz} a second", args.out.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn run_statistics(output: Output) -> anyhow::Result<ExitCode> {
    if output.is_json() {
        let rows: Vec<_> = STATISTICS
            .iter()
            .map(|s| json!({"name": s.name, "unit": s.unit, "needs": s.needs, "meaning": s.meaning}))
            .collect();
        output::document(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = STATISTICS.iter().map(|statistic| statistic.name.len()).max().unwrap_or(0);
    for statistic in STATISTICS {
        let needs = statistic.needs.map_or_else(String::new, |needs| format!(" (needs {needs})"));
        println!("{:width$}  {}{needs}", statistic.name, statistic.meaning);
    }
    Ok(ExitCode::SUCCESS)
}

/// A Markdown table, which a terminal shows as well as a page does.
fn print(calibration: &Calibration) {
    let Calibration { workload, seeds, clients, duration_s, figures } = calibration;
    println!("{workload}: {seeds} seeds, {clients} clients, {duration_s} s each\n");
    let header =
        ["statistic", "target", "band", "achieved", "95 % interval", "seeds from-to", "met", "source"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(figures.iter().map(row));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("| {} |", cells.join(" | "));
        if at == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            println!("| {} |", rules.join(" | "));
        }
    }
    if *seeds == 1 {
        println!("\nOne seed has no interval: use --seeds 2 or more.");
    }
}

fn row(figure: &Achieved) -> [String; 8] {
    let pair = |pair: [f64; 2]| format!("{} - {}", number(pair[0]), number(pair[1]));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
    [
        figure.target.label(),
        format!("{}{unit}", number(figure.target.value)),
        pair(figure.band),
        or_none(figure.mean.map(number)),
        or_none(figure.interval.map(pair)),
        or_none(figure.range.map(pair)),
        if figure.is_met { "yes" } else { "NO" }.into(),
        figure.target.source.clone(),
    ]
}

/// Four significant digits, whole numbers whole.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    if value.fract() == 0.0 || digits <= 0 {
        return format!("{value:.0}");
    }
    format!("{value:.*}", digits as usize)
}
