//! Fit of a flash profile to measurements of a drive.
//!
//! Closed loops ([`Cell`]; [`CELLS`] is a fixed protocol) are measured on a drive and on the model. The figures that data sheets
//! omit are changed by steps until the model's times are those of the drive.

use std::fmt;

use crate::device::{Device, IoRequest, Op};
use crate::flash::FlashSsd;
use crate::flash_options::{FlashOptions, UNIT_BYTES};
use crate::profile::{FlashProfile, FlashStart, ProfileError, RetryProfile, SsdProfile};
use crate::random_phase::RandomPhase;

/// A closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Share of reads.
    pub read_share: f64,
    /// Whether requests are in order of their addresses.
    pub sequential: bool,
    /// Bytes of a request.
    pub size_bytes: u32,
    /// Outstanding requests.
    pub depth: u32,
}

/// As fio names it: operation (of mixes with the share of reads in percent), size, depth.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.sequential { "" } else { "rand" };
        match self.read_share {
            share if share >= 1.0 => write!(f, "{order}read")?,
            share if share <= 0.0 => write!(f, "{order}write")?,
            share => write!(f, "{order}rw{:.0}", share * 100.0)?,
        }
        match self.size_bytes % 1024 {
            0 => write!(f, "-{}k-d{}", self.size_bytes / 1024, self.depth),
            _ => write!(f, "-{}-d{}", self.size_bytes, self.depth),
        }
    }
}

const fn cell(read_share: f64, sequential: bool, kib: u32, depth: u32) -> Cell {
    Cell { read_share, sequential, size_bytes: kib * 1024, depth }
}

/// The protocol: reads, then both, then writes.
pub const CELLS: &[Cell] = &[
    cell(1.0, false, 4, 1),
    cell(1.0, false, 4, 4),
    cell(1.0, false, 4, 16),
    cell(1.0, false, 4, 64),
    cell(1.0, false, 64, 1),
    cell(1.0, false, 16, 1),
    cell(1.0, true, 128, 32),
    cell(1.0, true, 128, 8),
    cell(1.0, true, 128, 1),
    cell(1.0, false, 64, 8),
    cell(0.7, false, 4, 4),
    cell(0.7, false, 4, 16),
    cell(0.7, false, 4, 64),
    cell(0.0, true, 128, 1),
    cell(0.0, true, 128, 32),
    cell(0.0, false, 64, 8),
    cell(0.0, false, 4, 1),
    cell(0.0, false, 4, 4),
    cell(0.0, false, 4, 16),
    cell(0.0, false, 4, 64),
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
    pub cell: Cell,
    /// Of its reads, if it has any.
    pub reads: Option<Times>,
    /// Of its writes, if it has any.
    pub writes: Option<Times>,
}

/// The cells to fit to, and those that are held out. The cells of one operation and order are a table of sizes and depths; its
/// fields are divided like those of a chessboard, so that neither half lacks a size or a depth. The order in which cells are
/// given does not matter.
pub fn halves(mut cells: Vec<CellTimes>) -> (Vec<CellTimes>, Vec<CellTimes>) {
    cells.sort_by(|one, other| {
        let (a, b) = (&one.cell, &other.cell);
        let by_place = (a.sequential, a.size_bytes, a.depth).cmp(&(b.sequential, b.size_bytes, b.depth));
        b.read_share.total_cmp(&a.read_share).then(by_place)
    });
    let (mut fitted, mut held_out) = (Vec::new(), Vec::new());
    let (mut row, mut column) = (0, 0);
    let mut last: Option<Cell> = None;
    for times in cells {
        let cell = times.cell;
        (row, column) = match last {
            Some(last) if last.read_share == cell.read_share && last.sequential == cell.sequential => {
                if last.size_bytes == cell.size_bytes { (row, column + 1) } else { (row + 1, 0) }
            }
            _ => (0, 0),
        };
        last = Some(cell);
        if (row + column) % 2 == 0 { fitted.push(times) } else { held_out.push(times) }
    }
    (fitted, held_out)
}

/// Size of a model that is read, or in steady state: its response times do not depend on its size, as long as it has many blocks
/// per die.
const STEADY_BYTES: u64 = 256 << 20;
/// Size of a model that was written in order and is written: its spare flash takes the writes of a cell.
const WRITTEN_BYTES: u64 = 4 << 30;
/// Requests that are counted in a cell, and their bytes, at most.
const REQUESTS: u64 = 6_000;
const COUNTED_BYTES: u64 = 1 << 30;

/// Response times of a model in a cell, from the state in which the profile starts. Reads alone do not depend on the state.
///
/// # Errors
/// The profile is impossible, or has no `flash`.
pub fn predict(profile: &SsdProfile, cell: Cell) -> Result<CellTimes, ProfileError> {
    predict_with(profile, cell, &mut Vec::new())
}

/// A device of a profile; of those that are kept, for profiles that differ in times only, or a new one that is kept then.
fn device_of(
    profile: &SsdProfile,
    flash: FlashProfile,
    cell: Cell,
    kept: &mut Vec<FlashSsd>,
) -> Result<FlashSsd, ProfileError> {
    let is_written = cell.read_share < 1.0;
    let is_steady = is_written && flash.start == FlashStart::Steady;
    let bytes = if is_written && !is_steady { WRITTEN_BYTES } else { STEADY_BYTES };
    let options = profile.flash_options(&flash, bytes)?;
    let retimed = |device: &FlashSsd| {
        let was_preconditioned = device.counts().preconditioning.is_some();
        (was_preconditioned == is_steady).then(|| device.retimed(bytes, options)).flatten()
    };
    if let Some(device) = kept.iter().find_map(retimed) {
        return Ok(device);
    }
    let mut device = FlashSsd::new(bytes, options, 1);
    if is_steady {
        device.precondition(1);
    }
    // Of each state and size the newest, which the next profile is most like.
    kept.retain(|device| {
        device.counts().preconditioning.is_some() != is_steady || bytes != device.capacity_bytes()
    });
    kept.push(device.clone());
    Ok(device)
}

/// Requests of a cell: first those that are not counted, until the write buffer is as full as it gets, then those that are. The spare
/// flash of a device that was written in order limits them.
fn requests(options: &FlashOptions, flash: &FlashProfile, cell: Cell) -> (u64, u64) {
    // The loop has its depth before the first request that is counted, and long enough afterwards.
    let depth = u64::from(cell.depth);
    let fewest = (REQUESTS / 20).max(2 * depth);
    let counted = (COUNTED_BYTES / u64::from(cell.size_bytes)).clamp(fewest, REQUESTS.max(fewest));
    let first = (REQUESTS / 10).max(depth);
    let write_share = 1.0 - cell.read_share;
    if write_share <= 0.0 {
        return (first, counted);
    }
    let of_bytes = |bytes: f64| (bytes / write_share / f64::from(cell.size_bytes)) as u64;
    let buffer_bytes = f64::from(options.buffer_units) * UNIT_BYTES as f64;
    let first = first + of_bytes(1.5 * buffer_bytes).min(4 * REQUESTS);
    match flash.start {
        FlashStart::Steady => (first, counted),
        FlashStart::Written => {
            let spare = of_bytes(0.9 * options.spare_share * WRITTEN_BYTES as f64);
            (first, spare.saturating_sub(first).clamp(fewest, counted))
        }
    }
}

/// The same as [`predict`], with devices that are kept.
fn predict_with(
    profile: &SsdProfile,
    cell: Cell,
    kept: &mut Vec<FlashSsd>,
) -> Result<CellTimes, ProfileError> {
    let flash = profile.flash.ok_or(ProfileError::Missing {
        problem: "the profile has no `flash`",
        remedy: "start from one that has, such as ssd-nvme",
    })?;
    let mut device = profile.with_queues(device_of(profile, flash, cell, kept)?);
    let (first, counted) = requests(device.options(), &flash, cell);
    let mut chance = RandomPhase::new(2);
    let places = device.capacity_bytes() / u64::from(cell.size_bytes);
    let (mut asked, mut done) = (Vec::new(), Vec::new());
    let mut finished = 0;
    let mut times: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
    let all = first + counted;
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
            asked.push((op, now_ns));
        }
        let Some(event_ns) = device.next_event_ns() else { break };
        now_ns = event_ns;
        device.advance(now_ns, &mut done);
        for completion in done.drain(..) {
            finished += 1;
            if completion.tag >= first {
                // From its arrival: with submission queues its service begins later.
                let (op, arrived_ns) = asked[completion.tag as usize];
                times[usize::from(op == Op::Write)].push(completion.done_ns - arrived_ns);
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
fn badness(profile: &SsdProfile, measured: &[CellTimes], kept: &mut Vec<FlashSsd>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for drive in measured {
        let Ok(model) = predict_with(profile, drive.cell, kept) else { return f64::INFINITY };
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
    Figure { steps: (1.5, 1.01), scale: |_, flash, factor| scale_number(&mut flash.controller_us, factor) },
    Figure {
        steps: (1.5, 1.01),
        scale: |_, flash, factor| {
            let mut of_writes = flash.controller_write_us.unwrap_or(flash.controller_us);
            scale_number(&mut of_writes, factor);
            flash.controller_write_us = Some(of_writes);
        },
    },
    Figure { steps: (1.5, 1.01), scale: |p, _, factor| scale_number(&mut p.write_latency_us, factor) },
    Figure {
        steps: (2.0, 1.1),
        scale: |_, flash, factor| {
            let mut units = flash.program_kib / 4;
            scale_count(&mut units, factor);
            flash.program_kib = units * 4;
        },
    },
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
/// Controller times for each command that it begins with, in us, where a profile has none.
const CONTROLLER_US: [f64; 3] = [16.0, 4.0, 1.0];

/// A profile with each of the figures that it lacks: a factor does not change what is 0 or missing.
fn with_missing_figures(profile: &SsdProfile) -> Vec<SsdProfile> {
    let Some(flash) = profile.flash else { return Vec::new() };
    let retries = flash.read_retry.is_none().then_some(FlashProfile { read_retry: Some(RETRIES), ..flash });
    let controller = CONTROLLER_US
        .into_iter()
        .filter(|_| flash.controller_us == 0.0)
        .map(|controller_us| FlashProfile { controller_us, ..flash });
    retries
        .into_iter()
        .chain(controller)
        .map(|flash| SsdProfile { flash: Some(flash), ..profile.clone() })
        .collect()
}

/// Rounds of steps along one figure, at most.
const ROUNDS: usize = 40;
/// Changes of several figures at once, at most, and how many without success end them.
const CHANGES: u32 = 1500;
const FAILURES: u32 = 300;
/// Mean square error of measurements: a fit this close is not improved.
const CLOSE_ENOUGH: f64 = 4e-4;

/// The best profile so far.
struct Search<'a> {
    measured: &'a [CellTimes],
    best: SsdProfile,
    least: f64,
    kept: Vec<FlashSsd>,
}

impl Search<'_> {
    /// Takes a profile if it is better.
    fn attempt(&mut self, candidate: SsdProfile) -> bool {
        let found = badness(&candidate, self.measured, &mut self.kept);
        let is_better = found < self.least * 0.999;
        if is_better {
            (self.best, self.least) = (candidate, found);
        }
        is_better
    }

    /// Steps along one figure after another, shorter where neither direction is better, until all are short.
    fn descend(&mut self, told: &mut impl FnMut(f64)) {
        let mut steps: Vec<f64> = FIGURES.iter().map(|figure| figure.steps.0).collect();
        for _ in 0..ROUNDS {
            let mut is_done = true;
            for candidate in with_missing_figures(&self.best) {
                self.attempt(candidate);
            }
            for (figure, step) in FIGURES.iter().zip(&mut steps) {
                let moved = [*step, 1.0 / *step]
                    .into_iter()
                    .any(|factor| self.attempt(figure.scaled(&self.best, factor)));
                if !moved {
                    is_done &= *step <= figure.steps.1;
                    *step = step.sqrt().max(figure.steps.1);
                } else {
                    is_done = false;
                }
            }
            told(self.least);
            if is_done {
                break;
            }
        }
    }

    /// Changes about half of the figures at once by random factors, larger after a success and smaller after a failure (the (1+1)
    /// evolution strategy with the rule of one fifth; Rechenberg 1973): where two figures bound the same rate, a step along one
    /// of them gains nothing.
    fn mutate(&mut self, chance: &mut RandomPhase, told: &mut impl FnMut(f64)) {
        let mut size = 0.5;
        let mut failures = 0;
        for _ in 0..CHANGES {
            if failures >= FAILURES || self.least < CLOSE_ENOUGH {
                break;
            }
            let mut candidate = self.best.clone();
            for figure in FIGURES {
                if chance.draw_ns(2) == 0 {
                    let uniform = chance.draw_ns(2001) as f64 / 1000.0 - 1.0;
                    candidate = figure.scaled(&candidate, (size * uniform).exp());
                }
            }
            if self.attempt(candidate) {
                (failures, size) = (0, f64::min(1.5 * size, 1.0));
                told(self.least);
            } else {
                failures += 1;
                // Four failures undo a success; small changes are left to the steps.
                size = if size < 0.02 { 0.5 } else { size * 1.5_f64.powf(-0.25) };
            }
        }
    }
}

/// Fits the figures of a profile to measured cells: by steps along one figure at a time, by changes of several at once, and by
/// steps again. Deterministic. `told` gets the mean square error now and then.
pub fn fit(start: &SsdProfile, measured: &[CellTimes], mut told: impl FnMut(f64)) -> SsdProfile {
    let mut kept = Vec::new();
    let least = badness(start, measured, &mut kept);
    let mut search = Search { measured, best: start.clone(), least, kept };
    search.descend(&mut told);
    search.mutate(&mut RandomPhase::new(3), &mut told);
    search.descend(&mut told);
    search.best
}
