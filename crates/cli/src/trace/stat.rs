//! `weir trace stat`.

use std::process::ExitCode;

use serde::Serialize;
use weir_trace::Unit;
use weir_trace::filter::Peeked;
use weir_trace::stat::{self, Distribution, Report};

use super::source::{Source, refused};
use super::words::{bytes, number, percent, time, whole};
use crate::exit::{self, bad_input};
use crate::output::{self, Output};

/// Requests that are looked at to tell blocks from objects.
const LOOKED_AT: usize = 4096;
/// Devices that are printed.
const DEVICES_SHOWN: usize = 8;

/// Describe a trace: mix, sizes, arrivals, burstiness, sequentiality, working set, reuse distance, queue depth.
///
/// One pass. Memory grows with the distinct blocks (or objects) only, about 50 bytes each. Quantiles are
/// at most 0.8 % too small; means, counts, reuse distances and working sets are exact. The page of figures
/// is made of the JSON: `python -m weir trace-page stat.json`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Unit of the working set: block or object. Default: detected from the first requests
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    /// Bytes of a block of the working set
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    block_bytes: u64,
}

/// The unit that `--unit` and `--block-bytes` ask for; `None` if it is to be told from the trace.
pub fn unit(name: Option<&str>, block_bytes: u64) -> anyhow::Result<Option<Unit>> {
    if block_bytes == 0 {
        return Err(bad_input("--block-bytes 0: it must be at least 1"));
    }
    match name {
        None if block_bytes == 4096 => Ok(None),
        None | Some("block") => Ok(Some(Unit::Block { bytes: block_bytes })),
        Some("object") => Ok(Some(Unit::Object)),
        Some(other) => Err(bad_input(format!("--unit {other}: write block or object"))),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    /// Version of this document.
    format: u32,
    file: String,
    trace_format: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let wanted = unit(args.unit.as_deref(), args.block_bytes)?;
    let opened = args.source.open()?;
    let (mut reader, told) = Peeked::new(opened.reader, LOOKED_AT, Unit::detect);
    let report = stat::of(&mut reader, wanted.unwrap_or(told)).map_err(refused)?;
    exit::quiet_on_closed_pipe();
    if output.is_json() {
        let file = args.source.path.display().to_string();
        let document = Document { format: 1, file, trace_format: opened.format, report: &report };
        output::document(&document)?;
    } else {
        println!("{} ({})", args.source.path.display(), opened.format);
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn line(name: &str, text: &str) {
    println!("  {name:<26}{text}");
}

fn print(report: &Report) {
    line("requests", &whole(report.requests));
    if report.skipped.records > 0 {
        let first = report.skipped.first.as_deref().unwrap_or_default();
        line("damaged, passed over", &format!("{} (the first: {first})", whole(report.skipped.records)));
    }
    for (what, count) in &report.noted {
        line("noted", &format!("{} {what}", whole(*count)));
    }
    for (name, value) in &report.header {
        line(&format!("says: {name}"), value);
    }
    if report.requests == 0 {
        return;
    }
    line("duration", &time(report.duration_ns as f64));
    if let (Some(requests), Some(data)) = (report.requests_per_s, report.bytes_per_s) {
        line("rate", &format!("{} requests/s, {}/s", number(requests), bytes(data)));
    }
    for (name, op) in &report.ops {
        let share = op.requests as f64 / report.requests as f64;
        let text = format!("{} ({}), {}", whole(op.requests), percent(share), bytes(op.bytes as f64));
        line(name, &text);
    }
    for (name, sizes) in [
        ("size", &report.size_bytes),
        ("  reads", &report.read_size_bytes),
        ("  writes", &report.write_size_bytes),
    ] {
        if let Some(sizes) = sizes {
            spread(name, sizes, bytes);
        }
    }
    arrivals(report);
    if let Some(found) = &report.sequentiality {
        let runs = found.run_requests.as_ref().map_or(1.0, |runs| runs.mean);
        line(
            "sequential",
            &format!("{}; runs of {} requests on average", percent(found.share), number(runs)),
        );
    }
    working_set(report);
    if let Some(length) = &report.times.queue_length {
        spread("queue length", length, number);
    }
    for (name, times) in
        [("queueing", &report.times.queueing_ns), ("response time", &report.times.response_ns)]
    {
        if let Some(times) = times {
            spread(name, times, time);
        }
    }
    if report.times.negative > 0 {
        line("times below 0, left out", &whole(report.times.negative));
    }
    devices(report);
}

fn arrivals(report: &Report) {
    let order = report.arrivals.order;
    if order.early > 0 {
        let text = format!(
            "{} requests are up to {} earlier than one before; they count as arriving with it (see --sort)",
            whole(order.early),
            time(order.most_early_ns as f64)
        );
        line("NOT IN ORDER", &text);
    }
    if let Some(gap) = &report.arrivals.gap_ns {
        spread("inter-arrival", gap, time);
    }
    for peak in &report.burstiness.peaks {
        let data =
            peak.peak_to_mean_bytes.map_or(String::new(), |ratio| format!(", of bytes {}", number(ratio)));
        let text = format!(
            "{}{data} (most {} requests, {} windows)",
            number(peak.peak_to_mean_requests),
            whole(peak.peak_requests),
            whole(peak.windows)
        );
        line(&format!("peak to mean, {}", time(peak.window_ns as f64)), &text);
    }
    let scales = &report.burstiness.scales;
    if !scales.is_empty() {
        // One in about ten, from 1 ms: 1 ms, 8 ms, 64 ms ... are enough to read.
        let text: Vec<String> = scales
            .iter()
            .step_by(3)
            .map(|scale| format!("{} at {}", number(scale.dispersion), time(scale.window_ns as f64)))
            .collect();
        line("index of dispersion", &text.join(", "));
    }
    for hurst in &report.burstiness.hurst {
        let text = format!(
            "{:.3} by {} (r2 {:.3}, {} to {}; {})",
            hurst.estimate,
            hurst.method,
            hurst.r_squared,
            time(hurst.from_ns as f64),
            time(hurst.to_ns as f64),
            hurst.caveat
        );
        line("Hurst parameter", &text);
    }
}

fn working_set(report: &Report) {
    let set = &report.working_set;
    if set.accesses == 0 {
        return;
    }
    let unit = set
        .unit_bytes
        .map_or_else(|| "objects".to_owned(), |size| format!("blocks of {}", bytes(size as f64)));
    let size = set.distinct_bytes.map_or(String::new(), |amount| format!(", {}", bytes(amount as f64)));
    line("working set", &format!("{} {unit}{size}; {} accesses", whole(set.distinct), whole(set.accesses)));
    if let Some(distances) = &set.reuse_distance {
        let cold = set.accesses - distances.count;
        spread("reuse distance", distances, number);
        line("first accesses", &percent(cold as f64 / set.accesses as f64));
    }
    let points: Vec<String> = [0.01, 0.1, 0.5]
        .iter()
        .filter_map(|share| {
            let wanted = (set.distinct as f64 * share) as u64;
            let at = set.lru.iter().rfind(|point| point.units <= wanted)?;
            Some(format!("{} at {}", percent(at.ratio), whole(at.units)))
        })
        .collect();
    if !points.is_empty() {
        line("LRU miss ratio", &points.join(", "));
    }
    for (count, what) in [
        (
            set.cut_requests,
            "requests of which only the first blocks were looked at (2^10 of each on average)",
        ),
        (set.untracked, "accesses to blocks beyond the 2^31 that can be told apart, left out"),
    ] {
        if count > 0 {
            line("warning", &format!("{} {what}", whole(count)));
        }
    }
}

fn spread(name: &str, found: &Distribution, word: impl Fn(f64) -> String) {
    let quantile = |value: u64| word(value as f64);
    let cov = found.cov.map_or(String::new(), |cov| format!(" (CoV {})", number(cov)));
    let text = format!(
        "mean {}{cov}; min {}, p25 {}, median {}, p75 {}, p99 {}, max {}",
        word(found.mean),
        quantile(found.min),
        quantile(found.p25),
        quantile(found.p50),
        quantile(found.p75),
        quantile(found.p99),
        quantile(found.max)
    );
    line(name, &text);
}

fn devices(report: &Report) {
    line("devices", &whole(report.devices));
    if report.devices < 2 {
        return;
    }
    for device in report.device.iter().take(DEVICES_SHOWN) {
        let reads = device.reads as f64 / device.requests as f64;
        let text = format!(
            "{} requests, {} reads, {}, up to {}",
            whole(device.requests),
            percent(reads),
            bytes(device.bytes as f64),
            bytes(device.end_bytes as f64)
        );
        line(&format!("  {}", device.name), &text);
    }
    let others = report.devices.saturating_sub(DEVICES_SHOWN as u64);
    if others > 0 {
        line("", &format!("and {} others", whole(others)));
    }
}
