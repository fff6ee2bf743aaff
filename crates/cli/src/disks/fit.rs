//! `weir disks protocol` and `weir disks fit`: a flash profile from measurements of a drive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_simulator::flash_fit::{CELLS, Cell, CellTimes, Times, errors, fit, halves, predict};
use weir_simulator::profile::{self, FlashProfile, FlashStart, Profile, SsdProfile};

use crate::exit::bad_input;
use crate::output::{self, Output, WrittenFile};

/// Seconds of a cell, so that all of them take ten minutes, with the writes before them.
const CELL_S: u32 = 24;
/// Seconds that are not counted before each.
const RAMP_S: u32 = 3;
/// Fewest cells that a fit needs.
const FEWEST: usize = 6;
/// Options of fio with which a job is no closed loop of one size, at addresses in order or uniformly random.
const OTHER_LOOPS: &[&str] = &[
    "bsrange",
    "bssplit",
    "rate",
    "rate_iops",
    "rate_min",
    "thinktime",
    "fsync",
    "fdatasync",
    "random_distribution",
    "zonemode",
    "read_iolog",
    "percentage_random",
    "nrfiles",
    "rate_process",
];

/// Print the fio job file that measures a drive for `weir disks fit`.
///
/// It first writes the region, then runs 20 closed loops of 27 s each. DATA IN THE REGION ARE LOST. Run it with
/// `fio --output-format=json --output=drive.json FILE`.
#[derive(clap::Args)]
pub struct ProtocolArgs {
    /// Block device or file of the drive.
    #[arg(long)]
    filename: String,
    /// Size of the region, in GiB, from the beginning.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    gib: u32,
    /// Seconds of each loop.
    #[arg(long, default_value_t = CELL_S, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
}

/// Fit a flash profile to the measurements of a drive.
///
/// LOG is the JSON output of fio: of the job file of `weir disks protocol`, or of any closed loops with `direct=1`. Jobs
/// of the same operation, size and depth are averaged. Half of the loops are held out: the profile is not fitted to them, and their
/// errors tell how good the profile is. The profile is printed as YAML.
#[derive(clap::Args)]
pub struct FitArgs {
    /// JSON output of fio, one file or several.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Profile to start from: one with `flash`.
    #[arg(long, default_value = "ssd-nvme")]
    from: String,
    /// State of the drive before its writes were measured: written at random until they were steady, or written in order with
    /// flash to spare.
    #[arg(long, default_value = "steady")]
    state: State,
    /// File to write, instead of printing the profile.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// State of a drive.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum State {
    Steady,
    Written,
}

pub fn protocol(args: &ProtocolArgs, output: Output) -> anyhow::Result<ExitCode> {
    if args.filename.contains(['\n', ':']) {
        return Err(bad_input(format!(
            "--filename {:?}: fio separates names by `:`. Use a path without it",
            args.filename
        )));
    }
    let mut text = format!(
        "# Measures a drive for `weir disks fit`. DATA IN THE REGION ARE LOST.\n\
         # fio --output-format=json --output=drive.json THIS-FILE\n\
         [global]\nfilename={}\nsize={}g\ndirect=1\nioengine=libaio\ntime_based=1\nruntime={}\nramp_time={RAMP_S}\n\
         randrepeat=1\nnorandommap=1\nlat_percentiles=1\nclat_percentiles=0\npercentile_list=50:90:99:99.9\n\n\
         [fill]\nrw=write\nbs=128k\niodepth=32\ntime_based=0\nramp_time=0\nstonewall\n",
        args.filename, args.gib, args.seconds
    );
    for cell in CELLS {
        let rw = match (cell.sequential, cell.read_share) {
            (true, 1.0) => "read".to_owned(),
            (true, _) => "write".to_owned(),
            (false, 1.0) => "randread".to_owned(),
            (false, 0.0) => "randwrite".to_owned(),
            (false, share) => format!("randrw\nrwmixread={:.0}", share * 100.0),
        };
        let kib = cell.size_bytes / 1024;
        write!(text, "\n[{cell}]\nrw={rw}\nbs={kib}k\niodepth={}\nstonewall\n", cell.depth)?;
    }
    output.result(&json!({"filename": args.filename, "job_file": text}), text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The part of fio's JSON output that is used.
#[derive(Deserialize)]
struct Log {
    #[serde(default, rename = "global options")]
    options: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(default, rename = "job options")]
    options: BTreeMap<String, String>,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    #[serde(default)]
    slat_ns: Latency,
    #[serde(default)]
    clat_ns: Latency,
    lat_ns: Latency,
}

#[derive(Default, Deserialize)]
struct Latency {
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

impl Latency {
    fn p99_ns(&self) -> Option<f64> {
        let is_p99 = |name: &&String| name.parse::<f64>().is_ok_and(|value| (value - 99.0).abs() < 1e-9);
        self.percentile.keys().find(is_p99).map(|name| self.percentile[name])
    }
}

impl Direction {
    /// Its times; `None` if it has no requests. Without percentiles of the whole latency (fio's default), those from
    /// submission to completion and the mean time of a submission.
    fn times(&self) -> Result<Option<Times>, String> {
        if self.total_ios == 0 {
            return Ok(None);
        }
        let p99_ns = self.lat_ns.p99_ns().or_else(|| Some(self.clat_ns.p99_ns()? + self.slat_ns.mean));
        match p99_ns {
            Some(p99_ns) if [p99_ns, self.lat_ns.mean].iter().all(|ns| *ns > 0.0 && ns.is_finite()) => {
                Ok(Some(Times { mean_ns: self.lat_ns.mean, p99_ns }))
            }
            Some(_) => Err("has a time that is not above 0".to_owned()),
            None => Err("has no 99th percentile of `lat_ns` or `clat_ns`. Run fio with `percentile_list=50:90:99:99.9`"
                .to_owned()),
        }
    }
}

/// The closed loop of a job, or why it is none that a model can repeat.
fn cell_of(global: &BTreeMap<String, String>, job: &Job) -> Result<Cell, String> {
    let option = |name: &str| job.options.get(name).or_else(|| global.get(name)).map(String::as_str);
    if let Some(name) = OTHER_LOOPS.iter().find(|name| option(name).is_some()) {
        return Err(format!("`{name}`: not a closed loop of one size"));
    }
    if option("direct") != Some("1") {
        return Err("without `direct=1`: measures the page cache".to_owned());
    }
    let number = |name: &str, default: u32| match option(name) {
        None => Ok(default),
        Some(text) => text.parse::<u32>().map_err(|_| format!("`{name}={text}`: not a whole number")),
    };
    let rw = option("rw").or_else(|| option("readwrite")).unwrap_or("read");
    let mix = f64::from(number("rwmixread", 100 - number("rwmixwrite", 50)?.min(100))?.min(100)) / 100.0;
    let (read_share, sequential) = match rw {
        "read" => (1.0, true),
        "write" => (0.0, true),
        "randread" => (1.0, false),
        "randwrite" => (0.0, false),
        "randrw" => (mix, false),
        "rw" | "readwrite" => (mix, true),
        _ => return Err(format!("`rw={rw}`: not reads and writes in order or at random")),
    };
    let bs = option("bs").or_else(|| option("blocksize")).unwrap_or("4k");
    let size_bytes = bytes(bs)
        .filter(|size| size.is_multiple_of(512) && (512..=16 << 20).contains(size))
        .ok_or_else(|| format!("`bs={bs}`: not one size from 512 bytes to 16 MiB"))?;
    let jobs = number("numjobs", 1)?;
    if jobs > 1 && sequential {
        return Err(format!("`numjobs={jobs}`: several streams in order"));
    }
    // Engines without a queue have one request at a time.
    let is_queued = option("ioengine")
        .is_some_and(|name| matches!(name, "libaio" | "io_uring" | "io_uring_cmd" | "posixaio"));
    let depth = if is_queued { number("iodepth", 1)? } else { 1 };
    let depth = depth.checked_mul(jobs).filter(|depth| (1..=4096).contains(depth));
    let depth = depth.ok_or_else(|| "more than 4,096 outstanding requests".to_owned())?;
    Ok(Cell { read_share, sequential, size_bytes, depth })
}

/// A size as fio writes it: `4k`, `4096`, `1m`.
fn bytes(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, unit) = match digits.strip_suffix(['k', 'm']) {
        Some(number) => (number, if digits.ends_with('k') { 1 << 10 } else { 1 << 20 }),
        None => (digits, 1),
    };
    number.parse::<u32>().ok()?.checked_mul(unit)
}

/// The cells of logs. Jobs of the same cell, as repetitions or processes of one job, are averaged, each with the same weight.
fn measured(paths: &[PathBuf]) -> anyhow::Result<Vec<CellTimes>> {
    let mut found: Vec<(Cell, [Vec<Times>; 2])> = Vec::new();
    let mut skipped = Vec::new();
    for path in paths {
        let name = path.display();
        for (job, cell) in jobs_of(path)? {
            let cell = match cell {
                Ok(cell) => cell,
                Err(reason) => {
                    skipped.push(format!("{name}: job `{}`: {reason}", job.jobname));
                    continue;
                }
            };
            if job.error != 0 {
                return Err(bad_input(format!(
                    "{name}: job `{}` failed with errno {}",
                    job.jobname, job.error
                )));
            }
            let at = found.iter().position(|(known, _)| *known == cell).unwrap_or_else(|| {
                found.push((cell, [Vec::new(), Vec::new()]));
                found.len() - 1
            });
            for (of, direction, what) in [(0, &job.read, "read"), (1, &job.write, "write")] {
                let times = direction.times().map_err(|problem| {
                    bad_input(format!("{name}: job `{}`: `{what}` {problem}", job.jobname))
                })?;
                found[at].1[of].extend(times);
            }
        }
    }
    for line in &skipped {
        eprintln!("left out: {line}");
    }
    let average = |times: Vec<Times>| {
        let count = times.len() as f64;
        let mean = |of: fn(&Times) -> f64| times.iter().map(of).sum::<f64>() / count;
        (!times.is_empty())
            .then(|| Times { mean_ns: mean(|one| one.mean_ns), p99_ns: mean(|one| one.p99_ns) })
    };
    let found: Vec<CellTimes> = found
        .into_iter()
        .map(|(cell, [reads, writes])| CellTimes { cell, reads: average(reads), writes: average(writes) })
        .filter(|times| times.reads.is_some() || times.writes.is_some())
        .collect();
    if found.len() < FEWEST {
        let names = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(bad_input(format!(
            "{names}: {} different closed loops (expected at least {FEWEST}). Run the job file of `weir disks protocol`",
            found.len()
        )));
    }
    Ok(found)
}

/// The jobs of a log with their closed loops, or why they are none. The protocol's `fill` is no measurement.
fn jobs_of(path: &Path) -> anyhow::Result<Vec<(Job, Result<Cell, String>)>> {
    let name = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| bad_input(format!("{name}: cannot be read: {error}")))?;
    // fio may print notes before its JSON.
    let start = text.find('{').unwrap_or(0);
    let log: Log = serde_json::from_str(&text[start..]).map_err(|error| {
        bad_input(format!("{name}: is not fio's JSON output: {error}. Use fio --output-format=json"))
    })?;
    let Log { options, jobs } = log;
    Ok(jobs
        .into_iter()
        .filter(|job| job.jobname != "fill")
        .map(|job| {
            let cell = cell_of(&options, &job);
            (job, cell)
        })
        .collect())
}

pub fn run(args: &FitArgs, output: Output) -> anyhow::Result<ExitCode> {
    let loaded = match profile::load(&args.from).map_err(bad_input)? {
        Profile::Ssd(ssd) => ssd.flash.map(|flash| (ssd, flash)),
        Profile::Disk(_) | Profile::Null(_) => None,
    };
    let start = match loaded {
        Some((ssd, flash)) => {
            let start = match args.state {
                State::Steady => FlashStart::Steady,
                State::Written => FlashStart::Written,
            };
            SsdProfile { flash: Some(FlashProfile { start, ..flash }), ..ssd }
        }
        None => {
            return Err(bad_input(format!(
                "--from {}: has no `flash`. Start from a profile that has, such as ssd-nvme",
                args.from
            )));
        }
    };
    if let Some(out) = args.out.as_ref().filter(|out| out.exists()) {
        return Err(bad_input(format!("--out {}: exists already. Name a new file", out.display())));
    }
    let (fitted, held_out) = halves(measured(&args.logs)?);
    let found = fit(&start, &fitted, |error| {
        eprintln!("fitting: root mean square error {:.1} %", 100.0 * error.sqrt())
    });
    let rows = [(fitted, "fitted"), (held_out, "held out")]
        .into_iter()
        .flat_map(|(cells, part)| cells.into_iter().map(move |cell| (cell, part)))
        .map(|(drive, part)| Ok((drive, predict(&found, drive.cell)?, part)))
        .collect::<Result<Vec<_>, profile::ProfileError>>()
        .context("the fitted profile cannot be built")?;
    let errors = report(output, &rows)?;
    let text = yaml(&found, args, &rows)?;
    match &args.out {
        Some(out) => {
            let mut file = fs::File::create_new(out).with_context(|| format!("{}", out.display()))?;
            std::io::Write::write_all(&mut file, text.as_bytes())
                .with_context(|| format!("{}", out.display()))?;
            eprintln!("{}: written", out.display());
        }
        None if output.is_json() => {}
        None => print!("{text}"),
    }
    if let Some(mut document) = errors {
        let files = args.out.iter().map(|out| WrittenFile::at(out)).collect::<anyhow::Result<Vec<_>>>()?;
        document["files"] = json!(files);
        document["profile"] = json!(Profile::Ssd(found));
        output::document(&document)?;
    }
    Ok(ExitCode::SUCCESS)
}

type Row = (CellTimes, CellTimes, &'static str);

/// Mean of the absolute errors of means and of 99th percentiles over all operations of all cells of a part, as factors less 1.
fn summary(rows: &[Row], part: &str) -> (f64, f64) {
    let all: Vec<(f64, f64)> =
        rows.iter().filter(|row| row.2 == part).flat_map(|(drive, model, _)| errors(model, drive)).collect();
    let mean =
        |of: fn(&(f64, f64)) -> f64| all.iter().map(|one| of(one).abs()).sum::<f64>() / all.len() as f64;
    (mean(|one| one.0).exp_m1(), mean(|one| one.1).exp_m1())
}

/// Largest errors of a mean and of a 99th percentile with which the model is called close to the drive.
const CLOSE: (f64, f64) = (0.1, 0.2);

/// How many operations of the cells of a part are close to the drive, and how many there are.
fn close(rows: &[Row], part: &str) -> (usize, usize) {
    let of_part = rows.iter().filter(|row| row.2 == part);
    let all: Vec<(f64, f64)> = of_part.flat_map(|(drive, model, _)| errors(model, drive)).collect();
    let is_within = |log: f64, most: f64| log.exp_m1().abs() <= most;
    let count = all.iter().filter(|one| is_within(one.0, CLOSE.0) && is_within(one.1, CLOSE.1)).count();
    (count, all.len())
}

/// Prints the errors, or returns them for the JSON.
fn report(output: Output, rows: &[Row]) -> anyhow::Result<Option<Value>> {
    let us = |ns: f64| ns / 1e3;
    let mut lines: Vec<Value> = Vec::new();
    let mut text = String::from("job                part      op        mean us            p99 us\n");
    text += "                                     drive    model     drive    model\n";
    for (drive, model, part) in rows {
        for (op, drive_times, model_times) in
            [("read", drive.reads, model.reads), ("write", drive.writes, model.writes)]
        {
            let (Some(d), Some(m)) = (drive_times, model_times) else { continue };
            let name = drive.cell.to_string();
            writeln!(
                text,
                "{name:18} {part:9} {op:6} {:8.1} {:8.1}  {:8.1} {:8.1}",
                us(d.mean_ns),
                us(m.mean_ns),
                us(d.p99_ns),
                us(m.p99_ns)
            )?;
            lines.push(json!({"job": name, "part": part, "op": op,
                "drive": {"mean_us": us(d.mean_ns), "p99_us": us(d.p99_ns)},
                "model": {"mean_us": us(m.mean_ns), "p99_us": us(m.p99_ns)}}));
        }
    }
    let parts = ["fitted", "held out"].map(|part| (part, summary(rows, part)));
    for (part, (mean, tail)) in parts {
        let (count, all) = close(rows, part);
        writeln!(
            text,
            "{part}: off by {:.1} % in the mean, {:.1} % in the 99th percentile; {count} of {all} within {:.0} % and {:.0} %",
            100.0 * mean,
            100.0 * tail,
            100.0 * CLOSE.0,
            100.0 * CLOSE.1
        )?;
    }
    if output.is_json() {
        let of = |(part, (mean, tail)): (&str, (f64, f64))| {
            let (count, all) = close(rows, part);
            json!({"mean": mean, "p99": tail, "within_10_and_20_percent": count, "times": all})
        };
        let [fitted, held_out] = parts.map(of);
        let document = json!({"cells": lines, "fitted": fitted, "held_out": held_out});
        return Ok(Some(document));
    }
    eprint!("{text}");
    Ok(None)
}

/// The profile as a file, with its origin and its errors.
fn yaml(found: &SsdProfile, args: &FitArgs, rows: &[Row]) -> anyhow::Result<String> {
    let (mean, tail) = summary(rows, "held out");
    let logs = match args.logs.as_slice() {
        [one] => one.display().to_string(),
        several => format!("{} logs", several.len()),
    };
    let profile = SsdProfile { description: format!("fitted to {logs}"), ..found.clone() };
    Ok(format!(
        "# Fitted to {logs} by `weir disks fit --from {}`. On the half of the loops that was held out it is off by {:.1} % in the\n\
         # mean and {:.1} % in the 99th percentile.\n{}",
        args.from,
        100.0 * mean,
        100.0 * tail,
        Profile::Ssd(profile).to_yaml()?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_the_protocol_have_reads_and_writes() {
        let all = CELLS.iter().map(|cell| CellTimes { cell: *cell, reads: None, writes: None }).collect();
        let (fitted, held_out) = halves(all);
        assert_eq!((fitted.len(), held_out.len()), (10, 10));
        for half in [fitted, held_out] {
            let cells: Vec<Cell> = half.iter().map(|times| times.cell).collect();
            assert!(
                cells.iter().any(|cell| cell.read_share >= 1.0)
                    && cells.iter().any(|cell| cell.read_share == 0.0)
            );
            assert!(cells.iter().any(|cell| cell.depth == 1) && cells.iter().any(|cell| cell.depth >= 16));
        }
    }

    #[test]
    fn a_profile_is_read_back_from_its_text() {
        let Profile::Ssd(ssd) = profile::load("ssd-qlc").unwrap() else { panic!() };
        let args =
            FitArgs { logs: vec!["a.json".into()], from: "ssd-nvme".into(), state: State::Steady, out: None };
        let text = yaml(&ssd, &args, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.yml");
        fs::write(&path, &text).unwrap();
        let Profile::Ssd(again) = profile::load(path.to_str().unwrap()).unwrap() else { panic!() };
        assert_eq!(SsdProfile { description: ssd.description.clone(), ..again }, ssd, "{text}");
    }
}
