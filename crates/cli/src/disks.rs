//! `weir disks`: service times of modelled disks, and profiles fitted to measurements.

mod fit;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use weir_simulator::profile::{self, Profile};
use weir_simulator::{DiskTimes, Op, TimesOptions};

use crate::exit::{self, bad_input};
use crate::output::{self, Output};

/// Measure modelled disks, and fit them to real ones.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Times(Times),
    Protocol(fit::ProtocolArgs),
    Fit(fit::FitArgs),
}

/// Measure service times of a modelled disk by zone.
///
/// Requests start at random places of a zone, one at a time, each some time after the previous one completes. The
/// longest seek of the disk is printed, too. The longest service time of a request from any place is about the longest
/// time of its zone plus that seek.
#[derive(clap::Args)]
struct Times {
    /// Name or file of the disk's profile.
    profile: String,
    /// Sizes of requests, in KiB.
    #[arg(long, value_delimiter = ',', default_values_t = [128, 256, 512, 1024])]
    kib: Vec<u32>,
    /// Number of a zone, from the outer edge, or all.
    #[arg(long, default_value = "all")]
    zone: String,
    /// Operation of the requests.
    #[arg(long, value_enum, default_value = "read")]
    op: OpName,
    /// Start requests at the beginning of tracks.
    #[arg(long)]
    aligned: bool,
    /// Start each request where the previous one ended, without a seek.
    #[arg(long)]
    sequential: bool,
    /// Number of requests of each zone and size.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    requests: u32,
    /// Seed of the places.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum OpName {
    Read,
    Write,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    exit::quiet_on_closed_pipe();
    match args.command {
        Command::Times(args) => times(&args, output),
        Command::Protocol(args) => fit::protocol(&args, output),
        Command::Fit(args) => fit::run(&args, output),
    }
}

fn times(args: &Times, output: Output) -> anyhow::Result<ExitCode> {
    let profile = profile::load(&args.profile).map_err(bad_input)?;
    let Profile::Disk(disk) = &profile else {
        return Err(bad_input(format!("{}: it is not a disk: it has no zones and no seeks", args.profile)));
    };
    let zones = disk.zones.len();
    let chosen: Vec<usize> = match args.zone.as_str() {
        "all" => (0..zones).collect(),
        number => match number.parse::<usize>() {
            Ok(zone) if zone < zones => vec![zone],
            _ => {
                let last = zones - 1;
                return Err(bad_input(format!(
                    "--zone {number}: `{}` has 0 to {last}, or say all",
                    args.profile
                )));
            }
        },
    };
    let op = match args.op {
        OpName::Read => Op::Read,
        OpName::Write => Op::Write,
    };
    let mut rows = Vec::new();
    let mut longest_seek_ms = 0.0;
    for &zone in &chosen {
        for &kib in &args.kib {
            let size_bytes = kib.checked_mul(1024).context("--kib: too large").map_err(bad_input)?;
            let options = TimesOptions {
                zone,
                size_bytes,
                op,
                aligned: args.aligned,
                sequential: args.sequential,
                requests: args.requests,
                seed: args.seed,
            };
            let times = DiskTimes::measure(disk, &options).map_err(bad_input)?;
            longest_seek_ms = ms(times.longest_seek_ns);
            rows.push((zone, kib, times));
        }
    }
    if output.is_json() {
        let rows: Vec<Value> = rows.iter().map(|(zone, kib, times)| row(*zone, *kib, times)).collect();
        let document = json!({"profile": args.profile, "longest_seek_ms": longest_seek_ms, "times": rows});
        output::document(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("longest seek {longest_seek_ms:.2} ms; times in ms");
    println!("zone   KiB      min     mean      p95      p99      max  p95 + seek");
    for (zone, kib, times) in &rows {
        let [min, mean, p95, p99, max] =
            [times.min_ns, times.mean_ns, times.p95_ns, times.p99_ns, times.max_ns].map(ms);
        let with_seek = p95 + longest_seek_ms;
        println!("{zone:4} {kib:5} {min:8.2} {mean:8.2} {p95:8.2} {p99:8.2} {max:8.2}    {with_seek:8.2}");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(zone: usize, kib: u32, times: &DiskTimes) -> Value {
    json!({
        "zone": zone,
        "kib": kib,
        "min_ms": ms(times.min_ns),
        "mean_ms": ms(times.mean_ns),
        "p95_ms": ms(times.p95_ns),
        "p99_ms": ms(times.p99_ns),
        "max_ms": ms(times.max_ns),
        "p95_and_longest_seek_ms": ms(times.p95_ns + times.longest_seek_ns),
    })
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
