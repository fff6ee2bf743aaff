//! Zipf distribution of ranks, exact for any exponent from 0.

use libm::pow;
use rand::Rng;

use crate::draw::{below, unit};

/// Draws rank k of 0..n with probability proportional to (k + 1)^-alpha.
///
/// Walker's alias table in Vose's construction (IEEE TSE 17(9), 1991): 12 bytes a rank, two uniform numbers a
/// draw whatever the exponent. Rejection samplers need alpha > 0 and approximate cdfs need 0 < alpha < 1;
/// this one has the probabilities themselves.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    /// Share of a column that belongs to its own rank.
    own: Vec<f64>,
    /// The rank to which the rest of the column belongs.
    other: Vec<u32>,
}

impl Zipf {
    /// A table of `n` ranks, at least 1.
    pub(crate) fn new(n: u32, alpha: f64) -> Self {
        let mut own: Vec<f64> = (1..=n.max(1)).map(|rank| pow(f64::from(rank), -alpha)).collect();
        // Smallest first, to keep the contribution of small weights.
        let sum: f64 = own.iter().rev().sum();
        let scale = own.len() as f64 / sum;
        own.iter_mut().for_each(|weight| *weight *= scale);
        let mut other: Vec<u32> = (0..n.max(1)).collect();
        // Weights fall with rank: those that overflow their column come first.
        let (mut large, mut small): (Vec<u32>, Vec<u32>) =
            (0..n.max(1)).partition(|rank| own[*rank as usize] >= 1.0);
        while let (Some(&giver), Some(taker)) = (large.last(), small.pop()) {
            other[taker as usize] = giver;
            let left = own[giver as usize] - (1.0 - own[taker as usize]);
            own[giver as usize] = left;
            if left < 1.0 {
                large.pop();
                small.push(giver);
            }
        }
        // The remainder differs from 1 by rounding only.
        large.into_iter().chain(small).for_each(|rank| own[rank as usize] = 1.0);
        Zipf { own, other }
    }

    /// A rank from 0.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u32 {
        let column = below(self.own.len() as u64, rng) as u32;
        if unit(rng) < self.own[column as usize] { column } else { self.other[column as usize] }
    }

    /// Probability of each rank, added up from the table itself.
    #[cfg(test)]
    fn probabilities(&self) -> Vec<f64> {
        let n = self.own.len() as f64;
        let mut sums = vec![0.0; self.own.len()];
        for (column, (own, other)) in self.own.iter().zip(&self.other).enumerate() {
            sums[column] += own / n;
            sums[*other as usize] += (1.0 - own) / n;
        }
        sums
    }
}

/// The exponent under which these ranks (from 0, below `n`) are the most likely ones; `mean_log_rank` is the
/// mean of ln(rank + 1). Absent if no exponent from 0 to 20 does.
pub(crate) fn likeliest_alpha(n: u32, mean_log_rank: f64) -> Option<f64> {
    // The likelihood's derivative vanishes where the law's own mean log rank is the observed one; that mean
    // falls with alpha and its derivative is minus the variance: Newton's method, held within the limits.
    let logs: Vec<f64> = (1..=n).map(|rank| libm::log(f64::from(rank))).collect();
    let (mut low, mut high) = (0.0, 20.0);
    let mut alpha = 0.8;
    for _ in 0..60 {
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for log in &logs {
            let weight = libm::exp(-alpha * log);
            sum += weight;
            first += weight * log;
            second += weight * log * log;
        }
        let mean = first / sum;
        let variance = second / sum - mean * mean;
        if mean > mean_log_rank {
            low = alpha
        } else {
            high = alpha
        }
        let step = (mean - mean_log_rank) / variance;
        if step.abs() < 1e-9 {
            return Some(alpha);
        }
        let next = alpha + step;
        alpha = if next > low && next < high { next } else { f64::midpoint(low, high) };
    }
    None
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_table_holds_the_law_itself() {
        for alpha in [0.0, 0.3, 0.75, 1.0, 1.5, 4.0] {
            for n in [1, 2, 3, 1000] {
                let zipf = Zipf::new(n, alpha);
                let norm: f64 = (1..=n).map(|rank| f64::from(rank).powf(-alpha)).sum();
                for (probability, rank) in zipf.probabilities().into_iter().zip(1..) {
                    let expected = f64::from(rank).powf(-alpha) / norm;
                    assert!((probability - expected).abs() < 1e-13, "rank {rank} of {n} at {alpha}");
                }
            }
        }
    }

    #[test]
    fn ten_million_ranks_are_drawn_by_the_law() {
        let n = 10_000_000;
        let zipf = Zipf::new(n, 0.9);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        // Ranks by decade: 1, 2-10, 11-100, ...
        let mut counts = [0.0; 8];
        let decade = |rank: u32| (f64::from(rank).log10() - 1e-12).floor().max(-1.0) as i32 + 1;
        let draws = 500_000;
        for _ in 0..draws {
            counts[decade(zipf.draw(&mut rng) + 1) as usize] += 1.0;
        }
        let mut expected = [0.0; 8];
        (1..=n).for_each(|rank| expected[decade(rank) as usize] += f64::from(rank).powf(-0.9));
        let norm: f64 = expected.iter().sum();
        let chi_squared: f64 = counts
            .iter()
            .zip(&expected)
            .map(|(count, weight)| {
                let expected = weight / norm * f64::from(draws);
                (count - expected).powi(2) / expected
            })
            .sum();
        // 7 degrees of freedom: the 99.9th percentile is 24.3.
        assert!(chi_squared < 24.3, "chi-squared {chi_squared}: {counts:?}");
    }

    #[test]
    fn the_likeliest_exponent_of_a_sample_is_the_one_it_was_drawn_with() {
        for alpha in [0.0, 0.6, 0.9, 1.4] {
            let zipf = Zipf::new(5000, alpha);
            let mut rng = ChaCha8Rng::seed_from_u64(2);
            let sum: f64 = (0..200_000).map(|_| f64::from(zipf.draw(&mut rng) + 1).ln()).sum();
            let found = likeliest_alpha(5000, sum / 2e5);
            // At alpha 0 the sample may point below it, where there is none.
            let near = found.map_or(alpha == 0.0, |found| (found - alpha).abs() < 0.02);
            assert!(near, "{found:?} for {alpha}");
        }
    }
}
