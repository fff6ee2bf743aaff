//! Distributions of whole numbers in one pass: 128 bins per doubling, and moments in floating point.

use serde::Serialize;

/// Classes per doubling, as a power of two: below 2^7 every number has its own.
const BITS: u32 = 7;

/// Counts numbers by class.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    smallest: Option<u64>,
    largest: u64,
    /// Welford's running mean, and sum of squared distances from it.
    mean: f64,
    squares: f64,
}

/// A distribution, in the unit of the field's name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// Count of numbers.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation (of a sample).
    pub sd: f64,
    /// Coefficient of variation: standard deviation by mean; absent where the mean is 0.
    pub cov: Option<f64>,
    /// Smallest.
    pub min: u64,
    /// Quantiles are lower edges of classes: exact below 128, at most 0.8 % too small above.
    pub p01: u64,
    /// As [`Distribution::p01`].
    pub p10: u64,
    /// As [`Distribution::p01`].
    pub p25: u64,
    /// As [`Distribution::p01`].
    pub p50: u64,
    /// As [`Distribution::p01`].
    pub p75: u64,
    /// As [`Distribution::p01`].
    pub p90: u64,
    /// As [`Distribution::p01`].
    pub p99: u64,
    /// As [`Distribution::p01`].
    pub p999: u64,
    /// Largest.
    pub max: u64,
    /// Points of the cumulative distribution: `[x, share of numbers below x]`, at powers of two and their halves.
    pub cdf: Vec<(u64, f64)>,
}

fn class(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(octave) << BITS) + (value >> octave)) as usize
}

/// The smallest number of a class.
fn lower_edge(class: usize) -> u64 {
    let octave = (class >> BITS).saturating_sub(1);
    ((class - (octave << BITS)) as u64) << octave
}

impl Histogram {
    /// Counts a number.
    pub fn add(&mut self, value: u64) {
        let class = class(value);
        if class >= self.counts.len() {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        self.total += 1;
        self.smallest = Some(self.smallest.map_or(value, |smallest| smallest.min(value)));
        self.largest = self.largest.max(value);
        let distance = value as f64 - self.mean;
        self.mean += distance / self.total as f64;
        self.squares += distance * (value as f64 - self.mean);
    }

    /// How many numbers have been counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Numbers below a limit: exact where it is an edge of a class, such as `n * 2^k` with `n` up to 256.
    pub fn below(&self, limit: u64) -> u64 {
        self.counts[..class(limit).min(self.counts.len())].iter().sum()
    }

    /// Quantile: lower edge of the first class with at least this share at or below it.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = ((share * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return lower_edge(class).clamp(self.smallest.unwrap_or(0), self.largest);
            }
        }
        self.largest
    }

    /// The distribution; absent where nothing was counted.
    pub fn distribution(&self) -> Option<Distribution> {
        let min = self.smallest?;
        let sd = if self.total > 1 { (self.squares / (self.total - 1) as f64).sqrt() } else { 0.0 };
        Some(Distribution {
            count: self.total,
            mean: self.mean,
            sd,
            cov: (self.mean > 0.0).then(|| sd / self.mean),
            min,
            p01: self.quantile(0.01),
            p10: self.quantile(0.1),
            p25: self.quantile(0.25),
            p50: self.quantile(0.5),
            p75: self.quantile(0.75),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.largest,
            cdf: self.cdf(),
        })
    }

    fn cdf(&self) -> Vec<(u64, f64)> {
        let mut points = Vec::new();
        for limit in (0..63).flat_map(|power| [1_u64 << power, (1 << power) + (1 << power) / 2]) {
            let share = self.below(limit) as f64 / self.total as f64;
            if points.last().map(|(last, _)| *last) == Some(limit) || share == 0.0 && limit < self.largest {
                continue;
            }
            points.push((limit, share));
            if limit > self.largest {
                break;
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_known_distribution() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.add(value));
        let found = histogram.distribution().unwrap();
        assert_eq!((found.count, found.min, found.p50, found.p99, found.max), (100, 1, 50, 99, 100));
        assert!((found.mean - 50.5).abs() < 1e-12);
        assert!((found.sd - 29.011_491_975_882_016).abs() < 1e-9);
        assert_eq!(histogram.below(64), 63);
    }

    #[test]
    fn common_sizes_are_exact() {
        let mut histogram = Histogram::default();
        for size in [512, 4096, 8192, 65_536, 131_072, 1 << 20] {
            histogram.add(size);
            assert_eq!(lower_edge(class(size)), size);
        }
        assert_eq!(histogram.distribution().unwrap().p50, 8192);
        assert!(Histogram::default().distribution().is_none());
    }

    proptest! {
        #[test]
        fn a_class_holds_what_is_from_its_edge_to_the_next(value: u64) {
            let class = class(value);
            prop_assert!(lower_edge(class) <= value);
            prop_assert!(value - lower_edge(class) <= value >> BITS);
            prop_assert!(class == super::class(u64::MAX) || lower_edge(class + 1) > value);
        }
    }
}
