//! How late a replay is at rising rates, ours beside fio's `read_iolog`, as the kernel's block layer saw both.
//!
//! 4 KiB random reads of a loop device over memory, Poisson arrivals. An outside observer, the tracepoint `block_bio_queue`,
//! times both programs alike. Lateness is counted from the most favourable zero (the least late request of the run), since
//! fio does not tell when it began; ours is also given from its own epoch, by which it is judged. First fio says what the
//! device can do, in a closed loop. `cargo run --release -p weir-replayer --example bench_replay -- [ROUNDS] [RATE]...`

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use common::LoopDevice;
use common::block_trace::{BlockEvent, BlockTrace};
use weir_records::Request;
use weir_replayer::{Fidelity, LIMIT_P99_NS, Layout, Options, Route, Targets, replay};

const LENGTH_BYTES: u64 = 1 << 30;
const QUEUED: &str = "block_bio_queue";
const COMPLETED: &str = "block_rq_complete";
/// Above this rate the completions are not observed: an observer of every second event costs what the replay has to spare.
const COMPLETIONS_UP_TO: f64 = 20_000.0;
const RATES: [f64; 9] =
    [2_000.0, 20_000.0, 50_000.0, 75_000.0, 100_000.0, 150_000.0, 200_000.0, 250_000.0, 300_000.0];
/// Requests of a run, and its longest time.
const REQUESTS: f64 = 400_000.0;
const LONGEST_S: f64 = 5.0;
/// Limits on a rate that is kept: p99 of lateness, and span error.
const LIMIT_SPAN: f64 = 0.001;

/// One run as the observer saw it. Times in us, sorted.
struct Run {
    lateness: Vec<f64>,
    /// From the replayer's own epoch, where it tells.
    from_epoch: Option<Vec<f64>>,
    /// Completion stamp after the block layer's completion, where the program gives stamps.
    stamp_delay: Option<Vec<f64>>,
    span_error: f64,
    fidelity: Option<Fidelity>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let rates = arguments.map(|text| text.parse()).collect::<Result<Vec<f64>, _>>()?;
    let rates = if rates.is_empty() { RATES.to_vec() } else { rates };
    let memory = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(memory)?;
    let backing = folder.path().join("disk");
    std::fs::write(&backing, vec![1; LENGTH_BYTES as usize])?;
    let Some(device) = LoopDevice::attach(&backing, true) else {
        return Err("no loop device: run as root where there is /dev/loop-control".into());
    };
    let fio = Command::new("fio").arg("--version").output().ok().filter(|output| output.status.success());
    let version = fio.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!(
        "reads of 4 KiB, Poisson, on {} over memory; {} CPUs, load {}",
        device.path.display(),
        std::thread::available_parallelism()?,
        std::fs::read_to_string("/proc/loadavg")?.split(' ').next().unwrap_or("unknown")
    );
    match &version {
        Some(_) => {
            println!("the device itself, in fio's closed loop of 64: {:.0} requests/s", closed_loop(&device)?)
        }
        None => println!("fio is not installed: no comparison (apt-get install fio)"),
    }
    println!("lateness in us: median, p99, max (of {rounds} runs the middle one by p99); span error");
    let mut best: [Option<f64>; 2] = [None, None];
    for rate in rates {
        let seconds = (REQUESTS / rate).min(LONGEST_S);
        let stream = common::poisson(rate, seconds, LENGTH_BYTES, 1);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Alternating which goes first keeps a drift of the machine out of the ratio.
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    ours.push(run_ours(&device, &stream, rate)?);
                } else if version.is_some() {
                    theirs.push(run_fio(&device, &stream, folder.path(), rate)?);
                }
            }
        }
        println!("{rate:>7.0}/s");
        let ours = middle(ours);
        show("weir", ours.as_ref());
        let theirs = middle(theirs);
        show(version.as_deref().unwrap_or("fio"), theirs.as_ref());
        for (best, run) in best.iter_mut().zip([ours, theirs]) {
            if run.is_some_and(|run| run.is_kept()) {
                *best = Some(best.map_or(rate, |best: f64| best.max(rate)));
            }
        }
    }
    let names = ["weir", version.as_deref().unwrap_or("fio")];
    for (name, best) in names.into_iter().zip(best) {
        let best = best.map_or("none of these".to_owned(), |rate| format!("{rate:.0} requests/s"));
        println!(
            "{name}: highest rate with p99 of at most {} us and a span within {} %: {best}",
            LIMIT_P99_NS / 1000,
            LIMIT_SPAN * 100.0
        );
    }
    Ok(())
}

impl Run {
    /// The lateness by which a run is judged.
    fn judged(&self) -> &[f64] {
        self.from_epoch.as_deref().unwrap_or(&self.lateness)
    }

    fn is_kept(&self) -> bool {
        quantile(self.judged(), 0.99) <= LIMIT_P99_NS as f64 / 1e3 && self.span_error.abs() <= LIMIT_SPAN
    }
}

/// What the device does if it always has 64 requests, per second.
fn closed_loop(device: &LoopDevice) -> Result<f64, Box<dyn Error>> {
    let output = Command::new("fio")
        .args([
            "--name=closed",
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=64",
            "--rw=randread",
            "--bs=4k",
        ])
        .args(["--time_based", "--runtime=3", "--output-format=json", "--readonly"])
        .arg(format!("--filename={}", device.path.display()))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let start = text.find('{').ok_or_else(|| format!("fio: {}", String::from_utf8_lossy(&output.stderr)))?;
    let report: serde_json::Value = serde_json::from_str(&text[start..])?;
    report["jobs"][0]["read"]["iops"].as_f64().ok_or_else(|| "fio gave no rate".into())
}

/// Events to observe at a rate.
fn events(rate: f64) -> &'static [&'static str] {
    if rate <= COMPLETIONS_UP_TO { &[QUEUED, COMPLETED] } else { &[QUEUED] }
}

fn run_ours(device: &LoopDevice, stream: &[Request], rate: f64) -> Result<Run, Box<dyn Error>> {
    let targets = Targets::open(&Layout { default: Some(Route::to(&device.path)), ..Layout::default() })?;
    let watched = events(rate);
    let trace = BlockTrace::start(&device.numbers(), watched, watched.len() * stream.len())?;
    let options = Options { peak_per_s: Some(rate), ..Options::default() };
    let mut rows = Vec::with_capacity(stream.len());
    let fidelity = replay(stream.iter().cloned(), &targets, &options, |row| rows.push(row))?;
    let events = trace.stop()?;
    let epoch = fidelity.epoch_monotonic_ns;
    let queued = times(stream, &events, QUEUED, Some(epoch))?;
    let mut run = observed(stream, &queued);
    let late = queued.iter().zip(stream).map(|(at, request)| (at - epoch - request.intended_ns) as f64 / 1e3);
    run.from_epoch = Some(sorted(late.collect()));
    if watched.contains(&COMPLETED) {
        rows.sort_by_key(|row| row.request);
        let completed = times(stream, &events, COMPLETED, Some(epoch))?;
        let delay = completed
            .iter()
            .zip(&rows)
            .filter_map(|(at, row)| Some((epoch + row.completed_ns? - at) as f64 / 1e3));
        run.stamp_delay = Some(sorted(delay.collect()));
    }
    run.fidelity = Some(fidelity);
    Ok(run)
}

fn run_fio(device: &LoopDevice, stream: &[Request], folder: &Path, rate: f64) -> Result<Run, Box<dyn Error>> {
    let name = device.path.display();
    let mut log = format!("fio version 3 iolog\n0 {name} add\n0 {name} open\n");
    for request in stream {
        // fio (3.33 and 3.42 were tried) reads these as microseconds.
        writeln!(
            log,
            "{} {name} read {} {}",
            request.intended_ns / 1000,
            request.offset,
            request.size_bytes
        )?;
    }
    let last = stream.last().map_or(0, |request| request.intended_ns / 1000);
    writeln!(log, "{last} {name} close")?;
    let path = folder.join("stream.iolog");
    std::fs::write(&path, log)?;
    let watched = events(rate);
    let trace = BlockTrace::start(&device.numbers(), watched, watched.len() * stream.len())?;
    let output = Command::new("fio")
        .args(["--name=replay", "--direct=1", "--ioengine=libaio", "--iodepth=64"])
        .arg(format!("--read_iolog={}", path.display()))
        .current_dir(folder)
        .output()?;
    let events = trace.stop()?;
    if !output.status.success() {
        return Err(format!("fio: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    observe(stream, &events)
}

/// When each request of the stream had its `event`, ns of `CLOCK_MONOTONIC`.
///
/// A request that finds the device full is queued a second time: that event is passed over where the epoch is known, as it is
/// earlier than the next request to the same place.
fn times(
    stream: &[Request],
    events: &[BlockEvent],
    event: &str,
    epoch: Option<i64>,
) -> Result<Vec<i64>, Box<dyn Error>> {
    let mut by_sector: HashMap<u64, VecDeque<i64>> = HashMap::new();
    for seen in events.iter().filter(|seen| seen.name == event) {
        by_sector.entry(seen.sector).or_default().push_back(seen.at_ns);
    }
    stream
        .iter()
        .map(|request| {
            let seen = by_sector.get_mut(&(request.offset / 512));
            // Stamps are in steps of 1 us.
            let due = epoch.map_or(i64::MIN, |epoch| epoch + request.intended_ns - 1000);
            let at = seen.and_then(|seen| {
                while seen.front().is_some_and(|at| *at < due) {
                    seen.pop_front();
                }
                seen.pop_front()
            });
            at.ok_or_else(|| format!("request {} was not seen at {event}", request.request).into())
        })
        .collect()
}

fn observe(stream: &[Request], events: &[BlockEvent]) -> Result<Run, Box<dyn Error>> {
    Ok(observed(stream, &times(stream, events, QUEUED, None)?))
}

fn observed(stream: &[Request], at: &[i64]) -> Run {
    let late: Vec<i64> = at.iter().zip(stream).map(|(at, request)| at - request.intended_ns).collect();
    let zero = late.iter().min().copied().unwrap_or(0);
    let last = stream.len() - 1;
    let span = (at[last] - at[0]) as f64 / (stream[last].intended_ns - stream[0].intended_ns) as f64;
    Run {
        lateness: sorted(late.iter().map(|late| (late - zero) as f64 / 1e3).collect()),
        from_epoch: None,
        stamp_delay: None,
        span_error: span - 1.0,
        fidelity: None,
    }
}

/// The run in the middle by the 99th percentile.
fn middle(mut runs: Vec<Run>) -> Option<Run> {
    runs.sort_by(|one, two| quantile(one.judged(), 0.99).total_cmp(&quantile(two.judged(), 0.99)));
    let place = runs.len() / 2;
    (place < runs.len()).then(|| runs.swap_remove(place))
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

fn quantiles(sorted: &[f64]) -> String {
    let [median, p99, max] = [0.5, 0.99, 1.0].map(|share| quantile(sorted, share));
    format!("{median:>11.1} {p99:>11.1} {max:>11.1}")
}

fn show(name: &str, run: Option<&Run>) {
    let Some(run) = run else { return };
    println!("  {name:<12} {}   {:+.4} %", quantiles(&run.lateness), run.span_error * 100.0);
    if let Some(from_epoch) = &run.from_epoch {
        println!("  {:<12} {}", "from epoch", quantiles(from_epoch));
    }
    if let Some(delay) = &run.stamp_delay {
        println!("  {:<12} {}", "stamp delay", quantiles(delay));
    }
    if let Some(fidelity) = &run.fidelity {
        let (submission, certificate) = (&fidelity.submission, &fidelity.certificate);
        println!(
            "  {:<12} {} rings{}{}{}{}; trusted up to {}; handing over {:.1} us, {} starved",
            "",
            submission.rings,
            if submission.polled { ", polled" } else { "" },
            if submission.cooperative { ", cooperative" } else { "" },
            if submission.fixed_files { ", fixed files" } else { "" },
            if submission.fixed_buffers { ", fixed buffers" } else { "" },
            certificate.trusted_per_s.map_or("no rate".to_owned(), |rate| format!("{rate:.0}/s")),
            fidelity.handover_median_ns as f64 / 1e3,
            fidelity.starved
        );
    }
}
