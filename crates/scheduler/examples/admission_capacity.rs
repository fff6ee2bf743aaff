//! How many video streams eight disks of 1998 take: with trace-based admission and with peak-rate allocation, in both
//! layouts, for blocks of 32 to 256 KB (Wijayaratne and Reddy, "Providing QOS guarantees for disk I/O", Fig. 5).
//!
//! ```text
//! cargo run --release -p weir-scheduler --example admission_capacity -- [frames.txt] [latency target in rounds]
//! ```
//!
//! The file has the size of a frame in bytes on each line, 24 frames a second; without one, frames are drawn with the
//! mean rate of the paper's `Lambs`.

use std::process::ExitCode;

use weir_scheduler::admission::{
    Admission, AdmissionError, DemandTrace, Layout, LoadTable, Placement, RoundBound, SeekCurve, StartPolicy,
};

const DISKS: u32 = 8;
const FRAMES_PER_ROUND: usize = 12;
const ROUND_NS: u64 = 500_000_000;
const FRAMES: usize = 40_000;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (radius, angle) = (unit(self.next()), unit(self.next()));
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

/// Lognormal frames around scenes of 5 s, which are lognormal too, in groups of twelve pictures (IBBPBBPBBPBB).
fn drawn_frames(mean_bytes: f64, random: &mut Random) -> Vec<u64> {
    let group = [4.0, 0.6, 0.6, 1.2, 0.6, 0.6, 1.2, 0.6, 0.6, 1.2, 0.6, 0.6];
    let group_mean = group.iter().sum::<f64>() / group.len() as f64;
    let lognormal = |random: &mut Random, sigma: f64| (sigma * random.normal() - sigma * sigma / 2.0).exp();
    let mut scene = 1.0;
    (0..FRAMES)
        .map(|frame| {
            if frame % 120 == 0 {
                scene = lognormal(random, 0.33);
            }
            let picture = group[frame % group.len()] / group_mean * lognormal(random, 0.2);
            (mean_bytes * scene * picture * 8.0) as u64
        })
        .collect()
}

fn frames_of_file(path: &str) -> Result<Vec<u64>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let frame = |(line, text): (usize, &str)| match text.trim().parse::<u64>() {
        Ok(bytes) => bytes.checked_mul(8).ok_or(format!("{path}:{}: {bytes} bytes in a frame", line + 1)),
        Err(_) => Err(format!("{path}:{}: `{text}` is no size of a frame in bytes", line + 1)),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.take(FRAMES).map(frame).collect()
}

/// Streams until one is refused; all arrive at the same time, each with its first block on a random disk.
fn capacity(
    trace: &DemandTrace,
    layout: Layout,
    peak: bool,
    block_bytes: u64,
    latency_rounds: u32,
) -> Result<usize, AdmissionError> {
    let curve = SeekCurve::new(3711, 600_000, 8_000_000, 17_000_000)?;
    let seek_ns = |cylinders| curve.seek_ns(cylinders);
    let bound = RoundBound::new(seek_ns, 3711, 8_340_000, 11_500_000, block_bytes, 1000)?;
    let table = LoadTable::new(DISKS, bound, ROUND_NS)?;
    let mut admission = Admission::new(table, StartPolicy::RandomStart, latency_rounds)?;
    let mut random = Random(1);
    for admitted in 0.. {
        let first_disk = random.below(u64::from(DISKS)) as u32;
        let place = if peak { Placement::of_peak } else { Placement::of_trace };
        let stream = place(trace, layout, DISKS, first_disk)?;
        if admission.admit(&stream, 0, 0, &mut |n| random.below(n))?.is_err() {
            return Ok(admitted);
        }
    }
    Ok(0)
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let frames = match arguments.next() {
        Some(path) => frames_of_file(&path)?,
        None => drawn_frames(171.32 * 1024.0 / 24.0, &mut Random(2)),
    };
    let latency_rounds = match arguments.next() {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number of rounds"))?,
        None => 300,
    };
    let seconds = frames.len() as f64 / 24.0;
    let rate = frames.iter().sum::<u64>() as f64 / 8.0 / 1024.0 / seconds;
    println!("{} frames, {rate:.1} KB/s, latency target {latency_rounds} rounds", frames.len());
    println!("layout  block KB   peak/mean  peak-rate  trace-based   more");
    for layout in [Layout::Cdl, Layout::Bctl] {
        for block_kb in [32, 64, 128, 256] {
            let block_bytes = block_kb * 1024;
            let count = |peak| {
                let trace = DemandTrace::from_frames(&frames, FRAMES_PER_ROUND, block_bytes)?;
                let mean = trace.total_blocks() as f64 / trace.rounds() as f64;
                let streams = capacity(&trace, layout, peak, block_bytes, latency_rounds)?;
                Ok((f64::from(trace.peak_blocks()) / mean, streams))
            };
            let told = |error: AdmissionError| error.to_string();
            let (ratio, peak) = count(true).map_err(told)?;
            let (_, based) = count(false).map_err(told)?;
            let more = (based as f64 / peak.max(1) as f64 - 1.0) * 100.0;
            println!("{layout:<7?} {block_kb:8} {ratio:11.2} {peak:10} {based:12} {more:5.0} %");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("admission_capacity: {message}");
            ExitCode::FAILURE
        }
    }
}
