//! Adaptation of the root's rate: none, by steps, or by the service of the leaves (section 5).

use super::bucket::Rate;

/// Change of the root's rate at each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Fixed rate.
    None,
    /// Rising rate (experiment of Fig. 7).
    Rise,
    /// Rate rises if leaves get their reserved rates, falls otherwise (Fig. 8).
    Follow {
        /// Allowed deficit in percent.
        tolerance_percent: u64,
    },
}

/// Rate of the root, with the times of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programme {
    pub(super) change: Change,
    pub(super) step: Rate,
    pub(super) every_ns: u64,
    /// Start after the first request.
    pub(super) from_ns: u64,
    /// Lower limit: reserved bandwidths, at least one step.
    pub(super) least: Rate,
    pub(super) most: Rate,
    /// Upper limit until enough steps without a shortage.
    ceiling: Rate,
    kept_steps: u32,
}

/// Service of the leaves since the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Whether a backlogged leaf got too little of its reserved rate.
    pub(super) is_short: bool,
    /// Service of all leaves.
    pub(super) got: Rate,
    /// Whether the leaves together used the root's rate, which may have limited them.
    pub(super) is_used_up: bool,
}

/// Steps without a shortage before the limit is tried again.
const PATIENCE_STEPS: u32 = 20;

impl Programme {
    /// A programme before its first step.
    pub(super) fn new(
        change: Change,
        step: Rate,
        every_ns: u64,
        from_ns: u64,
        least: Rate,
        most: Rate,
    ) -> Self {
        let least = least.max(step).min(most);
        Programme { change, step, every_ns, from_ns, least, most, ceiling: most, kept_steps: 0 }
    }

    /// Rate after a step.
    pub(super) fn next(&mut self, rate: Rate, seen: Seen) -> Rate {
        let raised = rate.plus(self.step).min(self.most);
        match self.change {
            Change::None => rate,
            Change::Rise => raised,
            Change::Follow { .. } if seen.is_short => {
                self.kept_steps = 0;
                // Below where it was kept the last time.
                self.ceiling = rate.minus(self.step).minus(self.step).max(self.least);
                // At most the disk's actual rate: it was below the promised one.
                rate.minus(self.step).min(seen.got).max(self.least)
            }
            Change::Follow { .. } => {
                self.kept_steps += 1;
                if !seen.is_used_up {
                    return rate;
                }
                if raised > self.ceiling {
                    if self.kept_steps < PATIENCE_STEPS {
                        return rate;
                    }
                    self.kept_steps = 0;
                    self.ceiling = raised;
                }
                raised
            }
        }
    }

    /// Whether service suffices for a reservation, in parts of tokens.
    pub(super) fn is_enough(&self, got: i128, due: i128) -> bool {
        let tolerance = match self.change {
            Change::Follow { tolerance_percent } => i128::from(tolerance_percent),
            Change::None | Change::Rise => 0,
        };
        got * 100 >= due * (100 - tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_when_shares_are_kept_and_falls_when_they_are_not() {
        let change = Change::Follow { tolerance_percent: 5 };
        let mut follow = Programme::new(change, Rate::per_s(10), 1, 0, Rate::per_s(75), Rate::per_s(115));
        let mut next = |rate, is_short, is_used_up| {
            let seen = Seen { is_short, is_used_up, got: Rate::per_s(98) };
            follow.next(Rate::per_s(rate), seen).millionths_per_s() / 1_000_000
        };
        assert_eq!(next(100, false, true), 110);
        assert_eq!(next(110, false, true), 115);
        assert_eq!(next(100, false, false), 100);
        assert_eq!(next(115, true, true), 98);
        // It failed at 115 and held at 105: up to 95 it rises immediately, above after twenty steps.
        assert_eq!(next(85, false, true), 95);
        let waits = (0..19).map(|_| next(95, false, true)).collect::<Vec<_>>();
        assert_eq!((&waits[..18], waits[18]), ([95; 18].as_slice(), 105));
        assert_eq!(next(80, true, false), 75);
        assert!(follow.is_enough(95, 100) && !follow.is_enough(94, 100));
    }
}
