//! Frames of a video workload.

use std::path::Path;

use crate::frames::FrameSupply;
use crate::seed::{Purpose, generator};
use crate::spec::{FrameSource, Sizes, Workload};

/// A film as its frames.
#[derive(Debug, Clone, PartialEq)]
pub struct Movie {
    /// Size of each frame in display order, in bytes.
    pub frames_bytes: Vec<u64>,
    /// Frames a second.
    pub rate_hz: f64,
}

/// The movie of a workload's clients in a run with this seed, from its first frame; of an endless one, the frames of
/// `duration_s`. `None` if the workload is no video.
///
/// A recording's path is relative to `folder`.
///
/// # Errors
/// The recording cannot be read.
pub fn movie(
    workload: &Workload,
    folder: &Path,
    seed: u64,
    duration_s: f64,
) -> Result<Option<Movie>, String> {
    let Sizes::Frames(frames) = &workload.sizes else { return Ok(None) };
    let supply = FrameSupply::open(frames, folder, &workload.name, seed)?;
    let count = match &frames.source {
        FrameSource::Synthetic(_) => (duration_s * frames.rate_hz).ceil() as usize,
        FrameSource::File { .. } => 0,
        FrameSource::Movies(movies) => {
            return Err(format!(
                "the clients of {} watch {} different movies; take a workload of one",
                workload.name,
                movies.len()
            ));
        }
    };
    let mut rng = generator(seed, &workload.name, Purpose::Client(0));
    Ok(Some(Movie { frames_bytes: supply.frames(count, &mut rng), rate_hz: frames.rate_hz }))
}
