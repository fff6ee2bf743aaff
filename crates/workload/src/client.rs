//! Client of an open-loop class: an endless stream of requests in time order.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use smallvec::{SmallVec, smallvec};
use weir_vocabulary::Op;

use crate::arrivals::Clock;
use crate::distribution::Sampler;
use crate::draw::{below, chance, unit};
use crate::fileset::{FileSet, Picker, Turn};
use crate::frames::{FrameStream, FrameSupply};
use crate::player::Player;
use crate::recording::Tape;
use crate::seed::{Purpose, generator};
use crate::server_day::Server;
use crate::spec::{Access, AccessMix, Arrivals, Deadline, Distribution, Sizes, Workload};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
/// Rounding, for 30 frames in a round of a second instead of 29.999.
const FRAME_ROUNDING: f64 = 1e-6;

/// Shared data of all clients of a class.
pub(crate) struct ClassRecipe {
    pub(crate) workload: Workload,
    pub(crate) files: FileSet,
    pub(crate) picker: Picker,
    /// Sizes of requests, where they are drawn.
    pub(crate) sizes: Option<Sampler>,
    pub(crate) frames: Option<FrameSupply>,
    pub(crate) tape: Option<Arc<Tape>>,
    pub(crate) clients: u32,
}

/// First bytes and lengths. Most batches have one.
pub(crate) type Extents = SmallVec<[(u64, u64); 2]>;

/// Bytes `start..end` of a file, to be transferred at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) at_ns: i64,
    pub(crate) deadline_ns: Option<i64>,
    pub(crate) file: u32,
    pub(crate) op: Op,
    /// Aligned, within the file, not empty.
    pub(crate) extents: Extents,
}

/// State of a client.
pub(crate) enum Client {
    /// A client that follows the recipe.
    Single(Box<Single>),
    /// A server with several disks.
    Server(Box<Server>),
    /// A client that replays a recording.
    Player(Player),
}

impl Client {
    pub(crate) fn new(recipe: &ClassRecipe, class: &str, seed: u64, number: u32) -> Self {
        if let Some(tape) = &recipe.tape {
            return Client::Player(Player::new(tape, number, recipe.clients));
        }
        match &recipe.workload.arrivals {
            Arrivals::ServerDay(day) => {
                Client::Server(Box::new(Server::new(day, &recipe.workload, class, seed, number)))
            }
            _ => Client::Single(Box::new(Single::new(recipe, class, seed, number))),
        }
    }

    /// Time of the next batch.
    pub(crate) fn next_ns(&self) -> i64 {
        match self {
            Client::Single(single) => single.next_ns(),
            Client::Server(server) => server.next_ns(),
            Client::Player(player) => player.next_ns(),
        }
    }

    /// The next batch; the clock moves on to the one after it.
    pub(crate) fn batch(&mut self, recipe: &ClassRecipe) -> Batch {
        match self {
            Client::Single(single) => single.batch(recipe),
            Client::Server(server) => server.batch(recipe),
            Client::Player(player) => player.batch(&recipe.workload),
        }
    }
}

/// A client that follows the recipe on its own.
pub(crate) struct Single {
    rng: ChaCha8Rng,
    clock: Clock,
    time_scale: f64,
    frames: Option<FrameStream>,
    /// Fraction of a frame not fetched by earlier rounds.
    frames_due: f64,
    /// End of the last sequential request in a file; exact, not aligned.
    position: Option<(u32, u64)>,
    turn: Turn,
}

impl Single {
    fn new(recipe: &ClassRecipe, class: &str, seed: u64, number: u32) -> Self {
        let mut rng = generator(seed, class, Purpose::Client(number));
        let frames = recipe.frames.as_ref().map(|supply| supply.stream(&mut rng));
        let clock = Clock::new(&recipe.workload.arrivals, &mut rng);
        let time_scale = recipe.workload.time_scale;
        Single {
            rng,
            clock,
            time_scale,
            frames,
            frames_due: 0.0,
            position: None,
            turn: Turn::new(number, recipe.clients),
        }
    }

    /// Time of the next request.
    fn next_ns(&self) -> i64 {
        (self.clock.next_ns() as f64 * self.time_scale) as i64
    }

    fn batch(&mut self, recipe: &ClassRecipe) -> Batch {
        let at_ns = self.next_ns();
        let workload = &recipe.workload;
        let round_ns = self.clock.advance(&workload.arrivals, &mut self.rng);
        let file = match self.position {
            Some((file, _)) if workload.access == Access::Sequential => file,
            _ => recipe.picker.pick(&mut self.rng, &mut self.turn),
        };
        let file_bytes = recipe.files.sizes_bytes()[file as usize];
        let op = draw_op(workload.read_share, &mut self.rng);
        let extents = match &workload.sizes {
            Sizes::WholeFile => cut(0, file_bytes, workload.block_bytes),
            Sizes::Drawn(_) => {
                let wanted = recipe.sizes.as_ref().map_or(0, |sizes| sizes.draw(&mut self.rng));
                self.extents(workload, file, file_bytes, wanted)
            }
            Sizes::Accesses { read, write, piece } => {
                let mix = if op == Op::Read { read } else { write };
                self.access(mix, piece, workload, file_bytes)
            }
            // A player has it all on its tape.
            Sizes::Recorded => Extents::new(),
            Sizes::Frames(frames) => {
                // Rounds of 12.5 frames fetch 12 and 13 by turns.
                self.frames_due += frames.rate_hz * round_ns / NS_PER_S + FRAME_ROUNDING;
                let count = self.frames_due as u64;
                self.frames_due -= count as f64 + FRAME_ROUNDING;
                let wanted = match &mut self.frames {
                    Some(stream) => {
                        (0..count).fold(0, |sum: u64, _| sum.saturating_add(stream.next(&mut self.rng)))
                    }
                    None => 0,
                };
                self.extents(workload, file, file_bytes, wanted)
            }
        };
        Batch { at_ns, deadline_ns: deadline_ns(workload, at_ns, round_ns), file, op, extents }
    }

    /// Bytes of an access.
    fn access(
        &mut self,
        mix: &AccessMix,
        piece: &Distribution,
        workload: &Workload,
        file_bytes: u64,
    ) -> Extents {
        let unit_bytes = workload.alignment_bytes;
        let units = file_bytes / unit_bytes;
        let kind = unit(&mut self.rng);
        let (start, end) = if kind < mix.whole_file || units < 2 {
            (0, units)
        } else if kind < mix.whole_file + mix.part {
            let (a, b) = (below(units + 1, &mut self.rng), below(units, &mut self.rng));
            // Two different places of the units + 1: the second is drawn among the others.
            let b = if b >= a { b + 1 } else { b };
            (a.min(b), a.max(b))
        } else {
            let size = piece.sampler().draw(&mut self.rng).div_ceil(unit_bytes).clamp(1, units);
            let start = below(units - size + 1, &mut self.rng);
            (start, start + size)
        };
        cut(start * unit_bytes, end * unit_bytes, workload.block_bytes)
    }

    /// Bytes to transfer, cut at the workload's blocks.
    fn extents(&mut self, workload: &Workload, file: u32, file_bytes: u64, wanted: u64) -> Extents {
        let alignment_bytes = workload.alignment_bytes;
        let unit = workload.block_bytes.unwrap_or(alignment_bytes);
        match workload.access {
            Access::Random | Access::Recorded => {
                let size = align(wanted, alignment_bytes).min(file_bytes);
                let places = (file_bytes - size) / alignment_bytes + 1;
                let start = below(places, &mut self.rng) * alignment_bytes;
                cut(start, start + size, workload.block_bytes)
            }
            Access::Sequential => {
                let start = match self.position {
                    Some((_, position)) => position,
                    None => below((file_bytes / alignment_bytes).max(1), &mut self.rng) * alignment_bytes,
                };
                // Blocks that the last request widened into are already in the client's buffer.
                let held =
                    if self.position.is_some() { start.next_multiple_of(unit) } else { start / unit * unit };
                let mut extents = Extents::new();
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

/// Reads with the share's probability; no number is drawn where there is no choice.
fn draw_op(read_share: f64, rng: &mut ChaCha8Rng) -> Op {
    if read_share >= 1.0 || chance(read_share, rng) { Op::Read } else { Op::Write }
}

/// Deadline of a request at `at_ns` in a round of this length.
pub(crate) fn deadline_ns(workload: &Workload, at_ns: i64, round_ns: f64) -> Option<i64> {
    workload.deadline.as_ref().map(|deadline| {
        at_ns.saturating_add(match deadline {
            Deadline::RoundEnd => round_ns as i64,
            Deadline::After { ms } => (ms * NS_PER_MS) as i64,
        })
    })
}

/// `bytes` rounded up to whole units, at least one.
pub(crate) fn align(bytes: u64, unit_bytes: u64) -> u64 {
    bytes.max(1).div_ceil(unit_bytes).saturating_mul(unit_bytes)
}

/// `start..end` cut at multiples of the block size; empty if there is nothing in it.
pub(crate) fn cut(start: u64, end: u64, block_bytes: Option<u64>) -> Extents {
    let Some(block) = block_bytes else {
        return if start < end { smallvec![(start, end - start)] } else { Extents::new() };
    };
    let mut extents = Extents::new();
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
        let blocks = cut(4096, 140_000, Some(65536));
        assert_eq!(blocks.as_slice(), [(4096, 61440), (65536, 65536), (131_072, 8928)]);
        assert_eq!(cut(4096, 8192, None).as_slice(), [(4096, 4096)]);
        assert!(cut(4096, 4096, None).is_empty());
    }
}
