//! Admission control in virtual time: streams that ask for admission, and those admitted.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use weir_scheduler::admission::{
    Admission, AdmissionError, Admitted, DemandTrace, LoadTable, Placement, Refused,
};
use weir_study::{AdmissionRule, AdmissionSettings, MIX, Run};
use weir_workload::movie;

use super::bound;
use crate::Error;

/// Seeds of random numbers besides those of clients: which streams ask, and what the policy draws. They are separate: every
/// policy gets the same requests.
const STREAMS_ASK: u64 = u64::MAX;
const POLICY_DRAWS: u64 = u64::MAX - 1;

/// An admitted stream.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// Index of its class in the run.
    pub(super) class: usize,
    /// Disk of its first block.
    pub(super) first_disk: u32,
    /// Blocks that it needs in each round.
    pub(super) demand: Arc<DemandTrace>,
    /// Its start round, and its dropped blocks.
    pub(super) admitted: Admitted,
    /// Blocks that it would read from any disk, without drops.
    pub(super) blocks: u64,
}

/// Result of admission control.
#[derive(Debug)]
pub(super) struct AdmittedStreams {
    /// Admitted streams in the order in which they asked.
    pub(super) streams: Vec<Stream>,
    /// Number of streams that asked, by class.
    pub(super) asked: Vec<u32>,
    /// Why the last stream was refused; `None` if none was.
    pub(super) refused: Option<Refused>,
    /// Committed load of the disks.
    pub(super) table: LoadTable,
}

/// A class of video streams.
struct Film {
    class: usize,
    demand: Arc<DemandTrace>,
    /// Its share of streams, relative to other classes.
    share: u32,
}

/// Admits streams one by one, until one is refused or the wanted number has asked.
///
/// # Errors
/// A film cannot be read, or the settings make no admission controller.
pub(super) fn admit_streams(run: &Run, settings: &AdmissionSettings) -> Result<AdmittedStreams, Error> {
    let refused = |error: AdmissionError| Error::Refused(format!("admission: {error}"));
    let Some(device) = run.devices.first() else {
        return Err(Error::Refused("admission: the run has no device".to_owned()));
    };
    let films = films(run, settings)?;
    let disks = device.heads;
    let bound = bound::of_device(device, settings)?;
    let table = LoadTable::new(disks, bound, settings.capacity_ns()).map_err(refused)?;
    let mut admission =
        Admission::new(table, settings.start_policy(), settings.latency_target_rounds).map_err(refused)?;
    let generator = |stream| {
        let mut rng = ChaCha8Rng::seed_from_u64(run.seed);
        rng.set_stream(stream);
        rng
    };
    let (mut ask, mut draws) = (generator(STREAMS_ASK), generator(POLICY_DRAWS));
    let shares: u32 = films.iter().map(|film| film.share).sum();
    let mut placements: HashMap<(usize, u32), Placement> = HashMap::new();
    let (mut streams, mut asked, mut last) = (Vec::new(), vec![0; run.classes.len()], None);
    while last.is_none() && settings.streams.is_none_or(|most| asked.iter().sum::<u32>() < most) {
        let film = draw_film(&films, ask.random_range(0..shares.max(1)));
        let first_disk = ask.random_range(0..disks);
        let placement = match placements.entry((film.class, first_disk)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let of = match settings.rule {
                    AdmissionRule::TraceBased => Placement::of_trace,
                    AdmissionRule::PeakRate => Placement::of_peak,
                };
                place.insert(of(&film.demand, settings.layout.layout(), disks, first_disk).map_err(refused)?)
            }
        };
        // In millionths.
        let may_drop = Admission::blocks_of_share(placement, (settings.drop_pct * 1e4).round() as u32);
        asked[film.class] += 1;
        let mut below = |n: u64| draws.random_range(0..n.max(1));
        match admission.admit(placement, 0, may_drop, &mut below).map_err(refused)? {
            Ok(admitted) => streams.push(Stream {
                class: film.class,
                first_disk,
                demand: Arc::clone(&film.demand),
                admitted,
                blocks: placement.blocks(),
            }),
            Err(refusal) => last = Some(refusal),
        }
    }
    Ok(AdmittedStreams { streams, asked, refused: last, table: admission.table().clone() })
}

fn draw_film(films: &[Film], mut at: u32) -> &Film {
    for film in films {
        if at < film.share {
            return film;
        }
        at -= film.share;
    }
    &films[films.len() - 1]
}

/// The films that streams play; at least one.
fn films(run: &Run, settings: &AdmissionSettings) -> Result<Vec<Film>, Error> {
    let refused =
        |class: &str, error: &dyn std::fmt::Display| Error::Refused(format!("class {class}: {error}"));
    let mut films = Vec::new();
    for (number, class) in run.classes.iter().enumerate() {
        if settings.stream != MIX && settings.stream != class.name {
            continue;
        }
        // In a plan paths of recordings are absolute.
        let film = movie(super::clients::requests(class)?, Path::new("/"), run.seed, run.duration_s)
            .map_err(|error| refused(&class.name, &error))?;
        let Some(film) = film else { continue };
        let per_round = (film.rate_hz * settings.round_ms / 1e3).round() as usize;
        let bits = |bytes: u64| (bytes as f64 * 8.0 * settings.frame_scale).round() as u64;
        let frames_bits: Vec<u64> = film.frames_bytes.iter().map(|bytes| bits(*bytes)).collect();
        let demand = DemandTrace::from_frames(&frames_bits, per_round, settings.block_kib << 10)
            .map_err(|error| refused(&class.name, &error))?;
        films.push(Film { class: number, demand: Arc::new(demand), share: class.clients });
    }
    if films.is_empty() {
        return Err(Error::Refused(format!(
            "admission: stream: {} is not a class of video. Name a class with a video workload",
            settings.stream
        )));
    }
    Ok(films)
}
