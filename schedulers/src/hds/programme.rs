//! How the root's rate changes: not, by steps, or by what the leaves get (section 5).

use super::bucket::Rate;

/// What is done at each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The rate stays.
    None,
    /// It rises (the experiment of Fig. 7).
    Rise,
    /// It rises if leaves get what they reserve, and falls if they do not (Fig. 8).
    Follow {
        /// By how many percent less they may get.
        tolerance_percent: u64,
    },
}

/// The root's rate, and when it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programme {
    pub(super) change: Change,
    pub(super) step: Rate,
    pub(super) every_ns: u64,
    /// After the first request.
    pub(super) from_ns: u64,
    /// Never below what is reserved as bandwidth, nor one step.
    pub(super) least: Rate,
    pub(super) most: Rate,
}

/// What was seen of the leaves since the step before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Whether a leaf asked all the time and got too little of what it reserves.
    pub(super) is_short: bool,
    /// What all leaves got.
    pub(super) got: Rate,
    /// Whether the leaves together got what the root's rate allows, so that it may have held them back.
    pub(super) is_used_up: bool,
}

impl Programme {
    /// The rate after a step.
    pub(super) fn next(&self, rate: Rate, seen: Seen) -> Rate {
        let raised = rate.plus(self.step).min(self.most);
        match self.change {
            Change::None => rate,
            Change::Rise => raised,
            // No more than the disk did: it did not do what was promised.
            Change::Follow { .. } if seen.is_short => rate.minus(self.step).min(seen.got).max(self.least),
            Change::Follow { .. } if seen.is_used_up => raised,
            Change::Follow { .. } => rate,
        }
    }

    /// Whether so much is enough where so much was due, in parts of tokens.
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
        let follow = Programme {
            change: Change::Follow { tolerance_percent: 5 },
            step: Rate::per_s(10),
            every_ns: 1,
            from_ns: 0,
            least: Rate::per_s(95),
            most: Rate::per_s(115),
        };
        let next = |rate, is_short, is_used_up| {
            let seen = Seen { is_short, is_used_up, got: Rate::per_s(98) };
            follow.next(Rate::per_s(rate), seen).millionths_per_s() / 1_000_000
        };
        assert_eq!(next(100, false, true), 110);
        assert_eq!(next(110, false, true), 115);
        assert_eq!(next(200, true, true), 98);
        assert_eq!(next(107, true, true), 97);
        assert_eq!(next(100, true, false), 95);
        assert_eq!(next(100, false, false), 100);
        assert!(follow.is_enough(95, 100) && !follow.is_enough(94, 100));
    }
}
