//! Frame sizes of variable-bit-rate video: recorded or synthetic.

use std::path::Path;
use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, LogNormal};
use weir_traces::frame_sizes;

use crate::spec::{FrameSource, FrameUnit, Frames, SyntheticFrames};

/// Where the frames of every client of a class come from; shared, read only.
#[derive(Clone)]
pub(crate) enum FrameSupply {
    Recorded(Arc<[u64]>),
    Synthetic(Arc<SyntheticFrames>, f64),
}

/// One client's frames, in display order, without end.
pub(crate) enum FrameStream {
    Recorded { sizes: Arc<[u64]>, next: usize },
    Synthetic { model: Arc<SyntheticFrames>, shares: Vec<f64>, new_scene: f64, position: usize, scene: f64 },
}

impl FrameSupply {
    /// Opens the recording, if there is one; `folder` is what its path is relative to.
    pub(crate) fn open(frames: &Frames, folder: &Path) -> Result<Self, String> {
        match &frames.source {
            FrameSource::Synthetic(model) => {
                Ok(FrameSupply::Synthetic(Arc::new(model.clone()), frames.rate_hz))
            }
            FrameSource::File { path, unit } => {
                let path = folder.join(path);
                let numbers = frame_sizes::read(&path).map_err(|error| error.to_string())?;
                let bytes = |number: u64| match unit {
                    FrameUnit::Bits => number.div_ceil(8),
                    FrameUnit::Bytes => number,
                };
                Ok(FrameSupply::Recorded(numbers.into_iter().map(bytes).collect()))
            }
        }
    }

    /// A client's own sequence, from a random start.
    pub(crate) fn stream(&self, rng: &mut impl Rng) -> FrameStream {
        match self {
            FrameSupply::Recorded(sizes) => {
                FrameStream::Recorded { sizes: Arc::clone(sizes), next: rng.random_range(0..sizes.len()) }
            }
            FrameSupply::Synthetic(model, rate_hz) => {
                let shares = type_shares(model);
                FrameStream::Synthetic {
                    position: rng.random_range(0..shares.len()),
                    shares,
                    new_scene: 1.0 / (model.scene_mean_s * rate_hz).max(1.0),
                    scene: unit_mean_lognormal(model.scene_cov, rng),
                    model: Arc::clone(model),
                }
            }
        }
    }
}

impl FrameStream {
    /// Bytes of the next frame.
    pub(crate) fn next(&mut self, rng: &mut impl Rng) -> u64 {
        match self {
            FrameStream::Recorded { sizes, next } => {
                let size = sizes[*next];
                *next = (*next + 1) % sizes.len();
                size
            }
            FrameStream::Synthetic { model, shares, new_scene, position, scene } => {
                if rng.random_bool(*new_scene) {
                    *scene = unit_mean_lognormal(model.scene_cov, rng);
                }
                let share = shares[*position];
                *position = (*position + 1) % shares.len();
                let own = unit_mean_lognormal(model.frame_cov, rng);
                (model.mean_bytes * share * *scene * own).round().max(1.0) as u64
            }
        }
    }
}

/// Each frame's size within its group relative to the group's mean: they average 1.
fn type_shares(model: &SyntheticFrames) -> Vec<f64> {
    let [i, p, b] = model.ratio_i_p_b;
    let weights: Vec<f64> = model
        .group
        .chars()
        .map(|kind| match kind {
            'I' => i,
            'P' => p,
            _ => b,
        })
        .collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    weights.iter().map(|weight| weight / mean).collect()
}

/// A lognormal draw with mean 1 and the given coefficient of variation: sigma^2 = ln(1 + cov^2).
fn unit_mean_lognormal(cov: f64, rng: &mut impl Rng) -> f64 {
    let variance = cov.mul_add(cov, 1.0).ln();
    LogNormal::new(-variance / 2.0, variance.sqrt()).map_or(1.0, |draw| draw.sample(rng))
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn synthetic_frames_have_the_mean_and_variation_they_are_calibrated_to() {
        let model = SyntheticFrames {
            mean_bytes: 6208.0,
            group: "IBBPBBPBBPBB".into(),
            ratio_i_p_b: [5.0, 3.0, 1.0],
            frame_cov: 0.3,
            scene_cov: 0.3,
            scene_mean_s: 0.5,
        };
        let shares = type_shares(&model);
        let type_variance =
            shares.iter().map(|share| (share - 1.0).powi(2)).sum::<f64>() / shares.len() as f64;
        let expected_cov = ((1.0 + type_variance) * 1.09 * 1.09 - 1.0).sqrt();
        let supply = FrameSupply::Synthetic(Arc::new(model), 30.0);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut stream = supply.stream(&mut rng);
        let sizes: Vec<f64> = (0..400_000).map(|_| stream.next(&mut rng) as f64).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
        assert!((mean / 6208.0 - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance.sqrt() / mean / expected_cov - 1.0).abs() < 0.02);
    }
}
