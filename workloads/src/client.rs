//! One client of an open-loop class: its requests in order of time, without end.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp};
use weir_records::Op;

use crate::fileset::{ALIGNMENT_BYTES, FileSet, Picker, align_up};
use crate::frames::{FrameStream, FrameSupply};
use crate::seed::{Purpose, generator};
use crate::spec::{Access, Arrivals, Deadline, Sizes, Workload};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// What all clients of a class share.
pub(crate) struct ClassRecipe {
    pub(crate) workload: Workload,
    pub(crate) files: FileSet,
    pub(crate) picker: Picker,
    pub(crate) frames: Option<FrameSupply>,
}

/// Bytes `start..end` of a file, to be transferred at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) at_ns: i64,
    pub(crate) deadline_ns: Option<i64>,
    pub(crate) file: u32,
    pub(crate) op: Op,
    /// Aligned, within the file, not empty.
    pub(crate) extents: Vec<(u64, u64)>,
}

/// A client's own state.
pub(crate) struct Client {
    rng: ChaCha8Rng,
    next_ns: f64,
    frames: Option<FrameStream>,
    /// Where the last sequential request in a file ended; exact, not aligned.
    position: Option<(u32, u64)>,
}

impl Client {
    pub(crate) fn new(recipe: &ClassRecipe, class: &str, seed: u64, number: u32) -> Self {
        let mut rng = generator(seed, class, Purpose::Client(number));
        let frames = recipe.frames.as_ref().map(|supply| supply.stream(&mut rng));
        let next_ns = match recipe.workload.arrivals {
            Arrivals::Poisson { rate_per_s } => exponential_ns(rate_per_s, &mut rng),
            Arrivals::Periodic { interval_ms } => rng.random_range(0.0..1.0) * interval_ms * NS_PER_MS,
            Arrivals::Rounds { round_ms } => rng.random_range(0.0..1.0) * round_ms * NS_PER_MS,
            Arrivals::Closed { .. } => f64::INFINITY,
        };
        Client { rng, next_ns, frames, position: None }
    }

    /// When the client's next batch is due.
    pub(crate) fn next_ns(&self) -> i64 {
        self.next_ns as i64
    }

    /// The next batch; the clock moves on to the one after it.
    pub(crate) fn batch(&mut self, recipe: &ClassRecipe) -> Batch {
        let at_ns = self.next_ns();
        let workload = &recipe.workload;
        let round_ns = match workload.arrivals {
            Arrivals::Poisson { rate_per_s } => exponential_ns(rate_per_s, &mut self.rng),
            Arrivals::Periodic { interval_ms } => interval_ms * NS_PER_MS,
            Arrivals::Rounds { round_ms } => round_ms * NS_PER_MS,
            Arrivals::Closed { .. } => f64::INFINITY,
        };
        self.next_ns += round_ns;
        let deadline_ns = workload.deadline.as_ref().map(|deadline| {
            at_ns
                + match deadline {
                    Deadline::RoundEnd => round_ns as i64,
                    Deadline::After { ms } => (ms * NS_PER_MS) as i64,
                }
        });
        let file = match self.position {
            Some((file, _)) if workload.access == Access::Sequential => file,
            _ => recipe.picker.pick(&mut self.rng),
        };
        let file_bytes = recipe.files.sizes_bytes()[file as usize];
        let extents = match &workload.sizes {
            Sizes::WholeFile => vec![(0, file_bytes)],
            Sizes::Drawn(sizes) => {
                let wanted = sizes.draw(&mut self.rng);
                self.extents(workload, file, file_bytes, wanted)
            }
            Sizes::Frames(frames) => {
                let count = (frames.rate_hz * round_ns / NS_PER_S).round().max(1.0) as u64;
                let wanted = match &mut self.frames {
                    Some(stream) => (0..count).map(|_| stream.next(&mut self.rng)).sum(),
                    None => 0,
                };
                self.extents(workload, file, file_bytes, wanted)
            }
        };
        let op = if workload.read_share >= 1.0 || self.rng.random_bool(workload.read_share) {
            Op::Read
        } else {
            Op::Write
        };
        Batch { at_ns, deadline_ns, file, op, extents }
    }

    /// Which bytes to transfer, cut at the workload's blocks.
    fn extents(&mut self, workload: &Workload, file: u32, file_bytes: u64, wanted: u64) -> Vec<(u64, u64)> {
        let unit = workload.block_bytes.unwrap_or(ALIGNMENT_BYTES);
        match workload.access {
            Access::Random => {
                let size = align_up(wanted).min(file_bytes);
                let places = (file_bytes - size) / ALIGNMENT_BYTES + 1;
                let start = self.rng.random_range(0..places) * ALIGNMENT_BYTES;
                cut(start, start + size, workload.block_bytes)
            }
            Access::Sequential => {
                let start = match self.position {
                    Some((_, position)) => position,
                    None => self.rng.random_range(0..file_bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES,
                };
                // Blocks that the last request widened into are already in the client's buffer.
                let held =
                    if self.position.is_some() { start.next_multiple_of(unit) } else { start / unit * unit };
                let mut extents = Vec::new();
                let mut left = wanted.min(file_bytes);
                let (mut from, mut position) = (held, start);
                while left > 0 {
                    let step = left.min(file_bytes - position);
                    let to = (position + step).next_multiple_of(unit).min(file_bytes);
                    extents.extend(cut(from, to, workload.block_bytes));
                    left -= step;
                    position += step;
                    if position == file_bytes {
                        (from, position) = (0, 0);
                    }
                }
                self.position = Some((file, position));
                extents
            }
        }
    }
}

fn exponential_ns(rate_per_s: f64, rng: &mut ChaCha8Rng) -> f64 {
    Exp::new(rate_per_s).map_or(f64::INFINITY, |gap| gap.sample(rng)) * NS_PER_S
}

/// `start..end` cut at multiples of the block size; empty if there is nothing in it.
fn cut(start: u64, end: u64, block_bytes: Option<u64>) -> Vec<(u64, u64)> {
    let Some(block) = block_bytes else {
        return if start < end { vec![(start, end - start)] } else { Vec::new() };
    };
    let mut extents = Vec::new();
    let mut at = start;
    while at < end {
        let next = (at / block + 1).saturating_mul(block).min(end);
        extents.push((at, next - at));
        at = next;
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_on_multiples_of_the_block() {
        assert_eq!(cut(4096, 140_000, Some(65536)), [(4096, 61440), (65536, 65536), (131_072, 8928)]);
        assert_eq!(cut(4096, 8192, None), [(4096, 4096)]);
        assert_eq!(cut(4096, 4096, None), []);
    }
}
