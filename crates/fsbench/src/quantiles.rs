//! Quantiles of latency samples.

use serde::Serialize;

/// Latencies in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Median of the repetitions' medians.
    pub median_us: f64,
    /// Smallest and largest of the repetitions' medians.
    pub range_us: [f64; 2],
    /// The 5th, 25th, 75th, 95th and 99th percentile of all samples.
    pub quantiles_us: [f64; 5],
    /// Number of samples in all repetitions.
    pub samples: usize,
}

/// Percentiles of [`Summary::quantiles_us`].
const PERCENTILES: [f64; 5] = [0.05, 0.25, 0.75, 0.95, 0.99];

impl Summary {
    /// Summary of samples in ns by repetition; `None` without samples.
    pub(crate) fn of(repetitions: &[Vec<u64>]) -> Option<Self> {
        let mut medians: Vec<u64> = Vec::new();
        for samples in repetitions.iter().filter(|samples| !samples.is_empty()) {
            let mut samples = samples.clone();
            samples.sort_unstable();
            medians.push(quantile(&samples, 0.5)?);
        }
        medians.sort_unstable();
        let mut all: Vec<u64> = repetitions.iter().flatten().copied().collect();
        all.sort_unstable();
        let us = |ns: u64| ns as f64 / 1e3;
        let mut quantiles_us = [0.0; 5];
        for (slot, share) in quantiles_us.iter_mut().zip(PERCENTILES) {
            *slot = us(quantile(&all, share)?);
        }
        Some(Summary {
            median_us: us(quantile(&medians, 0.5)?),
            range_us: [us(*medians.first()?), us(*medians.last()?)],
            quantiles_us,
            samples: all.len(),
        })
    }
}

/// The smallest sample that at least this share of them does not exceed. Samples are sorted.
fn quantile(samples: &[u64], share: f64) -> Option<u64> {
    let rank = (samples.len() as f64 * share).ceil() as usize;
    samples.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_medians_and_quantiles_are_of_all() {
        let summary = Summary::of(&[vec![3000, 1000, 2000], vec![9000], vec![], vec![4000, 5000]]).unwrap();
        assert_eq!((summary.median_us, summary.range_us, summary.samples), (4.0, [2.0, 9.0], 6));
        assert_eq!(summary.quantiles_us, [1.0, 2.0, 5.0, 9.0, 9.0]);
        assert_eq!(Summary::of(&[vec![]]), None);
    }
}
