//! File set of a class: sizes and popularity.

use rand::Rng;

use crate::draw::{below, shuffle, unit};
use crate::limits::ALIGNMENT_BYTES;
use crate::seed::{Purpose, generator};
use crate::spec::{Files, Popularity};
use crate::zipf::Zipf;

/// The files of a class, laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSet {
    sizes_bytes: Vec<u64>,
}

/// `bytes` rounded up to the alignment, and at least one unit of it.
pub(crate) fn align_up(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(ALIGNMENT_BYTES).saturating_mul(ALIGNMENT_BYTES)
}

impl FileSet {
    /// The files of `class` in a run with this seed. The same arguments give the same files.
    pub fn new(files: &Files, class: &str, seed: u64) -> Self {
        let mut rng = generator(seed, class, Purpose::FileSizes);
        let mut sizes_bytes: Vec<u64> = (0..files.count)
            .map(|slice| {
                let within = unit(&mut rng);
                let u = if files.stratified {
                    (f64::from(slice) + within) / f64::from(files.count)
                } else {
                    within
                };
                align_up(files.size.quantile(u))
            })
            .collect();
        if files.stratified {
            shuffle(&mut sizes_bytes, &mut rng);
        }
        FileSet { sizes_bytes }
    }

    /// Bytes of each file, by file id; multiples of [`ALIGNMENT_BYTES`].
    pub fn sizes_bytes(&self) -> &[u64] {
        &self.sizes_bytes
    }

    /// Bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.sizes_bytes.iter().fold(0, |sum, size| size.saturating_add(sum))
    }

    /// First byte of each file where they lie one behind the other on a raw device.
    pub fn offsets_bytes(&self) -> Vec<u64> {
        let mut next = 0;
        let mut place = |size: &u64| {
            let offset = next;
            next = size.saturating_add(next);
            offset
        };
        self.sizes_bytes.iter().map(&mut place).collect()
    }
}

/// State of a client that requests files in turn.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    next: u64,
    step: u64,
}

impl Turn {
    /// That of one of `clients`: it begins at its own number and leaves out what the others ask for.
    pub(crate) fn new(client: u32, clients: u32) -> Self {
        Turn { next: u64::from(client), step: u64::from(clients.max(1)) }
    }

    fn take(&mut self, of: usize) -> usize {
        let place = self.next % of as u64;
        self.next += self.step;
        place as usize
    }
}

/// Draws files by popularity.
pub(crate) struct Picker {
    /// File id by rank.
    ranks: Vec<u32>,
    zipf: Option<Zipf>,
    in_turn: bool,
}

impl Picker {
    pub(crate) fn new(files: &Files, class: &str, seed: u64) -> Self {
        let mut ranks: Vec<u32> = (0..files.count).collect();
        let zipf = match files.popularity {
            Popularity::Zipf { alpha } => Some(Zipf::new(files.count, alpha)),
            Popularity::Uniform | Popularity::InTurn => None,
        };
        let in_turn = files.popularity == Popularity::InTurn;
        if zipf.is_some() || in_turn {
            // Popular files must not lie side by side, or popularity would pass for locality.
            shuffle(&mut ranks, &mut generator(seed, class, Purpose::Popularity));
        }
        Picker { ranks, zipf, in_turn }
    }

    pub(crate) fn pick(&self, rng: &mut impl Rng, turn: &mut Turn) -> u32 {
        let rank = match &self.zipf {
            Some(zipf) => zipf.draw(rng) as usize,
            None if self.in_turn => turn.take(self.ranks.len()),
            None => below(self.ranks.len() as u64, rng) as usize,
        };
        self.ranks[rank]
    }

    /// Files by popularity, each with its share of requests; absent without ranks.
    pub(crate) fn ranked(&self, files: &Files) -> Option<Vec<(u32, f64)>> {
        let Popularity::Zipf { alpha } = files.popularity else { return None };
        let weights: Vec<f64> = (1..=self.ranks.len()).map(|rank| libm::pow(rank as f64, -alpha)).collect();
        // Smallest first, so that what is small still counts.
        let sum: f64 = weights.iter().rev().sum();
        Some(self.ranks.iter().copied().zip(weights.iter().map(|weight| weight / sum)).collect())
    }

    /// Rank of each file, from 0; absent without ranks.
    pub(crate) fn rank_of_file(&self) -> Option<Vec<u32>> {
        self.zipf.as_ref()?;
        let mut rank_of = vec![0; self.ranks.len()];
        for (rank, file) in (0..).zip(&self.ranks) {
            rank_of[*file as usize] = rank;
        }
        Some(rank_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Distribution;

    fn files(count: u32, popularity: Popularity) -> Files {
        Files { count, size: Distribution::Fixed { bytes: 5000 }, stratified: false, popularity }
    }

    #[test]
    fn files_are_aligned_and_lie_one_behind_the_other() {
        let set = FileSet::new(&files(3, Popularity::Uniform), "text", 1);
        assert_eq!(set.sizes_bytes(), [8192, 8192, 8192]);
        assert_eq!(set.offsets_bytes(), [0, 8192, 16384]);
    }

    #[test]
    fn stratified_sizes_add_up_to_nearly_the_same_with_every_seed() {
        let deviation = |stratified| {
            let size = Distribution::Lognormal {
                median_bytes: 1e5,
                sigma: 1.3,
                min_bytes: 4096,
                max_bytes: 1 << 24,
            };
            let files = Files { count: 500, size, stratified, popularity: Popularity::Uniform };
            let sums: Vec<f64> =
                (0..20).map(|seed| FileSet::new(&files, "web", seed).total_bytes() as f64).collect();
            let mean = sums.iter().sum::<f64>() / 20.0;
            // The mean of the untruncated distribution is 1e5 * exp(1.3^2 / 2).
            assert!((mean / 500.0 / 2.328e5 - 1.0).abs() < 0.1, "{mean}");
            (sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / 20.0).sqrt() / mean
        };
        let (stratified, independent) = (deviation(true), deviation(false));
        assert!(stratified * 3.0 < independent, "{stratified} against {independent}");
    }

    #[test]
    fn in_turn_no_file_comes_again_before_all_were_asked_for() {
        let picker = Picker::new(&files(21, Popularity::InTurn), "web", 7);
        let mut rng = generator(7, "web", Purpose::Client(0));
        let mut turns = [0, 1, 2].map(|client| Turn::new(client, 3));
        let mut round = || -> Vec<u32> {
            (0..7).flat_map(|_| turns.each_mut().map(|turn| picker.pick(&mut rng, turn))).collect()
        };
        let first = round();
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert!(sorted == (0..21).collect::<Vec<u32>>() && first != sorted);
        assert_eq!(round(), first);
    }

    #[test]
    fn zipf_shares_follow_the_law() {
        let files = files(100, Popularity::Zipf { alpha: 0.8 });
        let picker = Picker::new(&files, "web", 7);
        let mut rng = generator(7, "web", Purpose::Client(0));
        let mut counts = vec![0u32; 100];
        let draws = 200_000;
        for _ in 0..draws {
            counts[picker.pick(&mut rng, &mut Turn::new(0, 1)) as usize] += 1;
        }
        let norm: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.8)).sum();
        let chi_squared: f64 = picker
            .ranks
            .iter()
            .zip(1..)
            .map(|(file, rank): (&u32, u32)| {
                let expected = f64::from(draws) * f64::from(rank).powf(-0.8) / norm;
                (f64::from(counts[*file as usize]) - expected).powi(2) / expected
            })
            .sum();
        // 99 degrees of freedom: the 99.9th percentile is 148.2.
        assert!(chi_squared < 148.2, "chi-squared {chi_squared}");
    }
}
