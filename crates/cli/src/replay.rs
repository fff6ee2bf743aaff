//! `weir replay`: replay of a recorded or generated stream to a device or files.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use weir_host::clock;
use weir_records::{Request, TableReader, TableWriter};
use weir_replayer::{Check, Fidelity, Layout, Options, Reordered, Route, StreamSummary, Targets, replay};
use weir_vocabulary::IoPriority;

use crate::exit::bad_input;
use crate::interrupts::Watcher;

/// Time between the checks and the first request, in which the threads get ready.
const LEAD_NS: i64 = 50_000_000;

/// Replay a request stream to a device or files at its intended times (open loop), and report the lateness.
///
/// STREAM is a requests.parquet: one that was generated, or the record of an earlier run. Each request
/// is sent at its own time whether or not earlier ones have completed. Everything is checked before
/// anything is sent.
#[derive(clap::Args)]
pub struct Args {
    /// The stream to send
    stream: PathBuf,
    /// Block device, file, or directory with files 000000.dat, 000001.dat, ... by file number
    #[arg(long, value_name = "PATH", required_unless_present = "class_target")]
    target: Option<PathBuf>,
    /// Target of one class, instead of --target (repeatable)
    #[arg(long, value_name = "CLASS=PATH")]
    class_target: Vec<String>,
    /// Name of --target in the column `device` of the requests; its path if absent
    #[arg(long, value_name = "NAME", requires = "target", hide = true)]
    target_name: Option<String>,
    /// File for the requests with their measured times
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Factor on intended times: 2 sends at half the rate
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    timescale: f64,
    /// I/O priority of one class: rt/0 to rt/7, be/0 to be/7, or idle (repeatable)
    #[arg(long, value_name = "CLASS=PRIORITY")]
    priority: Vec<String>,
    /// Allow writes: DATA OF THE TARGET ARE LOST
    #[arg(long)]
    allow_writes: bool,
    /// Use the page cache even where direct I/O works
    #[arg(long)]
    buffered: bool,
    /// Seconds to wait for outstanding requests at the end
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    grace: f64,
    /// Compare read data with those that an earlier replay with the same --seed wrote
    #[arg(long)]
    verify: bool,
    /// Seed of written data
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of io_uring rings, each with a thread. Default: as many as the stream's highest rate needs
    #[arg(long, value_name = "N")]
    rings: Option<usize>,
    /// Whether a kernel thread for each ring polls for submissions, which takes a CPU. Default: if it pays on this machine
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    poll: Option<bool>,
    /// Allow other programs to write to the same block device
    #[arg(long)]
    shared: bool,
    /// Print `ready` once everything is checked, then read the start time from standard input (ns, CLOCK_MONOTONIC)
    #[arg(long)]
    await_epoch: bool,
    /// Print the fidelity as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let options = options(&args)?;
    let targets = Targets::open(&layout(&args)?).map_err(bad_input)?;
    let summary = check(&args.stream, &targets)?;
    if summary.requests == 0 {
        return Err(bad_input(format!("{}: no requests to send", args.stream.display())));
    }
    if args.out.canonicalize().is_ok_and(|out| args.stream.canonicalize().is_ok_and(|stream| stream == out)) {
        return Err(bad_input(format!(
            "--out {}: it is the stream itself; name another",
            args.out.display()
        )));
    }
    let epoch_ns = if args.await_epoch { epoch_from_input()? } else { clock::monotonic_ns() + LEAD_NS };
    let writer = TableWriter::create(&args.out, epoch_ns).map_err(bad_input)?;
    let fidelity = send(&args, &options, &targets, &summary, epoch_ns, writer)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&fidelity)?);
    } else {
        print(&fidelity);
    }
    if fidelity.stopped > 0 {
        anyhow::bail!("stopped before {} of {} requests were sent", fidelity.stopped, fidelity.planned);
    }
    Ok(ExitCode::SUCCESS)
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write yes or no".to_owned()),
    }
}

fn options(args: &Args) -> anyhow::Result<Options> {
    if !(args.timescale.is_finite() && args.timescale > 0.0) {
        return Err(bad_input(format!("--timescale {}: it must be a number above 0", args.timescale)));
    }
    let grace = Duration::try_from_secs_f64(args.grace).map_err(|_| {
        bad_input(format!("--grace {}: it must be a number of seconds, 0 or more", args.grace))
    })?;
    Ok(Options {
        timescale: args.timescale,
        grace,
        verify: args.verify,
        seed: args.seed,
        rings: args.rings,
        polled: args.poll,
        ..Options::default()
    })
}

fn layout(args: &Args) -> anyhow::Result<Layout> {
    let mut layout = Layout {
        default: (args.target.as_ref())
            .map(|path| Route { name: args.target_name.clone(), ..Route::to(path) }),
        classes: BTreeMap::new(),
        allow_writes: args.allow_writes,
        buffered: args.buffered,
        shared: args.shared,
    };
    for text in &args.class_target {
        let (class, path) = pair("--class-target", text, "CLASS=PATH")?;
        if layout.classes.insert(class.to_owned(), Route::to(path)).is_some() {
            return Err(bad_input(format!(
                "--class-target {text}: class {class} has two targets; give it one"
            )));
        }
    }
    for text in &args.priority {
        let (class, level) = pair("--priority", text, "CLASS=PRIORITY")?;
        let level = match level {
            "inherited" => None,
            level => Some(IoPriority::try_from(level.to_owned()).map_err(bad_input)?),
        };
        let shared = layout.default.clone();
        let route = match (layout.classes.get_mut(class), shared) {
            (Some(route), _) => route,
            (None, Some(shared)) => layout.classes.entry(class.to_owned()).or_insert(shared),
            (None, None) => {
                return Err(bad_input(format!(
                    "--priority {text}: class {class} has no target; add --class-target {class}=PATH or --target PATH"
                )));
            }
        };
        route.priority = level;
    }
    Ok(layout)
}

/// Says that all is ready, and reads when to begin.
fn epoch_from_input() -> anyhow::Result<i64> {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the time to begin at")?;
    let bad = |_| bad_input(format!("--await-epoch: `{}` is no time in ns: write one line", line.trim()));
    line.trim().parse().map_err(bad)
}

fn pair<'a>(option: &str, text: &'a str, form: &str) -> anyhow::Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((class, value)) if !class.is_empty() && !value.is_empty() => Ok((class, value)),
        _ => Err(bad_input(format!("{option} {text}: write {form}"))),
    }
}

fn check(stream: &Path, targets: &Targets) -> anyhow::Result<StreamSummary> {
    let mut check = Check::new(targets);
    for request in TableReader::<Request>::open(stream).map_err(bad_input)? {
        check
            .add(&request.map_err(bad_input)?)
            .map_err(|error| bad_input(format!("{}: {error}", stream.display())))?;
    }
    Ok(check.finish())
}

fn send(
    args: &Args,
    options: &Options,
    targets: &Targets,
    summary: &StreamSummary,
    epoch_ns: i64,
    mut writer: TableWriter<Request>,
) -> anyhow::Result<Fidelity> {
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options {
        epoch_monotonic_ns: Some(epoch_ns),
        stop: Arc::clone(&stop),
        peak_per_s: Some(summary.peak_per_s / options.timescale),
        ..options.clone()
    };
    let bar = progress_bar(summary.requests);
    let mut unreadable = None;
    // Read a second time: the check has been through the whole of it.
    let source = TableReader::<Request>::open(&args.stream)?.map_while(|request| match request {
        Ok(request) => Some(request),
        Err(error) => {
            unreadable = Some(error);
            None
        }
    });
    let stream = Reordered::new(source, summary.disorder_ns);
    let mut unwritable = None;
    let watcher = Watcher::start(Arc::clone(&stop))?;
    let fidelity = replay(stream, targets, &options, |request| {
        bar.inc(1);
        if unwritable.is_none()
            && let Err(error) = writer.write(&request)
        {
            unwritable = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    });
    watcher.end();
    bar.finish_and_clear();
    if let Some(error) = unreadable.or(unwritable) {
        return Err(error.into());
    }
    let fidelity = fidelity?;
    writer.close()?;
    Ok(fidelity)
}

fn progress_bar(requests: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} requests, {eta} left");
    ProgressBar::new(requests).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn print_certificate(fidelity: &Fidelity) {
    let certificate = &fidelity.certificate;
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
    let trusted = match certificate.trusted_per_s {
        Some(rate) => format!("up to {rate:.0}/s"),
        None => "at no rate that was asked often enough to tell".to_owned(),
    };
    println!(
        "certificate: {}/s asked, {}/s kept, peak {:.0}/s; p99 of lateness at most {} us {trusted}",
        rate(certificate.asked_per_s),
        rate(certificate.kept_per_s),
        certificate.peak_per_s,
        certificate.limit_p99_ns / 1000
    );
    let submission = &fidelity.submission;
    let ways = [
        (submission.polled, "polled submissions"),
        (submission.fixed_files, "registered files"),
        (submission.fixed_buffers, "registered buffers"),
    ];
    let ways: Vec<&str> = ways.into_iter().filter(|(is_used, _)| *is_used).map(|(_, way)| way).collect();
    let ways = if ways.is_empty() { String::new() } else { format!(" with {}", ways.join(", ")) };
    println!("submission: {} io_uring{ways}", submission.rings);
}

fn print(fidelity: &Fidelity) {
    let us = |ns: u64| ns as f64 / 1e3;
    println!(
        "{} of {} requests sent, {} completed, {} failed, {} unfinished",
        fidelity.sent, fidelity.planned, fidelity.completed, fidelity.failed, fidelity.unfinished
    );
    println!(
        "lateness: median {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us{}",
        us(fidelity.lateness_median_ns),
        us(fidelity.lateness_p99_ns),
        us(fidelity.lateness_p999_ns),
        us(fidelity.lateness_max_ns),
        fidelity.span_error.map(|error| format!("; span error {:+.4} %", error * 100.0)).unwrap_or_default()
    );
    println!(
        "handing over: median {:.1} us, max {:.1} us; at most {} in flight; {:.2} s of CPU",
        us(fidelity.handover_median_ns),
        us(fidelity.handover_max_ns),
        fidelity.max_in_flight,
        fidelity.cpu_seconds
    );
    print_certificate(fidelity);
    for target in &fidelity.targets {
        let way = if target.direct { "direct" } else { "buffered" };
        let note = if target.note.is_empty() { String::new() } else { format!(" ({})", target.note) };
        println!("target {}: {way}{note}", target.path);
    }
    for (&errno, count) in &fidelity.errors {
        println!("warning: {count} requests failed: {}", std::io::Error::from_raw_os_error(errno));
    }
    for (count, what) in [
        (fidelity.refused, "requests could not be sent"),
        (fidelity.held_back, "requests waited for memory"),
        (fidelity.starved, "times the stream was not read fast enough"),
        (fidelity.queue_overflows, "times the completion queue was full"),
    ] {
        if count > 0 {
            println!("warning: {count} {what}");
        }
    }
}
