//! Frame sizes of variable-bit-rate video: recorded or synthetic.

use std::path::Path;
use std::sync::Arc;

use rand::Rng;
use weir_trace::frame_sizes;

use crate::draw::{below, chance, normal, unit_mean_gamma, unit_mean_lognormal};
use crate::seed::{Purpose, generator};
use crate::spec::{Correlation, FrameSource, FrameUnit, Frames, Marginal, SyntheticFrames};

/// Source of frames of a class; shared, read only.
#[derive(Clone)]
pub(crate) enum FrameSupply {
    /// A movie of given frames, in bytes.
    Movie(Arc<[u64]>),
    Endless(Arc<Model>),
    /// Each client has one of them.
    Choice(Arc<[FrameSupply]>),
}

/// One client's frames, in display order, without end.
pub(crate) enum FrameStream {
    Movie { sizes: Arc<[u64]>, next: usize },
    Endless(Synthesis),
}

impl FrameSupply {
    /// Opens the recording, or makes the movie of a class in a run with this seed; `folder` is what a
    /// recording's path is relative to.
    pub(crate) fn open(frames: &Frames, folder: &Path, class: &str, seed: u64) -> Result<Self, String> {
        match &frames.source {
            FrameSource::Synthetic(spec) => {
                Ok(Self::synthetic(spec, frames.rate_hz, &mut generator(seed, class, Purpose::Movie)))
            }
            FrameSource::Movies(specs) => {
                let mut rng = generator(seed, class, Purpose::Movie);
                let movies = specs.iter().map(|spec| Self::synthetic(spec, frames.rate_hz, &mut rng));
                Ok(FrameSupply::Choice(movies.collect()))
            }
            FrameSource::File { path, unit } => {
                let path = folder.join(path);
                let numbers = frame_sizes::read(&path).map_err(|error| error.to_string())?;
                let bytes = |number: u64| match unit {
                    FrameUnit::Bits => number.div_ceil(8),
                    FrameUnit::Bytes => number,
                };
                Ok(FrameSupply::Movie(numbers.into_iter().map(bytes).collect()))
            }
        }
    }

    fn synthetic(spec: &SyntheticFrames, rate_hz: f64, rng: &mut impl Rng) -> Self {
        let model = Model::new(spec, rate_hz);
        match spec.length_frames {
            Some(length) => FrameSupply::Movie(model.movie(length, rng)),
            None => FrameSupply::Endless(Arc::new(model)),
        }
    }

    /// A client's own sequence, from a random start.
    pub(crate) fn stream(&self, rng: &mut impl Rng) -> FrameStream {
        match self {
            FrameSupply::Movie(sizes) => {
                FrameStream::Movie { next: below(sizes.len() as u64, rng) as usize, sizes: Arc::clone(sizes) }
            }
            FrameSupply::Endless(model) => FrameStream::Endless(Synthesis::new(Arc::clone(model), rng)),
            FrameSupply::Choice(movies) => movies[below(movies.len() as u64, rng) as usize].stream(rng),
        }
    }

    /// The whole movie from its first frame; of an endless one, `count` frames.
    pub(crate) fn frames(&self, count: usize, rng: &mut impl Rng) -> Vec<u64> {
        match self {
            FrameSupply::Movie(sizes) => sizes.to_vec(),
            FrameSupply::Endless(_) | FrameSupply::Choice(_) => {
                let mut stream = self.stream(rng);
                (0..count).map(|_| stream.next(rng)).collect()
            }
        }
    }
}

impl FrameStream {
    /// Bytes of the next frame.
    pub(crate) fn next(&mut self, rng: &mut impl Rng) -> u64 {
        match self {
            FrameStream::Movie { sizes, next } => {
                let size = sizes[*next];
                *next = (*next + 1) % sizes.len();
                size
            }
            FrameStream::Endless(synthesis) => whole_bytes(synthesis.next(rng)),
        }
    }
}

fn whole_bytes(size: f64) -> u64 {
    size.round().max(1.0) as u64
}

/// Derived parameters of a synthetic sequence.
pub(crate) struct Model {
    mean_bytes: f64,
    /// Size of each frame of the group relative to the group's mean.
    shares: Vec<f64>,
    frame_cov: f64,
    scene_cov: f64,
    marginal: Marginal,
    correlation: Correlation,
    /// Mean length of a scene, in frames.
    scene_frames: f64,
}

/// State of a synthetic sequence.
pub(crate) struct Synthesis {
    model: Arc<Model>,
    position: usize,
    /// The scene's factor; under an autoregressive process its standard normal.
    scene: f64,
}

impl Model {
    fn new(spec: &SyntheticFrames, rate_hz: f64) -> Self {
        Model {
            mean_bytes: spec.mean_bytes * spec.bytes_per_unit,
            shares: type_shares(spec),
            frame_cov: spec.frame_cov,
            scene_cov: spec.scene_cov,
            marginal: spec.marginal,
            correlation: spec.correlation,
            scene_frames: (spec.scene_mean_s * rate_hz).max(1.0),
        }
    }

    /// A whole movie, scaled to the mean.
    fn movie(self, length: u32, rng: &mut impl Rng) -> Arc<[u64]> {
        let mean_bytes = self.mean_bytes;
        let mut synthesis = Synthesis::new(Arc::new(self), rng);
        synthesis.position = 0;
        let sizes: Vec<f64> = (0..length.max(1)).map(|_| synthesis.next(rng)).collect();
        let scale = mean_bytes * sizes.len() as f64 / sizes.iter().sum::<f64>();
        sizes.into_iter().map(|size| whole_bytes(size * scale)).collect()
    }

    fn factor(&self, cov: f64, rng: &mut impl Rng) -> f64 {
        match self.marginal {
            Marginal::Lognormal => unit_mean_lognormal(normal(rng), cov),
            Marginal::Gamma => unit_mean_gamma(cov, rng),
        }
    }
}

impl Synthesis {
    fn new(model: Arc<Model>, rng: &mut impl Rng) -> Self {
        let position = below(model.shares.len() as u64, rng) as usize;
        let scene = match model.correlation {
            Correlation::Scenes => model.factor(model.scene_cov, rng),
            Correlation::Autoregressive => normal(rng),
        };
        Synthesis { model, position, scene }
    }

    /// Bytes of the next frame, not yet whole.
    fn next(&mut self, rng: &mut impl Rng) -> f64 {
        let model = &self.model;
        let activity = match model.correlation {
            Correlation::Scenes => {
                if chance(1.0 / model.scene_frames, rng) {
                    self.scene = model.factor(model.scene_cov, rng);
                }
                self.scene
            }
            Correlation::Autoregressive => {
                let rho = libm::exp(-1.0 / model.scene_frames);
                self.scene = rho * self.scene + (1.0 - rho * rho).sqrt() * normal(rng);
                unit_mean_lognormal(self.scene, model.scene_cov)
            }
        };
        let share = model.shares[self.position];
        self.position = (self.position + 1) % model.shares.len();
        model.mean_bytes * share * activity * model.factor(model.frame_cov, rng)
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

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn spec() -> SyntheticFrames {
        SyntheticFrames {
            mean_bytes: 6208.0,
            bytes_per_unit: 1.0,
            group: "IBBPBBPBBPBB".into(),
            ratio_i_p_b: [5.0, 3.0, 1.0],
            frame_cov: 0.3,
            scene_cov: 0.3,
            scene_mean_s: 0.5,
            marginal: Marginal::Lognormal,
            correlation: Correlation::Scenes,
            length_frames: None,
        }
    }

    fn sizes(spec: &SyntheticFrames, count: usize) -> Vec<f64> {
        let frames = Frames { rate_hz: 30.0, source: FrameSource::Synthetic(spec.clone()) };
        let supply = FrameSupply::open(&frames, Path::new("."), "video", 3).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        supply.frames(count, &mut rng).into_iter().map(|size| size as f64).collect()
    }

    fn mean_and_cov(sizes: &[f64]) -> (f64, f64) {
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn each_client_has_one_of_the_movies() {
        let movie = |mean_bytes: f64| SyntheticFrames { mean_bytes, length_frames: Some(120), ..spec() };
        let source = FrameSource::Movies(vec![movie(1000.0), movie(10_000.0), movie(100_000.0)]);
        let frames = Frames { rate_hz: 30.0, source };
        let supply = FrameSupply::open(&frames, Path::new("."), "video", 3).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut clients = [0; 3];
        for _ in 0..3000 {
            let mut stream = supply.stream(&mut rng);
            // One repetition is the whole movie, with an exact mean.
            let mean = (0..120).map(|_| stream.next(&mut rng)).sum::<u64>() as f64 / 120.0;
            let movie = [1e3, 1e4, 1e5].iter().position(|exact| (mean / exact - 1.0).abs() < 0.001);
            clients[movie.unwrap()] += 1;
        }
        assert!(clients.iter().all(|count| (900..1100).contains(count)), "{clients:?}");
    }

    #[test]
    fn synthetic_frames_have_the_mean_and_variation_they_are_calibrated_to() {
        for marginal in [Marginal::Lognormal, Marginal::Gamma] {
            for correlation in [Correlation::Scenes, Correlation::Autoregressive] {
                if (marginal, correlation) == (Marginal::Gamma, Correlation::Autoregressive) {
                    continue;
                }
                let spec = SyntheticFrames { marginal, correlation, ..spec() };
                let shares = type_shares(&spec);
                let type_variance =
                    shares.iter().map(|share| (share - 1.0).powi(2)).sum::<f64>() / shares.len() as f64;
                let expected_cov = ((1.0 + type_variance) * 1.09 * 1.09 - 1.0).sqrt();
                let (mean, cov) = mean_and_cov(&sizes(&spec, 400_000));
                assert!((mean / 6208.0 - 1.0).abs() < 0.015, "{marginal:?}, {correlation:?}: mean {mean}");
                assert!((cov / expected_cov - 1.0).abs() < 0.03, "{marginal:?}, {correlation:?}: {cov}");
            }
        }
    }

    #[test]
    fn autoregressive_activity_is_correlated_over_the_stated_time() {
        let spec = SyntheticFrames {
            group: "I".into(),
            frame_cov: 0.0,
            correlation: Correlation::Autoregressive,
            ..spec()
        };
        let logs: Vec<f64> = sizes(&spec, 400_000).into_iter().map(f64::ln).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let covariance = |lag: usize| {
            logs.iter().zip(&logs[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
                / logs.len() as f64
        };
        // Half a second at 30 frames per second is 15 frames.
        let correlation = covariance(15) / covariance(0);
        assert!((correlation - (-1.0f64).exp()).abs() < 0.03, "{correlation}");
    }

    #[test]
    fn a_movie_has_its_length_and_exactly_its_mean_and_counts_in_its_unit() {
        let spec = SyntheticFrames {
            length_frames: Some(5960),
            mean_bytes: 8.0 * 6208.0,
            bytes_per_unit: 0.125,
            ..spec()
        };
        let sizes = sizes(&spec, 1);
        assert_eq!(sizes.len(), 5960);
        assert!((mean_and_cov(&sizes).0 - 6208.0).abs() < 0.1);
    }
}
