//! Admitted streams, as clients of a simulated server.

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use weir_scheduler::admission::DemandTrace;
use weir_simulator::Op;
use weir_simulator::server::{Ask, ClassLayout, FilePlace, ServerClass, Source, Volume};
use weir_study::{AdmissionSettings, Run, RunClass, StreamLayout};
use weir_workload::Sizes;

use super::admission::AdmittedStreams;
use crate::Error;

/// Seed of random film places.
const PLACES: u64 = u64::MAX - 2;

/// Whether the clients of a class play a film: then they need admission.
pub(super) fn is_film(class: &RunClass) -> bool {
    class.recipe.requests().is_some_and(|recipe| matches!(recipe.sizes, Sizes::Frames(_)))
}

/// Admitted streams of a class and their films, placed on the disks in the settings' layout.
///
/// In CDL a stripe unit is a block. In BCTL it is as long as the largest round, and each round begins a unit: the free rest of
/// a unit is never read, and a request reads the same bytes as from closely packed rounds.
///
/// # Errors
/// A film is larger than the disks.
pub(super) fn server_class(
    run: &Run,
    settings: &AdmissionSettings,
    class: usize,
    admitted: &AdmittedStreams,
    volume: Volume,
    head_bytes: u64,
) -> Result<ServerClass, Error> {
    let name = &run.classes[class].name;
    let block_bytes = settings.block_kib << 10;
    let of_class = || admitted.streams.iter().filter(|stream| stream.class == class);
    let peak = of_class().map(|stream| stream.demand.peak_blocks()).max().unwrap_or(1);
    let unit = match settings.layout {
        StreamLayout::Cdl => block_bytes,
        StreamLayout::Bctl => block_bytes * u64::from(peak),
    };
    let mut random = ChaCha8Rng::seed_from_u64(run.seed);
    random.set_stream(PLACES - class as u64);
    let heads = u64::from(volume.heads);
    let (mut files, mut playing) = (Vec::new(), Vec::new());
    for stream in of_class() {
        let size_bytes = match settings.layout {
            StreamLayout::Cdl => stream.demand.total_blocks() * unit,
            StreamLayout::Bctl => stream.demand.rounds() as u64 * unit,
        };
        let first_disk = u64::from(stream.first_disk);
        let rows = (size_bytes / unit + first_disk).div_ceil(heads);
        let Some(free) = (head_bytes / unit).checked_sub(rows) else {
            let text = format!(
                "class {name}: a film needs {rows} rows of {unit} bytes on each disk, which has {head_bytes} bytes. Raise storage.size_mib"
            );
            return Err(Error::Refused(text));
        };
        let row = random.random_range(0..=free);
        files.push(FilePlace { start_bytes: (row * heads + first_disk) * unit, size_bytes });
        playing.push(Playing {
            start_round: stream.admitted.start_round,
            demand: Arc::clone(&stream.demand),
            fetched_blocks: 0,
        });
    }
    let source = Streams {
        playing,
        layout: settings.layout,
        block_bytes,
        unit,
        round_ns: settings.round_ns(),
        end_ns: u64::try_from(run.length_ns()).unwrap_or(0),
        round: 0,
        at: 0,
        next: None,
    };
    let layout = ClassLayout { volume, stripe_unit_bytes: unit, base_bytes: 0, places: None, files };
    Ok(ServerClass { source: Box::new(source.begun()), layout, cache_bytes: 0, cache_hit_ns: 0 })
}

/// A stream that was admitted.
struct Playing {
    start_round: u64,
    demand: Arc<DemandTrace>,
    /// Blocks of earlier rounds.
    fetched_blocks: u64,
}

/// Streams whose requests of a round are sent at its begin, with its end as deadline.
struct Streams {
    playing: Vec<Playing>,
    layout: StreamLayout,
    block_bytes: u64,
    unit: u64,
    round_ns: u64,
    end_ns: u64,
    round: u64,
    at: usize,
    next: Option<Ask>,
}

impl Streams {
    fn begun(mut self) -> Self {
        self.next = self.look();
        self
    }

    /// The next request.
    fn look(&mut self) -> Option<Ask> {
        loop {
            let intended_ns = self.round.saturating_mul(self.round_ns);
            if self.playing.is_empty() || intended_ns >= self.end_ns {
                return None;
            }
            let Some(stream) = self.playing.get_mut(self.at) else {
                (self.at, self.round) = (0, self.round + 1);
                continue;
            };
            let client = self.at as u32;
            self.at += 1;
            let Some(played) = self.round.checked_sub(stream.start_round) else { continue };
            let blocks = usize::try_from(played).ok().and_then(|played| stream.demand.blocks().get(played));
            let Some(blocks) = blocks.copied().map(u64::from).filter(|blocks| *blocks > 0) else { continue };
            let offset_bytes = match self.layout {
                StreamLayout::Cdl => stream.fetched_blocks * self.block_bytes,
                StreamLayout::Bctl => played * self.unit,
            };
            stream.fetched_blocks += blocks;
            return Some(Ask {
                intended_ns,
                deadline_ns: Some(intended_ns.saturating_add(self.round_ns)),
                client,
                file: client,
                op: Op::Read,
                offset_bytes,
                size_bytes: blocks * self.block_bytes,
            });
        }
    }
}

impl Source for Streams {
    fn next_ns(&self) -> Option<u64> {
        self.next.map(|ask| ask.intended_ns)
    }

    fn take(&mut self) -> Option<Ask> {
        let next = self.look();
        std::mem::replace(&mut self.next, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(layout: StreamLayout) -> Vec<(u64, u32, u64, u64)> {
        let demand = Arc::new(DemandTrace::new(vec![2, 0, 3]).unwrap());
        let playing = |start_round| Playing { start_round, demand: Arc::clone(&demand), fetched_blocks: 0 };
        let mut source = Streams {
            playing: vec![playing(1), playing(0)],
            layout,
            block_bytes: 10,
            unit: if layout == StreamLayout::Cdl { 10 } else { 30 },
            round_ns: 100,
            end_ns: 1000,
            round: 0,
            at: 0,
            next: None,
        }
        .begun();
        std::iter::from_fn(|| source.take())
            .map(|ask| (ask.intended_ns, ask.client, ask.offset_bytes, ask.size_bytes))
            .collect()
    }

    #[test]
    fn streams_ask_in_their_rounds_for_what_they_need() {
        let cdl = [(0, 1, 0, 20), (100, 0, 0, 20), (200, 1, 20, 30), (300, 0, 20, 30)];
        assert_eq!(streams(StreamLayout::Cdl), cdl);
        let bctl = [(0, 1, 0, 20), (100, 0, 0, 20), (200, 1, 60, 30), (300, 0, 60, 30)];
        assert_eq!(streams(StreamLayout::Bctl), bctl);
    }
}
