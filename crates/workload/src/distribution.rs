//! Size distributions.

use libm::log;
use rand::Rng;

use crate::draw::{normal_quantile, normal_share, pareto_quantile, unit};
use crate::spec::Distribution;

impl Distribution {
    /// One size in bytes. Who draws many keeps a [`sampler`](Self::sampler).
    #[cfg(test)]
    fn draw(&self, rng: &mut impl Rng) -> u64 {
        self.sampler().draw(rng)
    }

    /// The size, in bytes, that a share `u` of the draws stays below, for `u` between 0 and 1.
    pub(crate) fn quantile(&self, u: f64) -> u64 {
        self.sampler().quantile(u)
    }

    /// The distribution with what all draws have in common.
    pub(crate) fn sampler(&self) -> Sampler {
        match self {
            Distribution::Fixed { bytes } => Sampler::Fixed(*bytes),
            Distribution::Uniform { min_bytes, max_bytes } => Sampler::Uniform([*min_bytes, *max_bytes]),
            Distribution::Normal { mean_bytes, std_bytes, min_bytes, max_bytes } => {
                let z = |bytes: u64| (bytes as f64 - mean_bytes) / std_bytes;
                Sampler::Normal {
                    mean_bytes: *mean_bytes,
                    std_bytes: *std_bytes,
                    limits: [*min_bytes, *max_bytes],
                    within: TruncatedNormal::new(z(*min_bytes), z(*max_bytes)),
                }
            }
            Distribution::Lognormal { median_bytes, sigma, min_bytes, max_bytes } => {
                let mu = log(*median_bytes);
                let z = |bytes: u64| (log(bytes as f64) - mu) / sigma;
                Sampler::Lognormal {
                    mu,
                    sigma: *sigma,
                    limits: [*min_bytes, *max_bytes],
                    within: TruncatedNormal::new(z(*min_bytes), z(*max_bytes)),
                }
            }
            Distribution::Pareto { shape, min_bytes, max_bytes } => {
                Sampler::Pareto { shape: *shape, limits: [*min_bytes, *max_bytes] }
            }
            Distribution::Mixture(parts) => {
                Sampler::Mixture(parts.iter().map(|part| (part.share, part.of.sampler())).collect())
            }
        }
    }

    /// The largest size that can be drawn, in bytes.
    pub(crate) fn largest(&self) -> u64 {
        match self {
            Distribution::Fixed { bytes } => *bytes,
            Distribution::Uniform { max_bytes, .. }
            | Distribution::Normal { max_bytes, .. }
            | Distribution::Lognormal { max_bytes, .. }
            | Distribution::Pareto { max_bytes, .. } => *max_bytes,
            Distribution::Mixture(parts) => parts.iter().map(|part| part.of.largest()).max().unwrap_or(0),
        }
    }
}

/// A distribution of sizes, ready to draw from: error functions of limits are evaluated once.
#[derive(Debug, Clone)]
pub(crate) enum Sampler {
    Fixed(u64),
    Uniform([u64; 2]),
    Normal {
        mean_bytes: f64,
        std_bytes: f64,
        limits: [u64; 2],
        within: TruncatedNormal,
    },
    Lognormal {
        mu: f64,
        sigma: f64,
        limits: [u64; 2],
        within: TruncatedNormal,
    },
    Pareto {
        shape: f64,
        limits: [u64; 2],
    },
    /// Shares and parts, one behind the other: each takes its share of the unit interval.
    Mixture(Vec<(f64, Sampler)>),
}

impl Sampler {
    /// One size in bytes.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u64 {
        self.quantile(unit(rng))
    }

    /// The size, in bytes, that a share `u` of the draws stays below, for `u` between 0 and 1.
    fn quantile(&self, u: f64) -> u64 {
        match self {
            Sampler::Fixed(bytes) => *bytes,
            Sampler::Uniform(limits) => {
                let [min, max] = *limits;
                let sizes = max.saturating_sub(min).saturating_add(1) as f64;
                clamped(*limits, min as f64 + (u * sizes).floor())
            }
            Sampler::Normal { mean_bytes, std_bytes, limits, within } => {
                clamped(*limits, mean_bytes + std_bytes * within.quantile(u))
            }
            Sampler::Lognormal { mu, sigma, limits, within } => {
                clamped(*limits, libm::exp(mu + sigma * within.quantile(u)))
            }
            Sampler::Pareto { shape, limits } => {
                clamped(*limits, pareto_quantile(*shape, limits[0] as f64, limits[1] as f64, u))
            }
            Sampler::Mixture(parts) => {
                let mut from = 0.0;
                for (share, part) in parts {
                    if u < from + share {
                        return part.quantile((u - from) / share);
                    }
                    from += share;
                }
                // Shares that add up to a little less than 1 leave the rest to the last.
                parts.last().map_or(0, |(_, part)| part.quantile(u))
            }
        }
    }
}

/// A standard normal within limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TruncatedNormal {
    limits: [f64; 2],
    /// Shares of the whole normal below the limits.
    below: [f64; 2],
}

impl TruncatedNormal {
    fn new(low: f64, high: f64) -> Self {
        Self { limits: [low, high], below: [normal_share(low), normal_share(high)] }
    }

    /// The `u` quantile; 0 where the limits are undefined for want of a deviation.
    fn quantile(&self, u: f64) -> f64 {
        let [from, to] = self.below;
        let z = normal_quantile(from + u * (to - from));
        if z.is_nan() { 0.0 } else { z.clamp(self.limits[0], self.limits[1]) }
    }
}

fn clamped([min, max]: [u64; 2], value: f64) -> u64 {
    (value.round().max(0.0) as u64).max(min).min(max)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::spec::Part;

    fn mean(of: &Distribution) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        (0..100_000).map(|_| of.draw(&mut rng) as f64).sum::<f64>() / 1e5
    }

    #[test]
    fn the_mean_of_a_normal_far_from_its_limits_is_its_mean() {
        let sizes =
            Distribution::Normal { mean_bytes: 32768.0, std_bytes: 4096.0, min_bytes: 1, max_bytes: 1 << 20 };
        // Four standard errors: 4 * 4096 / sqrt(1e5) = 52 bytes.
        assert!((mean(&sizes) - 32768.0).abs() < 52.0);
    }

    #[test]
    fn the_mean_of_a_lognormal_is_exp_of_mu_and_half_sigma_squared() {
        let sizes =
            Distribution::Lognormal { median_bytes: 8192.0, sigma: 0.5, min_bytes: 1, max_bytes: 1 << 40 };
        let expected = 8192.0 * (0.125f64).exp();
        assert!((mean(&sizes) / expected - 1.0).abs() < 0.01);
    }

    #[test]
    fn truncation_piles_nothing_up_at_the_limits() {
        let sizes =
            Distribution::Normal { mean_bytes: 1000.0, std_bytes: 1000.0, min_bytes: 500, max_bytes: 1500 };
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let at_limits = (0..10_000).filter(|_| [500, 1500].contains(&sizes.draw(&mut rng))).count();
        assert!(at_limits < 50, "{at_limits} of 10,000 draws sit on a limit");
    }

    #[test]
    fn every_size_between_the_limits_is_as_likely() {
        let sizes = Distribution::Uniform { min_bytes: 3, max_bytes: 6 };
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut counts = [0u32; 4];
        (0..40_000).for_each(|_| counts[(sizes.draw(&mut rng) - 3) as usize] += 1);
        // Five standard errors of a count: 5 * sqrt(40,000 * 3 / 16) = 433.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 433), "{counts:?}");
        assert_eq!((sizes.quantile(0.0), sizes.quantile(1.0), sizes.largest()), (3, 6, 6));
    }

    #[test]
    fn no_deviation_means_the_mean() {
        let sizes = Distribution::Normal { mean_bytes: 700.0, std_bytes: 0.0, min_bytes: 1, max_bytes: 1500 };
        assert_eq!(sizes.quantile(0.99), 700);
    }

    #[test]
    fn a_mixture_draws_each_part_by_its_share() {
        let part = |share, bytes| Part { share, of: Distribution::Fixed { bytes } };
        let sizes = Distribution::Mixture(vec![part(0.7, 8192), part(0.1, 4096), part(0.2, 65536)]);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let draws = (0..100_000).filter(|_| sizes.draw(&mut rng) == 8192).count();
        // Five standard errors: 5 * sqrt(0.7 * 0.3 / 1e5) = 0.0072.
        assert!((draws as f64 / 1e5 - 0.7).abs() < 0.0072, "{draws}");
        assert_eq!(sizes.largest(), 65536);
    }
}
