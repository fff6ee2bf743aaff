//! `weir replay`: replay of a recorded or generated stream to a device or files.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use weir_host::clock;
use weir_records::{Request, TableReader, TableWriter};
use weir_replayer::{
    Check, Dependent, Fidelity, Inference, Layout, Looped, Options, Pause, Paused, Reordered, Repeat, Route,
    StreamSummary, Submission, Targets, check_polling, replay, shifted,
};
use weir_vocabulary::IoPriority;

use crate::exit::bad_input;
use crate::interrupts::Watcher;
use crate::output::{self, Output};

/// Time between the checks and the first request, in which the threads get ready.
const LEAD_NS: i64 = 200_000_000;

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
    /// Recorded time at which a request is sent: when it was queued, or when it was issued to the device (traces with both)
    #[arg(long = "as", value_name = "TIME", value_enum, default_value_t = SentAs::Queued)]
    sent_as: SentAs,
    /// Number of rounds of the stream; a round starts one mean gap after the last request of the previous one
    #[arg(long = "loop", value_name = "N", conflicts_with = "loop_for")]
    rounds: Option<u64>,
    /// Repeat the stream for this many seconds
    #[arg(long, value_name = "SECONDS")]
    loop_for: Option<f64>,
    /// Bytes added to every offset in each round; offsets past the end of the target wrap around
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shift_bytes: u64,
    /// Pause at AT seconds of the stream for FOR seconds (repeatable)
    #[arg(long, value_name = "AT:FOR")]
    pause: Vec<String>,
    /// Infer dependencies from recorded times: a request depends on completions in the MS milliseconds before it. It is sent one
    /// think time after the last of them. Requests without dependencies are sent at their recorded times
    #[arg(long, value_name = "MS")]
    dependencies: Option<f64>,
    /// Infer dependencies only between requests of the same class and client
    #[arg(long, requires = "dependencies")]
    within_client: bool,
    /// Factor on think times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "dependencies")]
    think_scale: f64,
    /// Number of io_uring rings, one thread each. Default: chosen from the highest rate of the stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    rings: Option<u16>,
    /// Use SQPOLL: a kernel thread per ring polls for submissions and occupies a CPU. Default: chosen by measurement
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    poll: Option<bool>,
    /// Use IOPOLL: poll the device for completions in place of interrupts, which occupies a CPU per ring. For devices with polling
    /// queues, and streams of reads and writes. Default: chosen by measurement
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    poll_completions: Option<bool>,
    /// Allow other programs to write to the same block device
    #[arg(long)]
    shared: bool,
    /// Print `ready` once everything is checked, then read the start time from standard input (ns, CLOCK_MONOTONIC)
    #[arg(long)]
    await_epoch: bool,
}

/// Recorded time at which a request is sent.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SentAs {
    Queued,
    Issued,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let options = options(&args)?;
    let targets = Targets::open(&layout(&args)?).map_err(bad_input)?;
    let mut shape = Shape::new(&args)?;
    let (summary, recorded) = check(&args, &targets)?;
    shape.check(&args, summary, recorded)?;
    // The choice below refuses it too, but not as bad input.
    if args.poll_completions == Some(true) {
        check_polling(&targets).map_err(bad_input)?;
    }
    if shape.summary.requests == 0 {
        return Err(bad_input(format!("{}: no requests to send", args.stream.display())));
    }
    if args.out.canonicalize().is_ok_and(|out| args.stream.canonicalize().is_ok_and(|stream| stream == out)) {
        return Err(bad_input(format!(
            "--out {}: it is the stream itself; name another",
            args.out.display()
        )));
    }
    let mut options = Options {
        peak_per_s: Some(shape.summary.peak_per_s / options.timescale),
        dependencies: shape.inference.is_some(),
        only_transfers: shape.has_only_transfers(),
        ..options
    };
    options.submission = Some(Submission::choose(&options, &targets)?);
    let epoch_ns = if args.await_epoch { epoch_from_input()? } else { clock::monotonic_ns() + LEAD_NS };
    let writer = TableWriter::create(&args.out, epoch_ns).map_err(bad_input)?;
    let fidelity = send(&args, &options, &targets, &shape, epoch_ns, writer)?;
    if output.is_json() {
        output::document(&fidelity)?;
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
        rings: args.rings.map(usize::from),
        polled: args.poll,
        poll_completions: args.poll_completions,
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

/// A checked stream, and the changes of it.
struct Shape {
    summary: StreamSummary,
    pauses: Vec<Pause>,
    until_ns: Option<i64>,
    inference: Option<Inference>,
}

impl Shape {
    fn new(args: &Args) -> anyhow::Result<Self> {
        let ns = |option: &str, text: &str, seconds: f64| match Duration::try_from_secs_f64(seconds) {
            Ok(time) => i64::try_from(time.as_nanos())
                .map_err(|_| bad_input(format!("{option} {text}: it must be below 292 years"))),
            Err(_) => Err(bad_input(format!("{option} {text}: it must be a number of seconds, 0 or more"))),
        };
        let mut pauses = Vec::new();
        for text in &args.pause {
            let times =
                text.split_once(':').and_then(|(at, length)| Some((at.parse().ok()?, length.parse().ok()?)));
            let (at, length) = times
                .ok_or_else(|| bad_input(format!("--pause {text}: write AT:FOR in seconds, such as 60:5")))?;
            pauses.push(Pause { at_ns: ns("--pause", text, at)?, for_ns: ns("--pause", text, length)? });
        }
        let until_ns =
            args.loop_for.map(|seconds| ns("--loop-for", &seconds.to_string(), seconds)).transpose()?;
        if args.rounds == Some(0) || until_ns == Some(0) {
            return Err(bad_input("--loop, --loop-for: they must be above 0"));
        }
        if args.shift_bytes > 0 && args.rounds.is_none() && until_ns.is_none() {
            return Err(bad_input(
                "--shift-bytes: shifts the rounds of --loop or --loop-for; give one of them",
            ));
        }
        if !(args.think_scale.is_finite() && args.think_scale >= 0.0) {
            return Err(bad_input(format!(
                "--think-scale {}: it must be a number, 0 or more",
                args.think_scale
            )));
        }
        let inference = match args.dependencies {
            None => None,
            Some(ms) if ms.is_finite() && (0.0..=3_600_000.0).contains(&ms) => Some(Inference {
                window_ns: (ms * 1e6) as i64,
                within_client: args.within_client,
                think_scale: args.think_scale,
            }),
            Some(ms) => {
                return Err(bad_input(format!("--dependencies {ms}: it must be from 0 to 3600000 ms")));
            }
        };
        if inference.is_some() && args.rings.is_some_and(|rings| rings != 1) {
            return Err(bad_input(
                "--rings: requests that depend on one another are sent by one; leave it out",
            ));
        }
        Ok(Shape { summary: StreamSummary::default(), pauses, until_ns, inference })
    }

    /// Refuses what the stream does not have. `recorded` counts requests with a known completion and with a known start of
    /// their service.
    fn check(&mut self, args: &Args, summary: StreamSummary, recorded: (u64, u64)) -> anyhow::Result<()> {
        self.summary = summary;
        let stream = args.stream.display();
        if self.inference.is_some() && recorded.0 == 0 {
            return Err(bad_input(format!(
                "--dependencies: {stream} has no completions to infer them from; give the record of a run or a trace with \
                 response times"
            )));
        }
        if args.sent_as == SentAs::Issued && recorded.1 == 0 {
            return Err(bad_input(format!(
                "--as issued: {stream} does not say when requests were issued; leave it out, or give a trace with queueing times"
            )));
        }
        let requests = self.summary.requests;
        if requests == 0 {
            return Ok(());
        }
        if args.poll_completions == Some(true) && !self.has_only_transfers() {
            return Err(bad_input(format!(
                "--poll-completions yes: {stream} has {} flushes, discards or zeroings, whose completions cannot be polled for; \
                 leave it out",
                requests - self.summary.transfers
            )));
        }
        let rounds = self.rounds(args);
        if rounds * requests as f64 > MOST_REQUESTS {
            return Err(bad_input(format!(
                "{stream}: {rounds:.0} rounds of {requests} requests are more than {MOST_REQUESTS:.0e}; send fewer"
            )));
        }
        Ok(())
    }

    fn has_only_transfers(&self) -> bool {
        self.summary.transfers == self.summary.requests
    }

    /// Rounds of the stream, the last one perhaps in part.
    fn rounds(&self, args: &Args) -> f64 {
        match (args.rounds, self.until_ns) {
            (Some(rounds), _) => rounds as f64,
            (None, Some(until_ns)) => until_ns as f64 / round_ns(&self.summary) as f64,
            (None, None) => 1.0,
        }
    }
}

/// The first failure of the thread that reads the stream.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<anyhow::Error>>>);

impl Failure {
    fn note(&self, error: anyhow::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn take(&self) -> Option<anyhow::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Shifted addresses keep their place in a sector.
const SECTOR_BYTES: u64 = 512;
/// Requests that one replay sends at most.
const MOST_REQUESTS: f64 = 1e12;

/// From the first request of a round to the first of the next: a mean gap after the last.
fn round_ns(summary: &StreamSummary) -> i64 {
    let span_ns = summary
        .last_intended_ns
        .zip(summary.first_intended_ns)
        .map_or(0, |(last, first)| last.saturating_sub(first));
    let gap_ns = span_ns / i64::try_from(summary.requests.max(2) - 1).unwrap_or(i64::MAX);
    span_ns.saturating_add(gap_ns.max(1))
}

/// The stream's rows, with the times at which they are to be sent.
fn rows(args: &Args) -> anyhow::Result<impl Iterator<Item = Result<Request, weir_records::Error>> + use<>> {
    let issued = args.sent_as == SentAs::Issued;
    let rows = TableReader::<Request>::open(&args.stream).map_err(bad_input)?;
    Ok(rows.map(move |row| {
        row.map(|mut request| {
            if issued && let Some(served_ns) = request.served_ns {
                request.intended_ns = served_ns;
                request.submitted_ns = request.submitted_ns.map(|_| served_ns);
            }
            request
        })
    }))
}

/// Summary of the stream, and the numbers of requests with a known completion and a known start of their service.
fn check(args: &Args, targets: &Targets) -> anyhow::Result<(StreamSummary, (u64, u64))> {
    let mut check = Check::new(targets);
    let mut recorded = (0, 0);
    for request in rows(args)? {
        let request = request.map_err(bad_input)?;
        recorded.0 += u64::from(request.completed_ns.is_some());
        recorded.1 += u64::from(request.served_ns.is_some());
        check.add(&request).map_err(|error| bad_input(format!("{}: {error}", args.stream.display())))?;
    }
    Ok((check.finish(), recorded))
}

fn send(
    args: &Args,
    options: &Options,
    targets: &Targets,
    shape: &Shape,
    epoch_ns: i64,
    mut writer: TableWriter<Request>,
) -> anyhow::Result<Fidelity> {
    let summary = &shape.summary;
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options { epoch_monotonic_ns: Some(epoch_ns), stop: Arc::clone(&stop), ..options.clone() };
    let bar = progress_bar((shape.rounds(args) * summary.requests as f64) as u64);
    let failure = Failure::default();
    let noted = failure.clone();
    let disorder_ns = summary.disorder_ns;
    // Read again in each round: the check has been through the whole of it.
    let open = move || {
        let (opening, reading) = (noted.clone(), noted.clone());
        let rows = rows(args).map_err(|error| opening.note(error)).ok();
        let known = rows
            .into_iter()
            .flatten()
            .map_while(move |row| row.map_err(|error| reading.note(error.into())).ok());
        Reordered::new(known, disorder_ns)
    };
    let repeat = Repeat {
        rounds: if shape.until_ns.is_some() { None } else { Some(args.rounds.unwrap_or(1)) },
        until_ns: shape
            .until_ns
            .map(|until_ns| until_ns.saturating_add(summary.first_intended_ns.unwrap_or(0))),
        round_ns: round_ns(summary),
        requests: summary.requests,
        shift_bytes: args.shift_bytes,
    };
    let mut looped = Looped::new(open, repeat);
    let placed = std::iter::from_fn(move || {
        let mut request = looped.next()?;
        let by_bytes = looped.shift_bytes();
        if by_bytes > 0
            && let Some((limit_bytes, unit_bytes)) = targets.room(&request)
        {
            let unit_bytes = unit_bytes.max(SECTOR_BYTES);
            request.offset = shifted(request.offset, request.size_bytes, by_bytes, limit_bytes, unit_bytes);
        }
        Some(request)
    });
    let stream = Paused::new(placed, shape.pauses.clone());
    let mut unwritable = None;
    let watcher = Watcher::start(Arc::clone(&stop))?;
    let sink = |request: Request| {
        bar.inc(1);
        if unwritable.is_none()
            && let Err(error) = writer.write(&request)
        {
            unwritable = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let fidelity = match shape.inference {
        Some(inference) => replay(Dependent::new(stream, inference), targets, &options, sink),
        None => replay(stream, targets, &options, sink),
    };
    watcher.end();
    bar.finish_and_clear();
    if let Some(error) = failure.take() {
        return Err(error);
    }
    if let Some(error) = unwritable {
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
        (submission.poll_completions, "polled completions"),
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
