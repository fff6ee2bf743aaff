//! Closed-loop clients that request files by popularity.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::draw::exponential;
use crate::fileset::{Picker, Turn};
use crate::seed::{Purpose, generator};
use crate::spec::Files;

/// Popularity of the files of a class, equal to that of the class's [`crate::Stream`].
#[derive(Clone)]
pub struct Popularities(Arc<Picker>);

impl Popularities {
    /// Those of `class` in a run with this seed. The same arguments give the same popularities.
    pub fn new(files: &Files, class: &str, seed: u64) -> Self {
        Popularities(Arc::new(Picker::new(files, class, seed)))
    }

    /// Rank from 0 (most popular) of each file, by its number; absent where all are alike.
    pub fn rank_of_file(&self) -> Option<Vec<u32>> {
        self.0.rank_of_file()
    }

    /// Files of `files`, for which these are, from the most popular one on, each with its share of the requests; absent where
    /// all are alike.
    pub fn ranked(&self, files: &Files) -> Option<Vec<(u32, f64)>> {
        self.0.ranked(files)
    }

    /// One of `clients`, with its own draws.
    pub fn visitor(&self, class: &str, seed: u64, client: u32, clients: u32) -> Visitor {
        let rng = generator(seed, class, Purpose::Client(client));
        Visitor { popularities: self.clone(), rng, turn: Turn::new(client, clients) }
    }
}

/// One client: its next files and think times.
pub struct Visitor {
    popularities: Popularities,
    rng: ChaCha8Rng,
    turn: Turn,
}

impl Visitor {
    /// Next file.
    pub fn next_file(&mut self) -> u32 {
        self.popularities.0.pick(&mut self.rng, &mut self.turn)
    }

    /// A think time: exponential with this mean, in ns; none is drawn for a mean of 0.
    pub fn think_ns(&mut self, mean_ns: f64) -> i64 {
        if mean_ns > 0.0 { exponential(mean_ns, &mut self.rng) as i64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Distribution, Popularity};

    #[test]
    fn visitors_follow_the_ranks_and_their_own_draws() {
        let files = Files {
            count: 50,
            size: Distribution::Fixed { bytes: 4096 },
            stratified: false,
            popularity: Popularity::Zipf { alpha: 1.0 },
        };
        let popularities = Popularities::new(&files, "web", 3);
        let asked = |client| {
            let mut visitor = popularities.visitor("web", 3, client, 2);
            (0..20_000).map(|_| visitor.next_file()).collect::<Vec<_>>()
        };
        let (first, second) = (asked(0), asked(1));
        assert!(first == asked(0) && first != second);
        let ranks = popularities.rank_of_file().unwrap();
        let ranked = popularities.ranked(&files).unwrap();
        assert_eq!(ranks[ranked[0].0 as usize], 0);
        assert!((ranked[0].1 - 0.2223).abs() < 1e-4, "{}", ranked[0].1);
        assert!((ranked.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        let top = first.iter().filter(|file| ranks[**file as usize] == 0).count() as f64;
        // The harmonic number of 50 is 4.499: a share of 0.2223, give or take 4 standard errors.
        assert!((top / 20_000.0 - 0.2223).abs() < 0.0118, "{top}");
        let mut visitor = popularities.visitor("web", 3, 0, 2);
        let mean = (0..20_000).map(|_| visitor.think_ns(1e6) as f64).sum::<f64>() / 2e4;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        assert_eq!(visitor.think_ns(0.0), 0);
    }
}
