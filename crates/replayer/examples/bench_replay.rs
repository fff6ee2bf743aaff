//! How late a replay is, ours beside fio's `read_iolog`, as the kernel's block layer saw both.
//!
//! 4 KiB random reads of a loop device over memory, Poisson arrivals. An outside observer, the
//! tracepoint `block_bio_queue`, times both programs alike. Lateness is counted from the most favourable
//! zero (the least late request of the run), since fio does not tell when it began; ours is also given
//! from its own epoch. `cargo run --release -p weir-replayer --example bench_replay -- [ROUNDS] [SECONDS] [RATE]`

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
use weir_replayer::{Layout, Options, Route, Targets, replay};

const LENGTH_BYTES: u64 = 1 << 30;
const EVENTS: [&str; 2] = ["block_bio_queue", "block_rq_complete"];

/// One run as the observer saw it. Times in us, sorted.
struct Run {
    lateness: Vec<f64>,
    /// From the replayer's own epoch, where it tells.
    from_epoch: Option<Vec<f64>>,
    /// Completion stamp after the block layer's completion, where the program gives stamps.
    stamp_delay: Option<Vec<f64>>,
    span_error: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |default: f64| arguments.next().map_or(Ok(default), |text| text.parse::<f64>());
    let (rounds, seconds, rate) = (argument(3.0)? as usize, argument(5.0)?, argument(2000.0)?);
    let memory = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(memory)?;
    let backing = folder.path().join("disk");
    std::fs::File::create(&backing)?.set_len(LENGTH_BYTES)?;
    let Some(device) = LoopDevice::attach(&backing, true) else {
        return Err("no loop device: run as root where there is /dev/loop-control".into());
    };
    let stream = common::poisson(rate, seconds, LENGTH_BYTES, 1);
    let fio = Command::new("fio").arg("--version").output().ok().filter(|output| output.status.success());
    let version = fio.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!(
        "{} reads of 4 KiB in {seconds} s, Poisson, on {} over memory; load {}",
        stream.len(),
        device.path.display(),
        std::fs::read_to_string("/proc/loadavg")?.split(' ').next().unwrap_or("unknown")
    );
    if version.is_none() {
        println!("fio is not installed: no comparison (apt-get install fio)");
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Alternating which goes first keeps a drift of the machine out of the ratio.
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                ours.push(run_ours(&device, &stream)?);
                show("weir", &ours[ours.len() - 1]);
            } else if let Some(version) = &version {
                theirs.push(run_fio(&device, &stream, folder.path())?);
                show(version, &theirs[theirs.len() - 1]);
            }
        }
    }
    conclude(&ours, &theirs);
    Ok(())
}

fn run_ours(device: &LoopDevice, stream: &[Request]) -> Result<Run, Box<dyn Error>> {
    let targets = Targets::open(&Layout { default: Some(Route::to(&device.path)), ..Layout::default() })?;
    let trace = BlockTrace::start(&device.numbers(), &EVENTS)?;
    let mut rows = Vec::new();
    let fidelity = replay(stream.iter().cloned(), &targets, &Options::default(), |row| rows.push(row))?;
    let events = trace.stop()?;
    let mut run = observe(stream, &events)?;
    let epoch = fidelity.epoch_monotonic_ns;
    let queued = times(stream, &events, "block_bio_queue")?;
    let late = queued.iter().zip(stream).map(|(at, request)| (at - epoch - request.intended_ns) as f64 / 1e3);
    run.from_epoch = Some(sorted(late.collect()));
    rows.sort_by_key(|row| row.request);
    let completed = times(stream, &events, "block_rq_complete")?;
    let delay = completed
        .iter()
        .zip(&rows)
        .filter_map(|(at, row)| Some((epoch + row.completed_ns? - at) as f64 / 1e3));
    run.stamp_delay = Some(sorted(delay.collect()));
    Ok(run)
}

fn run_fio(device: &LoopDevice, stream: &[Request], folder: &Path) -> Result<Run, Box<dyn Error>> {
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
    let trace = BlockTrace::start(&device.numbers(), &EVENTS)?;
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
fn times(stream: &[Request], events: &[BlockEvent], event: &str) -> Result<Vec<i64>, Box<dyn Error>> {
    let mut by_sector: HashMap<u64, VecDeque<i64>> = HashMap::new();
    for seen in events.iter().filter(|seen| seen.name == event) {
        by_sector.entry(seen.sector).or_default().push_back(seen.at_ns);
    }
    stream
        .iter()
        .map(|request| {
            let at = by_sector.get_mut(&(request.offset / 512)).and_then(VecDeque::pop_front);
            at.ok_or_else(|| format!("request {} was not seen at {event}", request.request).into())
        })
        .collect()
}

fn observe(stream: &[Request], events: &[BlockEvent]) -> Result<Run, Box<dyn Error>> {
    let at = times(stream, events, "block_bio_queue")?;
    let late: Vec<i64> = at.iter().zip(stream).map(|(at, request)| at - request.intended_ns).collect();
    let zero = late.iter().min().copied().unwrap_or(0);
    let last = stream.len() - 1;
    let span = (at[last] - at[0]) as f64 / (stream[last].intended_ns - stream[0].intended_ns) as f64;
    Ok(Run {
        lateness: sorted(late.iter().map(|late| (late - zero) as f64 / 1e3).collect()),
        from_epoch: None,
        stamp_delay: None,
        span_error: span - 1.0,
    })
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
    format!("median {median:9.1}  p99 {p99:9.1}  max {max:9.1} us")
}

fn show(name: &str, run: &Run) {
    println!(
        "{name:9} lateness     {}   span error {:+.4} %",
        quantiles(&run.lateness),
        run.span_error * 100.0
    );
    if let Some(from_epoch) = &run.from_epoch {
        println!("{:9} from epoch   {}", "", quantiles(from_epoch));
    }
    if let Some(delay) = &run.stamp_delay {
        println!("{:9} stamp delay  {}", "", quantiles(delay));
    }
}

fn conclude(ours: &[Run], theirs: &[Run]) {
    let middle = |values: Vec<f64>| quantile(&sorted(values), 0.5);
    let median = |runs: &[Run]| middle(runs.iter().map(|run| quantile(&run.lateness, 0.5)).collect());
    let span = |runs: &[Run]| middle(runs.iter().map(|run| run.span_error.abs()).collect());
    if !theirs.is_empty() {
        println!(
            "median of {} runs: lateness {:.1} us against fio's {:.1} us ({:.0} times less); span error {:.4} % against {:.4} %",
            ours.len(),
            median(ours),
            median(theirs),
            median(theirs) / median(ours).max(1.0),
            span(ours) * 100.0,
            span(theirs) * 100.0
        );
    }
    let from_epoch =
        middle(ours.iter().filter_map(|run| Some(quantile(run.from_epoch.as_ref()?, 0.5))).collect());
    let met = |yes: bool| if yes { "met" } else { "missed" };
    println!(
        "median lateness from the epoch {from_epoch:.1} us (at most 60: {}), span error {:.4} % (below 0.1: {})",
        met(from_epoch <= 60.0),
        span(ours) * 100.0,
        met(span(ours) < 0.001)
    );
}
