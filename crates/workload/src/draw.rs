//! Random numbers, equal on every machine.
//!
//! Functions that IEEE 754 does not define exactly (logarithm, exponential, power) come from the `libm` crate, which gives the
//! same bits everywhere; platform libraries differ in the last place. Distributions are drawn by inversion: one uniform
//! number gives one value, and truncated distributions are exact without redrawing.

use libm::{erfc, exp, log, pow, sqrt};
use rand::Rng;

/// A number in the open interval (0, 1): a multiple of 2^-53, neither end included.
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    ((rng.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// A whole number below `n`, which is above 0; uniform but for 2^-64 * n.
pub(crate) fn below(n: u64, rng: &mut impl Rng) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Whether an event of this probability happens.
pub(crate) fn chance(probability: f64, rng: &mut impl Rng) -> bool {
    unit(rng) < probability
}

/// Exponential with this mean.
pub(crate) fn exponential(mean: f64, rng: &mut impl Rng) -> f64 {
    -log(unit(rng)) * mean
}

/// Standard normal.
pub(crate) fn normal(rng: &mut impl Rng) -> f64 {
    normal_quantile(unit(rng))
}

/// A lognormal draw with mean 1 and this coefficient of variation: sigma^2 = ln(1 + cov^2).
pub(crate) fn unit_mean_lognormal(z: f64, cov: f64) -> f64 {
    let variance = log(1.0 + cov * cov);
    exp(sqrt(variance) * z - variance / 2.0)
}

/// A gamma draw with mean 1 and this coefficient of variation (Marsaglia and Tsang, TOMS 26(3), 2000).
pub(crate) fn unit_mean_gamma(cov: f64, rng: &mut impl Rng) -> f64 {
    if cov <= 0.0 {
        return 1.0;
    }
    let shape = 1.0 / (cov * cov);
    // Below 1 the method does not hold: draw at shape + 1 and scale by U^(1/shape).
    let (at, boost) = if shape < 1.0 { (shape + 1.0, pow(unit(rng), 1.0 / shape)) } else { (shape, 1.0) };
    let d = at - 1.0 / 3.0;
    let c = 1.0 / sqrt(9.0 * d);
    loop {
        let x = normal(rng);
        let root = 1.0 + c * x;
        if root > 0.0 {
            let v = root * root * root;
            if log(unit(rng)) < 0.5 * x * x + d - d * v + d * log(v) {
                return d * v * boost / shape;
            }
        }
    }
}

/// A geometric count of at least 1 with this mean.
pub(crate) fn geometric(mean: f64, rng: &mut impl Rng) -> u64 {
    if mean <= 1.0 {
        return 1;
    }
    1 + (log(unit(rng)) / log(1.0 - 1.0 / mean)) as u64
}

/// Shuffles `items`.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last as u64 + 1, rng) as usize);
    }
}

/// The share `u` quantile of a Pareto distribution bounded to `low..=high`, with density proportional to
/// x^(-shape - 1). A shape of 0 is uniform in the logarithm.
pub(crate) fn pareto_quantile(shape: f64, low: f64, high: f64, u: f64) -> f64 {
    if shape == 0.0 {
        return low * pow(high / low, u);
    }
    low * pow(1.0 - u * (1.0 - pow(low / high, shape)), -1.0 / shape)
}

/// Mean of that distribution.
pub(crate) fn pareto_mean(shape: f64, low: f64, high: f64) -> f64 {
    // Integral of x^-shape over the limits, divided by that of x^(-shape - 1).
    let integral = |power: f64| {
        if power == -1.0 {
            log(high / low)
        } else {
            (pow(high, power + 1.0) - pow(low, power + 1.0)) / (power + 1.0)
        }
    };
    if low >= high { low } else { integral(-shape) / integral(-shape - 1.0) }
}

/// Share of the standard normal distribution below `z`.
pub(crate) fn normal_share(z: f64) -> f64 {
    0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The `p` quantile of the standard normal distribution, to about 1 part in 10^16 (Wichura, algorithm AS 241,
/// Applied Statistics 37(3), 1988).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(&CENTRE, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = sqrt(-log(tail));
    let z = if r <= 5.0 { ratio(&SHOULDER, r - 1.6) } else { ratio(&TAIL, r - 5.0) };
    if q < 0.0 { -z } else { z }
}

/// Numerator and denominator, from the highest power down.
type Rational = [[f64; 8]; 2];

fn ratio(of: &Rational, at: f64) -> f64 {
    let [above, below] = of.map(|terms| terms.iter().fold(0.0, |sum, term| sum * at + term));
    above / below
}

#[rustfmt::skip]
#[allow(clippy::excessive_precision, reason = "as published")]
const CENTRE: Rational = [
    [2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080],
    [5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0],
];

#[rustfmt::skip]
#[allow(clippy::excessive_precision, reason = "as published")]
const SHOULDER: Rational = [
    [7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0],
];

#[rustfmt::skip]
#[allow(clippy::excessive_precision, reason = "as published")]
const TAIL: Rational = [
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720],
    [2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0],
];

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_normal_quantile_inverts_the_normal_share() {
        for p in [
            1e-300,
            1e-30,
            1e-12,
            1e-6,
            0.001,
            0.02425,
            0.07,
            0.074,
            0.076,
            0.3,
            0.5,
            0.7,
            0.93,
            0.999,
            1.0 - 1e-9,
        ] {
            let back = normal_share(normal_quantile(p));
            assert!((back / p - 1.0).abs() < 1e-12, "{p} comes back as {back}");
        }
        // Published quantiles.
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
        assert!((normal_quantile(0.5)).abs() < 1e-16);
    }

    #[test]
    fn gamma_draws_have_their_mean_and_variation_on_both_sides_of_shape_1() {
        for cov in [0.2, 0.7, 1.0, 1.5] {
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let draws: Vec<f64> = (0..200_000).map(|_| unit_mean_gamma(cov, &mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / 2e5;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e5;
            // Five standard errors of the mean; the variance's own is several times that.
            assert!((mean - 1.0).abs() < 5.0 * cov / 2e5f64.sqrt(), "mean {mean} at {cov}");
            assert!((variance.sqrt() / cov - 1.0).abs() < 0.03, "variation {} at {cov}", variance.sqrt());
        }
    }

    #[test]
    fn bounded_pareto_quantiles_average_to_its_mean() {
        for shape in [0.0, 0.5, 1.0, 1.1, 2.5] {
            let slices = 1_000_000;
            let sum: f64 = (0..slices)
                .map(|i| pareto_quantile(shape, 2.0, 300.0, (f64::from(i) + 0.5) / f64::from(slices)))
                .sum();
            let mean = pareto_mean(shape, 2.0, 300.0);
            assert!((sum / f64::from(slices) / mean - 1.0).abs() < 1e-3, "shape {shape}: mean {mean}");
        }
    }

    #[test]
    fn geometric_counts_have_their_mean() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mean = (0..100_000).map(|_| geometric(4.0, &mut rng) as f64).sum::<f64>() / 1e5;
        // Standard deviation sqrt(12): five standard errors are 0.055.
        assert!((mean - 4.0).abs() < 0.055, "{mean}");
        assert_eq!(geometric(1.0, &mut rng), 1);
    }
}
