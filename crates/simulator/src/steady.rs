//! Steady state of a device under a workload.

/// Rounds of a measurement window.
const WINDOW: usize = 5;

/// Rounds until a device is given up as unsteady (25, as SNIA's specification has it).
pub const MOST_ROUNDS: usize = 25;

/// The last five rounds, as SNIA's Solid State Storage Performance Test Specification 2.0.2 (3.2.4) judges them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Their mean.
    pub mean: f64,
    /// Difference of the largest and the smallest, as a share of the mean.
    pub range_share: f64,
    /// Change of their best-fit line from the first to the last, as a share of the mean; negative if it falls.
    pub slope_share: f64,
}

impl Steadiness {
    /// Largest range and slope of a steady state.
    pub const MOST_RANGE: f64 = 0.2;
    /// See `MOST_RANGE`.
    pub const MOST_SLOPE: f64 = 0.1;

    /// Of the last five rounds; `None` if there are fewer.
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let window = rounds.len().checked_sub(WINDOW).map(|first| &rounds[first..])?;
        let mean = window.iter().sum::<f64>() / WINDOW as f64;
        let (least, most) =
            window.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), one| (a.min(*one), b.max(*one)));
        let middle = (WINDOW - 1) as f64 / 2.0;
        let (mut together, mut squares) = (0.0, 0.0);
        for (round, value) in window.iter().enumerate() {
            let at = round as f64 - middle;
            together += at * (value - mean);
            squares += at * at;
        }
        let change = together / squares * (WINDOW - 1) as f64;
        Some(Self { mean, range_share: (most - least) / mean, slope_share: change / mean })
    }

    /// Whether range and slope are those of a steady state.
    pub fn is_steady(&self) -> bool {
        self.range_share <= Self::MOST_RANGE && self.slope_share.abs() <= Self::MOST_SLOPE
    }
}

/// Whether the last five rounds are steady.
pub fn is_steady(rounds: &[f64]) -> bool {
    Steadiness::of(rounds).is_some_and(|found| found.is_steady())
}

/// Rounds of a preconditioning, in each of which as many units are written as the device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preconditioning {
    /// Units that a round writes.
    pub round_units: u64,
    /// Number of rounds.
    pub rounds: usize,
    /// Units that were copied in each.
    copied_units: [u64; MOST_ROUNDS],
}

impl Preconditioning {
    /// Before the first round.
    pub fn new(round_units: u64) -> Self {
        Self { round_units, ..Self::default() }
    }

    /// Adds a round. At most [`MOST_ROUNDS`] are kept.
    pub fn add(&mut self, copied_units: u64) {
        if let Some(place) = self.copied_units.get_mut(self.rounds) {
            *place = copied_units;
            self.rounds += 1;
        }
    }

    /// Write amplification of each round.
    pub fn amplifications(&self) -> Vec<f64> {
        let of = |copied: &u64| 1.0 + *copied as f64 / self.round_units as f64;
        self.copied_units[..self.rounds].iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_five_rounds_decides() {
        assert!(!is_steady(&[1.0; 4]));
        assert!(is_steady(&[1.0; 5]));
        assert!(is_steady(&[9.0, 5.0, 1.0, 1.08, 0.92, 1.0, 1.0]));
        // 21 % between the largest and the smallest.
        assert!(!is_steady(&[1.0, 1.0, 1.21, 1.0, 1.0]));
        // Within 20 %, but rising by 12 %.
        assert!(!is_steady(&[0.94, 0.97, 1.0, 1.03, 1.06]));
        assert!(is_steady(&[0.96, 0.98, 1.0, 1.02, 1.04]));
    }

    #[test]
    fn range_and_slope_are_shares_of_the_mean() {
        let found = Steadiness::of(&[7.0, 2.0, 1.9, 2.1, 2.0, 2.0]).unwrap();
        assert!((found.mean - 2.0).abs() < 1e-12 && (found.range_share - 0.1).abs() < 1e-12);
        // Slope by least squares: (-2 x 0 - 1 x -0.1 + 0 + 0 + 0) / 10 a round, over four rounds.
        assert!((found.slope_share - 0.1 / 10.0 * 4.0 / 2.0).abs() < 1e-12, "{found:?}");
        let falling = Steadiness::of(&[1.1, 1.05, 1.0, 0.95, 0.9]).unwrap();
        assert!((falling.slope_share + 0.2).abs() < 1e-12 && !falling.is_steady());
    }

    #[test]
    fn rounds_are_kept_up_to_the_most() {
        let mut kept = Preconditioning::new(100);
        (0..30).for_each(|round| kept.add(round));
        let rounds = kept.amplifications();
        assert_eq!((rounds.len(), rounds[0], rounds[24]), (25, 1.0, 1.24));
    }
}
