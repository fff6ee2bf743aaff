//! `weir disks protocol` and `weir disks fit`: a flash profile from measurements of a drive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_simulator::flash_fit::{CELLS, CellTimes, Times, errors, fit, predict};
use weir_simulator::profile::{self, Profile, SsdProfile};

use crate::exit::bad_input;
use crate::output::{self, Output, WrittenFile};

/// Seconds of a cell, so that all of them take ten minutes, with the writes before them.
const CELL_S: u32 = 24;
/// Seconds that are not counted before each.
const RAMP_S: u32 = 3;
/// Fewest cells that a fit needs.
const FEWEST: usize = 6;

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
/// LOG is the JSON output of fio for the job file of `weir disks protocol`. Every other loop is held out: the profile is not
/// fitted to it, and its errors tell how good the profile is. The profile is printed as YAML.
#[derive(clap::Args)]
pub struct FitArgs {
    /// JSON output of fio.
    log: PathBuf,
    /// Profile to start from: one with `flash`.
    #[arg(long, default_value = "ssd-nvme")]
    from: String,
    /// File to write, instead of printing the profile.
    #[arg(long)]
    out: Option<PathBuf>,
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
        write!(text, "\n[{}]\nrw={rw}\nbs={kib}k\niodepth={}\nstonewall\n", cell.name, cell.depth)?;
    }
    output.result(&json!({"filename": args.filename, "job_file": text}), text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The part of fio's JSON output that is used.
#[derive(Deserialize)]
struct Log {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    mean: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

impl Direction {
    /// Its times; `None` if it has no requests.
    fn times(&self) -> Result<Option<Times>, String> {
        if self.total_ios == 0 {
            return Ok(None);
        }
        let is_p99 = |name: &&String| name.parse::<f64>().is_ok_and(|value| (value - 99.0).abs() < 1e-9);
        let p99 = self.lat_ns.percentile.keys().find(is_p99).map(|name| self.lat_ns.percentile[name]);
        match p99 {
            Some(p99_ns) if p99_ns > 0.0 && self.lat_ns.mean > 0.0 && self.lat_ns.mean.is_finite() => {
                Ok(Some(Times { mean_ns: self.lat_ns.mean, p99_ns }))
            }
            Some(_) => Err("has a time that is not above 0".to_owned()),
            None => Err(
                "has no 99th percentile of `lat_ns`. Run the job file of `weir disks protocol`, which asks for it"
                    .to_owned(),
            ),
        }
    }
}

/// The cells of a log, in the order of the protocol.
fn measured(path: &Path) -> anyhow::Result<Vec<CellTimes>> {
    let name = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| bad_input(format!("{name}: cannot be read: {error}")))?;
    // fio may print notes before its JSON.
    let start = text.find('{').unwrap_or(0);
    let log: Log = serde_json::from_str(&text[start..]).map_err(|error| {
        bad_input(format!("{name}: is not fio's JSON output: {error}. Use fio --output-format=json"))
    })?;
    let mut found = Vec::new();
    for cell in CELLS {
        let Some(job) = log.jobs.iter().find(|job| job.jobname == cell.name) else { continue };
        if job.error != 0 {
            return Err(bad_input(format!("{name}: job `{}` failed with errno {}", cell.name, job.error)));
        }
        let times = |direction: &Direction, what: &str| {
            direction
                .times()
                .map_err(|problem| bad_input(format!("{name}: job `{}`: `{what}` {problem}", cell.name)))
        };
        let (reads, writes) = (times(&job.read, "read")?, times(&job.write, "write")?);
        if reads.is_some() || writes.is_some() {
            found.push(CellTimes { cell, reads, writes });
        }
    }
    if found.len() < FEWEST {
        let known = CELLS.iter().map(|cell| cell.name).collect::<Vec<_>>().join(", ");
        return Err(bad_input(format!(
            "{name}: has {} jobs of the protocol (expected at least {FEWEST} of {known}). Run the job file of `weir disks \
             protocol`",
            found.len()
        )));
    }
    Ok(found)
}

pub fn run(args: &FitArgs, output: Output) -> anyhow::Result<ExitCode> {
    let start = match profile::load(&args.from).map_err(bad_input)? {
        Profile::Ssd(ssd) if ssd.flash.is_some() => ssd,
        _ => {
            return Err(bad_input(format!(
                "--from {}: has no `flash`. Start from a profile that has, such as ssd-nvme",
                args.from
            )));
        }
    };
    if let Some(out) = args.out.as_ref().filter(|out| out.exists()) {
        return Err(bad_input(format!("--out {}: exists already. Name a new file", out.display())));
    }
    let cells = measured(&args.log)?;
    let half = |held_out: usize| -> Vec<CellTimes> {
        let is_in = |cell: &&CellTimes| {
            CELLS.iter().position(|known| known == cell.cell).map(|at| at % 2) == Some(held_out)
        };
        cells.iter().filter(is_in).copied().collect()
    };
    let (fitted, held_out) = (half(0), half(1));
    if fitted.is_empty() || held_out.is_empty() {
        return Err(bad_input(format!(
            "{}: all jobs are of one half of the protocol. Run all of them",
            args.log.display()
        )));
    }
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

/// Prints the errors, or returns them for the JSON.
fn report(output: Output, rows: &[Row]) -> anyhow::Result<Option<Value>> {
    let us = |ns: f64| ns / 1e3;
    let mut lines: Vec<Value> = Vec::new();
    let mut text = String::from("job               part      op        mean us            p99 us\n");
    text += "                                    drive    model     drive    model\n";
    for (drive, model, part) in rows {
        for (op, drive_times, model_times) in
            [("read", drive.reads, model.reads), ("write", drive.writes, model.writes)]
        {
            let (Some(d), Some(m)) = (drive_times, model_times) else { continue };
            let name = drive.cell.name;
            writeln!(
                text,
                "{name:17} {part:9} {op:6} {:8.1} {:8.1}  {:8.1} {:8.1}",
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
        writeln!(
            text,
            "{part}: off by {:.1} % in the mean, {:.1} % in the 99th percentile",
            100.0 * mean,
            100.0 * tail
        )?;
    }
    if output.is_json() {
        let of = |(mean, tail): (f64, f64)| json!({"mean": mean, "p99": tail});
        let [(_, fitted), (_, held_out)] = parts;
        let document = json!({"cells": lines, "fitted": of(fitted), "held_out": of(held_out)});
        return Ok(Some(document));
    }
    eprint!("{text}");
    Ok(None)
}

/// The profile as a file, with its origin and its errors.
fn yaml(found: &SsdProfile, args: &FitArgs, rows: &[Row]) -> anyhow::Result<String> {
    let (mean, tail) = summary(rows, "held out");
    let profile = SsdProfile { description: format!("fitted to {}", args.log.display()), ..found.clone() };
    Ok(format!(
        "# Fitted by `weir disks fit {} --from {}`. On the half of the loops that was held out it is off by {:.1} % in the mean and\n\
         # {:.1} % in the 99th percentile.\n{}",
        args.log.display(),
        args.from,
        100.0 * mean,
        100.0 * tail,
        Profile::Ssd(profile).to_yaml()?
    ))
}

#[cfg(test)]
mod tests {
    use weir_simulator::flash_fit::Cell;

    use super::*;

    #[test]
    fn both_halves_of_the_protocol_have_reads_and_writes() {
        for half in [0, 1] {
            let cells: Vec<&Cell> = CELLS.iter().skip(half).step_by(2).collect();
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
        let args = FitArgs { log: "a.json".into(), from: "ssd-nvme".into(), out: None };
        let text = yaml(&ssd, &args, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.yml");
        fs::write(&path, &text).unwrap();
        let Profile::Ssd(again) = profile::load(path.to_str().unwrap()).unwrap() else { panic!() };
        assert_eq!(SsdProfile { description: ssd.description.clone(), ..again }, ssd, "{text}");
    }
}
