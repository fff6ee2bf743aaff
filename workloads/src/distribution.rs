//! Drawing sizes.

use rand::Rng;
use rand_distr::{Distribution as _, LogNormal, Normal};

use crate::spec::Distribution;

/// Draws that fall outside the limits before the last is clamped: a validated specification needs few.
const MOST_REDRAWS: u32 = 10_000;

impl Distribution {
    /// One size in bytes.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u64 {
        match *self {
            Distribution::Fixed { bytes } => bytes,
            Distribution::Normal { mean_bytes, std_bytes, min_bytes, max_bytes } => {
                match Normal::new(mean_bytes, std_bytes) {
                    Ok(normal) => within(min_bytes, max_bytes, || normal.sample(rng)),
                    Err(_) => min_bytes,
                }
            }
            Distribution::Lognormal { median_bytes, sigma, min_bytes, max_bytes } => {
                match LogNormal::new(median_bytes.ln(), sigma) {
                    Ok(lognormal) => within(min_bytes, max_bytes, || lognormal.sample(rng)),
                    Err(_) => min_bytes,
                }
            }
        }
    }

    /// The largest size that can be drawn, in bytes.
    pub(crate) fn largest(&self) -> u64 {
        match *self {
            Distribution::Fixed { bytes } => bytes,
            Distribution::Normal { max_bytes, .. } | Distribution::Lognormal { max_bytes, .. } => max_bytes,
        }
    }
}

/// Redraws until the value falls within the limits: truncation, not clamping, so no mass piles up at them.
fn within(min: u64, max: u64, mut draw: impl FnMut() -> f64) -> u64 {
    let mut value = draw();
    for _ in 0..MOST_REDRAWS {
        if value >= min as f64 && value <= max as f64 {
            break;
        }
        value = draw();
    }
    (value.round().max(0.0) as u64).clamp(min, max)
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
}
