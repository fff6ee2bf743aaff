//! Size distributions.

use libm::log;
use rand::Rng;

use crate::draw::{normal_quantile, normal_share, pareto_quantile, unit};
use crate::spec::{Distribution, Part};

impl Distribution {
    /// One size in bytes.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u64 {
        self.quantile(unit(rng))
    }

    /// The size, in bytes, that a share `u` of the draws stays below, for `u` between 0 and 1.
    pub(crate) fn quantile(&self, u: f64) -> u64 {
        match self {
            Distribution::Fixed { bytes } => *bytes,
            Distribution::Uniform { min_bytes, max_bytes } => {
                let sizes = max_bytes.saturating_sub(*min_bytes).saturating_add(1) as f64;
                within(*min_bytes, *max_bytes, *min_bytes as f64 + (u * sizes).floor())
            }
            Distribution::Normal { mean_bytes, std_bytes, min_bytes, max_bytes } => {
                let z = |bytes: u64| (bytes as f64 - mean_bytes) / std_bytes;
                let value = mean_bytes + std_bytes * truncated_normal(z(*min_bytes), z(*max_bytes), u);
                within(*min_bytes, *max_bytes, value)
            }
            Distribution::Lognormal { median_bytes, sigma, min_bytes, max_bytes } => {
                let mu = log(*median_bytes);
                let z = |bytes: u64| (log(bytes as f64) - mu) / sigma;
                let value = libm::exp(mu + sigma * truncated_normal(z(*min_bytes), z(*max_bytes), u));
                within(*min_bytes, *max_bytes, value)
            }
            Distribution::Pareto { shape, min_bytes, max_bytes } => {
                let value = pareto_quantile(*shape, *min_bytes as f64, *max_bytes as f64, u);
                within(*min_bytes, *max_bytes, value)
            }
            Distribution::Mixture(parts) => mixture(parts, u),
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

/// The `u` quantile of a standard normal within limits; 0 where they are undefined for want of a deviation.
fn truncated_normal(low: f64, high: f64, u: f64) -> f64 {
    let (from, to) = (normal_share(low), normal_share(high));
    let z = normal_quantile(from + u * (to - from));
    if z.is_nan() { 0.0 } else { z.clamp(low, high) }
}

/// The parts one behind the other: each takes its share of the unit interval.
fn mixture(parts: &[Part], u: f64) -> u64 {
    let mut from = 0.0;
    for part in parts {
        if u < from + part.share {
            return part.of.quantile((u - from) / part.share);
        }
        from += part.share;
    }
    // Shares that add up to a little less than 1 leave the rest to the last.
    parts.last().map_or(0, |part| part.of.quantile(u))
}

fn within(min: u64, max: u64, value: f64) -> u64 {
    (value.round().max(0.0) as u64).max(min).min(max)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

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
