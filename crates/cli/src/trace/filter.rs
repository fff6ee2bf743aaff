//! `weir trace filter`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use weir_cache::Policy;
use weir_trace::filter::{
    Absorb, OfDevices, Peeked, Pipeline, Ratio, Rebase, ScaleAddress, ScaleTime, SinceFirst, Step, TimeRange,
    Writes,
};
use weir_trace::write::{self, Class, Target, Writer, Written};
use weir_trace::{Reader, Unit};

use super::source::{Source, apart, refused};
use super::stat::unit;
use super::words::whole;
use super::written::{self, Classes};
use crate::exit::bad_input;
use crate::output::{self, Output};

const LOOKED_AT: usize = 4096;
/// Files that are written at once.
const MOST_FILES: usize = 256;
const SECOND_NS: u64 = 1_000_000_000;

/// Filter a trace: select, cache, scale addresses and time.
///
/// The steps are carried out in this order, whatever the order of the options: time range, devices, cache,
/// addresses, pace; at last times count from the first request that is left. So a cache sees the original
/// addresses, and is empty where the time range begins.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// File to write
    #[arg(long, value_name = "OUT", required_unless_present = "split_by_device")]
    out: Option<PathBuf>,
    /// Write a file for each device into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    split_by_device: Option<PathBuf>,
    /// Format to write: parquet, weir, iolog, blktrace or disksim; told from the ending of --out if absent
    #[arg(long = "as", value_name = "FORMAT")]
    target: Option<String>,
    #[command(flatten)]
    classes: Classes,
    /// Leave out what comes before so many seconds since the first request
    #[arg(long, value_name = "S")]
    from: Option<String>,
    /// Leave out what comes from so many seconds on
    #[arg(long, value_name = "S")]
    to: Option<String>,
    /// Keep this device (repeatable)
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,
    /// Absorb what this cache would hold: lru, arc, sieve or s3-fifo
    #[arg(long, value_name = "POLICY", requires = "cache_mib")]
    cache: Option<String>,
    /// Size of the cache
    #[arg(long, value_name = "MIB", requires = "cache")]
    cache_mib: Option<u64>,
    /// What becomes of writes: absorb (a hit is absorbed as a read is) or through (all go on)
    #[arg(long, value_name = "WAY", default_value = "absorb")]
    cache_writes: String,
    /// What the cache holds: block or object; told from the first requests if absent
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    /// Bytes of a block of the cache
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    block_bytes: u64,
    /// Multiply offsets by this factor, such as 0.5 or 1/3; runs stay runs, sizes stay
    #[arg(long, value_name = "FACTOR", conflicts_with = "fit_to")]
    scale_address: Option<Ratio>,
    /// Multiply offsets by the factor that lets all requests end within so many bytes (reads the trace twice)
    #[arg(long, value_name = "BYTES")]
    fit_to: Option<u64>,
    /// Multiply the times between requests by this factor: below 1 the load is heavier
    #[arg(long, value_name = "FACTOR")]
    scale_time: Option<Ratio>,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let target = match (&args.target, &args.out) {
        (Some(name), _) => written::target("--as", name)?,
        (None, Some(out)) => written::target_of(out),
        (None, None) => Target::Parquet,
    };
    let steps = Steps::of(&args)?;
    if let Some(out) = &args.out {
        apart(&args.source.path, out)?;
    }
    let extent_bytes = match args.fit_to {
        Some(_) => extent(&args, &steps)?,
        None => 0,
    };
    let mut pipeline = pipeline(&args, &steps, Some(extent_bytes))?;
    let written = match (&args.split_by_device, &args.out) {
        (Some(folder), _) => split(&mut pipeline, folder, target, &args.classes.class())?,
        (None, Some(out)) => {
            let writer = target.create(out, &args.classes.class()).map_err(refused)?;
            vec![write::all(&mut pipeline, writer).map_err(refused)?]
        }
        (None, None) => return Err(bad_input("give --out FILE or --split-by-device DIR")),
    };
    if output.is_json() {
        output::document(&document(&pipeline, &written)?)?;
    } else {
        say(&pipeline, &written);
    }
    Ok(ExitCode::SUCCESS)
}

/// Checked filter steps of the arguments.
struct Steps {
    range: Option<(i64, i64)>,
    cache: Option<(Policy, u64, Writes)>,
    unit: Option<Unit>,
}

impl Steps {
    fn of(args: &Args) -> anyhow::Result<Self> {
        let time = |option: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => seconds(text)
                .map(Some)
                .ok_or_else(|| bad_input(format!("{option} {text}: write seconds, such as 3600 or 0.25"))),
        };
        let (from, to) = (time("--from", &args.from)?, time("--to", &args.to)?);
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            return Err(bad_input("--from must be before --to"));
        }
        let writes = match args.cache_writes.as_str() {
            "absorb" => Writes::Absorb,
            "through" => Writes::Through,
            other => return Err(bad_input(format!("--cache-writes {other}: write absorb or through"))),
        };
        let cache = match (&args.cache, args.cache_mib) {
            (Some(name), Some(mib)) => {
                let policy = Policy::from_name(name).ok_or_else(|| {
                    let known = Policy::ALL.map(Policy::name).join(", ");
                    bad_input(format!("--cache {name}: no policy; there are {known}"))
                })?;
                let bytes = mib.checked_mul(1 << 20).filter(|bytes| *bytes > 0 && *bytes < 1 << 60);
                let bytes = bytes
                    .ok_or_else(|| bad_input(format!("--cache-mib {mib}: it must be from 1 to 2^40")))?;
                Some((policy, bytes, writes))
            }
            _ => None,
        };
        if args.fit_to.is_some_and(|bytes| bytes < 512) {
            return Err(bad_input("--fit-to: it must be at least 512 bytes"));
        }
        let range = (from.is_some() || to.is_some()).then(|| (from.unwrap_or(0), to.unwrap_or(i64::MAX)));
        Ok(Steps { range, cache, unit: unit(args.unit.as_deref(), args.block_bytes)? })
    }
}

/// Seconds as ns, exactly.
fn seconds(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte == b'0' || byte == b'.') && text.contains('0') {
        return Some(0);
    }
    let ns = text.parse::<Ratio>().ok()?.times_down(SECOND_NS)?;
    i64::try_from(ns).ok()
}

/// The trace with the steps behind it. Without an extent it ends before addresses are scaled.
fn pipeline(args: &Args, steps: &Steps, extent_bytes: Option<u64>) -> anyhow::Result<Pipeline> {
    let path = &args.source.path;
    let reader: Box<dyn Reader> = Box::new(SinceFirst::new(path, args.source.open()?.reader));
    let (reader, told) = Peeked::new(reader, LOOKED_AT, Unit::detect);
    let mut stages: Vec<Box<dyn Step>> = Vec::new();
    if let Some((from_ns, to_ns)) = steps.range {
        stages.push(Box::new(TimeRange { from_ns, to_ns }));
    }
    if !args.device.is_empty() {
        stages.push(Box::new(OfDevices::new(args.device.iter().cloned())));
    }
    if let Some((policy, bytes, writes)) = steps.cache {
        stages.push(Box::new(Absorb::new(policy, bytes, steps.unit.unwrap_or(told), writes)));
    }
    let Some(extent_bytes) = extent_bytes else {
        return Ok(Pipeline::new(path, Box::new(reader), stages));
    };
    if let Some(factor) = args.scale_address {
        stages.push(Box::new(ScaleAddress::by(factor)));
    } else if let Some(to_bytes) = args.fit_to {
        stages.push(Box::new(ScaleAddress::fit(extent_bytes, to_bytes)));
    }
    if let Some(factor) = args.scale_time {
        stages.push(Box::new(ScaleTime::new(factor)));
    }
    stages.push(Box::new(Rebase::default()));
    Ok(Pipeline::new(path, Box::new(reader), stages))
}

/// Where the last byte that is left is, plus one.
fn extent(args: &Args, steps: &Steps) -> anyhow::Result<u64> {
    let mut pipeline = pipeline(args, steps, None)?;
    let mut extent_bytes = 0;
    while let Some(request) = pipeline.next_request().map_err(refused)? {
        extent_bytes = request.offset_bytes.saturating_add(request.size_bytes).max(extent_bytes);
    }
    Ok(extent_bytes)
}

fn split(
    pipeline: &mut Pipeline,
    folder: &Path,
    target: Target,
    class: &Class,
) -> anyhow::Result<Vec<Written>> {
    std::fs::create_dir_all(folder)
        .map_err(|error| bad_input(format!("--split-by-device {}: {error}", folder.display())))?;
    let mut writers: BTreeMap<u32, Box<dyn Writer>> = BTreeMap::new();
    while let Some(request) = pipeline.next_request().map_err(refused)? {
        let writer = match writers.entry(request.device) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let name = pipeline.devices().name(request.device);
                let file = written::file_of(folder, request.device, &name, target);
                entry.insert(target.create(&file, class).map_err(refused)?)
            }
        };
        writer.write(&request, pipeline.devices()).map_err(refused)?;
        if writers.len() > MOST_FILES {
            return Err(bad_input(format!(
                "--split-by-device: the trace has more than {MOST_FILES} devices; select some with --device"
            )));
        }
    }
    writers.into_values().map(|writer| writer.finish().map_err(refused)).collect()
}

fn say(pipeline: &Pipeline, written: &[Written]) {
    println!("{} requests read", whole(pipeline.read()));
    for step in pipeline.counts() {
        println!("{}: {} of {} go on", step.name, whole(step.given), whole(step.taken));
        for note in step.notes {
            println!("  {note}");
        }
    }
    written.iter().for_each(written::say);
    written::say_of_source(pipeline);
}

/// The same for programs.
fn document(pipeline: &Pipeline, found: &[Written]) -> anyhow::Result<Value> {
    let steps: Vec<Value> = pipeline
        .counts()
        .into_iter()
        .map(|step| {
            json!({
                "name": step.name, "requests_in": step.taken, "requests_out": step.given, "notes": step.notes,
            })
        })
        .collect();
    let files = found.iter().map(written::document).collect::<anyhow::Result<Vec<_>>>()?;
    let source = written::document_of_source(pipeline);
    Ok(json!({"requests": pipeline.read(), "steps": steps, "files": files, "source": source}))
}
