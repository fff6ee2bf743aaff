//! Fit of a flash profile to measurements of a drive.
//!
//! A fixed protocol of closed loops ([`CELLS`]) is measured on a drive and on the model. The figures that data sheets omit
//! are changed by steps until the model's times are those of the drive.

use crate::device::{Device, IoRequest, Op};
use crate::flash::FlashSsd;
use crate::profile::{FlashProfile, ProfileError, RetryProfile, SsdProfile};
use crate::random_phase::RandomPhase;

/// One closed loop of the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Name, which is also that of the job.
    pub name: &'static str,
    /// Share of reads.
    pub read_share: f64,
    /// Whether requests are in order of their addresses.
    pub sequential: bool,
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Outstanding requests.
    pub depth: u32,
}

const fn cell(name: &'static str, read_share: f64, sequential: bool, kib: u32, depth: u32) -> Cell {
    Cell { name, read_share, sequential, size_bytes: kib * 1024, depth }
}

/// The protocol: reads, then both, then writes. The model is fitted to the first, third, fifth and so on; the others are
/// held out.
pub const CELLS: &[Cell] = &[
    cell("randread-4k-d1", 1.0, false, 4, 1),
    cell("randread-4k-d4", 1.0, false, 4, 4),
    cell("randread-4k-d16", 1.0, false, 4, 16),
    cell("randread-4k-d64", 1.0, false, 4, 64),
    cell("randread-64k-d1", 1.0, false, 64, 1),
    cell("randread-16k-d1", 1.0, false, 16, 1),
    cell("read-128k-d32", 1.0, true, 128, 32),
    cell("read-128k-d8", 1.0, true, 128, 8),
    cell("read-128k-d1", 1.0, true, 128, 1),
    cell("randread-64k-d8", 1.0, false, 64, 8),
    cell("mixed-4k-d4", 0.7, false, 4, 4),
    cell("mixed-4k-d16", 0.7, false, 4, 16),
    cell("mixed-4k-d64", 0.7, false, 4, 64),
    cell("write-128k-d1", 0.0, true, 128, 1),
    cell("write-128k-d32", 0.0, true, 128, 32),
    cell("randwrite-64k-d8", 0.0, false, 64, 8),
    cell("randwrite-4k-d1", 0.0, false, 4, 1),
    cell("randwrite-4k-d4", 0.0, false, 4, 4),
    cell("randwrite-4k-d16", 0.0, false, 4, 16),
    cell("randwrite-4k-d64", 0.0, false, 4, 64),
];

/// Response times of one operation in a cell, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Mean.
    pub mean_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
}

/// Response times of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellTimes {
    /// Which one.
    pub cell: &'static Cell,
    /// Of its reads, if it has any.
    pub reads: Option<Times>,
    /// Of its writes, if it has any.
    pub writes: Option<Times>,
}

/// Size of the model. Its response times do not depend on its size, as long as it has many blocks per die.
const CAPACITY_BYTES: u64 = 256 << 20;
/// Requests that are counted in a cell, after a tenth of them that are not.
const REQUESTS: u64 = 6_000;

/// Response times of a model in a cell. Before writes it is in the steady state of random writes.
///
/// # Errors
/// The profile is impossible, or has no `flash`.
pub fn predict(profile: &SsdProfile, cell: &'static Cell) -> Result<CellTimes, ProfileError> {
    predict_with(profile, cell, &mut None)
}

/// The same. `steady` keeps a device in its steady state, for profiles that differ in times only.
fn predict_with(
    profile: &SsdProfile,
    cell: &'static Cell,
    steady: &mut Option<FlashSsd>,
) -> Result<CellTimes, ProfileError> {
    let missing = ProfileError::Missing {
        problem: "the profile has no `flash`",
        remedy: "start from one that has, such as ssd-nvme",
    };
    let mut device = profile.build_flash(CAPACITY_BYTES, 1)?.ok_or(missing)?;
    if cell.read_share < 1.0 {
        device = match steady.as_ref().and_then(|steady| steady.retimed(&device)) {
            Some(retimed) => retimed,
            None => {
                device.precondition(1);
                *steady = Some(device.clone());
                device
            }
        };
    }
    let mut chance = RandomPhase::new(2);
    let places = CAPACITY_BYTES / u64::from(cell.size_bytes);
    let (mut asked, mut done) = (Vec::new(), Vec::new());
    let mut finished = 0;
    let mut times: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
    let all = REQUESTS + REQUESTS / 10;
    let mut now_ns = 0;
    while finished < all {
        while asked.len() as u64 - finished < u64::from(cell.depth) && (asked.len() as u64) < all {
            let tag = asked.len() as u64;
            let place = if cell.sequential { tag % places } else { chance.draw_ns(places) };
            let is_read = (chance.draw_ns(1000) as f64) < cell.read_share * 1000.0;
            let op = if is_read { Op::Read } else { Op::Write };
            let offset_bytes = place * u64::from(cell.size_bytes);
            // Places are within the device.
            let request = IoRequest { tag, op, offset_bytes, size_bytes: cell.size_bytes };
            if device.arrive(now_ns, request).is_err() {
                break;
            }
            asked.push(op);
        }
        let Some(event_ns) = device.next_event_ns() else { break };
        now_ns = event_ns;
        device.advance(now_ns, &mut done);
        for completion in done.drain(..) {
            finished += 1;
            if completion.tag >= REQUESTS / 10 {
                let of = usize::from(asked[completion.tag as usize] == Op::Write);
                times[of].push(completion.done_ns - completion.start_ns);
            }
        }
    }
    let [reads, writes] = times.map(|mut times| {
        times.sort_unstable();
        let p99 = times.len().checked_sub(1).map(|last| times[last * 99 / 100])?;
        let mean_ns = times.iter().sum::<u64>() as f64 / times.len() as f64;
        Some(Times { mean_ns, p99_ns: p99 as f64 })
    });
    Ok(CellTimes { cell, reads, writes })
}

/// Logarithms of modelled by measured mean and 99th percentile, of each operation that both have.
pub fn errors(modelled: &CellTimes, measured: &CellTimes) -> impl Iterator<Item = (f64, f64)> + use<> {
    let pairs = [(modelled.reads, measured.reads), (modelled.writes, measured.writes)];
    pairs.into_iter().filter_map(|(model, drive)| {
        let (model, drive) = (model?, drive?);
        Some(((model.mean_ns / drive.mean_ns).ln(), (model.p99_ns / drive.p99_ns).ln()))
    })
}

/// Weight of an error in the 99th percentile relative to one in the mean.
const TAIL_WEIGHT: f64 = 0.5;

/// Mean square of the logarithmic errors; infinite for an impossible profile.
fn badness(profile: &SsdProfile, measured: &[CellTimes], steady: &mut Option<FlashSsd>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for drive in measured {
        let Ok(model) = predict_with(profile, drive.cell, steady) else { return f64::INFINITY };
        for (mean, tail) in errors(&model, drive) {
            sum += mean * mean + TAIL_WEIGHT * tail * tail;
            count += 1.0 + TAIL_WEIGHT;
        }
    }
    if count > 0.0 { sum / count } else { f64::INFINITY }
}

/// A figure that is fitted: multiplied and divided by steps.
struct Figure {
    /// The first factor, and the one at which the search ends.
    steps: (f64, f64),
    scale: fn(&mut SsdProfile, &mut FlashProfile, f64),
}

impl Figure {
    /// A profile with the figure multiplied by a factor; unchanged without `flash`.
    fn scaled(&self, profile: &SsdProfile, factor: f64) -> SsdProfile {
        let mut scaled = profile.clone();
        if let Some(mut flash) = scaled.flash {
            (self.scale)(&mut scaled, &mut flash, factor);
            scaled.flash = Some(flash);
        }
        scaled
    }
}

/// Scales a number and keeps five digits of it.
fn scale_number(value: &mut f64, factor: f64) {
    let scaled = *value * factor;
    let unit = 10_f64.powf(scaled.abs().max(f64::MIN_POSITIVE).log10().floor() - 4.0);
    *value = (scaled / unit).round() * unit;
}

/// Scales a whole number, by at least 1.
fn scale_count(count: &mut u32, factor: f64) {
    let scaled = (f64::from(*count) * factor).round();
    *count = if factor > 1.0 { scaled.max(f64::from(*count) + 1.0) } else { scaled.max(1.0) } as u32;
}

const FIGURES: &[Figure] = &[
    Figure { steps: (1.5, 1.01), scale: |p, _, factor| scale_number(&mut p.read_latency_us, factor) },
    Figure { steps: (1.5, 1.01), scale: |p, _, factor| scale_number(&mut p.command_overhead_us, factor) },
    Figure { steps: (1.5, 1.01), scale: |p, _, factor| scale_number(&mut p.write_latency_us, factor) },
    Figure { steps: (1.5, 1.02), scale: |p, _, factor| scale_number(&mut p.channel_mb_s, factor) },
    Figure { steps: (1.5, 1.01), scale: |_, flash, factor| scale_number(&mut flash.interface_mb_s, factor) },
    Figure { steps: (2.0, 1.1), scale: |_, flash, factor| scale_count(&mut flash.dies_per_channel, factor) },
    Figure { steps: (2.0, 1.05), scale: |_, flash, factor| scale_number(&mut flash.erase_ms, factor) },
    Figure { steps: (2.0, 1.1), scale: |_, flash, factor| scale_count(&mut flash.write_buffer_kib, factor) },
    Figure {
        steps: (2.0, 1.1),
        scale: |_, flash, factor| {
            if let Some(retry) = &mut flash.read_retry {
                scale_number(&mut retry.first_percent, factor);
            }
        },
    },
];

/// Repeated reads that the search begins with, where a profile has none.
const RETRIES: RetryProfile = RetryProfile { first_percent: 1.0, next_percent: 50.0 };

/// Fits the figures of a profile to measured cells, by steps along one figure at a time. Deterministic. `told` gets the mean
/// square error after each round.
pub fn fit(start: &SsdProfile, measured: &[CellTimes], mut told: impl FnMut(f64)) -> SsdProfile {
    let mut best = start.clone();
    let mut steady = None;
    let mut least = badness(&best, measured, &mut steady);
    let mut try_one = |best: &mut SsdProfile, candidate: SsdProfile| {
        let found = badness(&candidate, measured, &mut steady);
        let is_better = found < least * 0.999;
        if is_better {
            (*best, least) = (candidate, found);
        }
        (is_better, least)
    };
    let mut steps: Vec<f64> = FIGURES.iter().map(|figure| figure.steps.0).collect();
    for _ in 0..16 {
        let mut is_done = true;
        if let Some(flash) = best.flash.filter(|flash| flash.read_retry.is_none()) {
            let flash = Some(FlashProfile { read_retry: Some(RETRIES), ..flash });
            let candidate = SsdProfile { flash, ..best.clone() };
            try_one(&mut best, candidate);
        }
        let mut error = f64::INFINITY;
        for (figure, step) in FIGURES.iter().zip(&mut steps) {
            let moved = [*step, 1.0 / *step].into_iter().any(|factor| {
                let candidate = figure.scaled(&best, factor);
                let (is_better, now) = try_one(&mut best, candidate);
                error = now;
                is_better
            });
            if !moved {
                is_done &= *step <= figure.steps.1;
                *step = step.sqrt().max(figure.steps.1);
            } else {
                is_done = false;
            }
        }
        told(error);
        if is_done {
            break;
        }
    }
    best
}
