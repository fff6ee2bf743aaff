//! Class-independent allocation of intervals to classes.

/// Account of a class in the current interval.
#[derive(Debug, Clone)]
struct Account {
    weight: f64,
    /// Its share of an interval.
    share_ns: i64,
    /// Used part of the share, with the excess of earlier intervals.
    used_ns: i64,
    /// Use beyond the share, from unused shares of others.
    extra_ns: i64,
}

/// Account that a request is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paid {
    /// The class's share.
    Share,
    /// Unused shares of other classes.
    Extra,
}

/// Shares of intervals in proportion to weights.
///
/// A request is charged with its estimate when it is scheduled; the charge is corrected at its completion. A class with
/// any part of its share left may schedule a larger request; the excess reduces its share of the next interval, which
/// removes the advantage of large requests. Unused shares expire.
#[derive(Debug)]
pub(super) struct Allocation {
    period_ns: u64,
    interval: Option<u64>,
    accounts: Vec<Account>,
}

impl Allocation {
    pub(super) fn new(period_ns: u64, weights: &[f64]) -> Allocation {
        let sum: f64 = weights.iter().sum();
        let share_ns = |weight: f64| (period_ns as f64 * (weight / sum)).round() as i64;
        let accounts = weights
            .iter()
            .map(|&weight| Account { weight, share_ns: share_ns(weight), used_ns: 0, extra_ns: 0 })
            .collect();
        Allocation { period_ns, interval: None, accounts }
    }

    /// Begins the interval of this time if it has not begun; returns its number.
    pub(super) fn begin(&mut self, now_ns: u64) -> u64 {
        let interval = now_ns / self.period_ns;
        let passed = match self.interval {
            Some(known) if interval <= known => return known,
            Some(known) => i64::try_from(interval - known).unwrap_or(i64::MAX),
            None => 1,
        };
        self.interval = Some(interval);
        for account in &mut self.accounts {
            account.used_ns = account.used_ns.saturating_sub(account.share_ns.saturating_mul(passed)).max(0);
            account.extra_ns = 0;
        }
        interval
    }

    /// Rest of the interval of this time.
    pub(super) fn rest_ns(&self, now_ns: u64) -> i64 {
        i64::try_from(self.period_ns - now_ns % self.period_ns).unwrap_or(i64::MAX)
    }

    /// Whether a class has anything left of its share.
    pub(super) fn has_left(&self, class: usize) -> bool {
        self.accounts[class].used_ns < self.accounts[class].share_ns
    }

    /// Class with the least use of unused shares relative to its weight.
    pub(super) fn next_for_extra(&self, classes: impl Iterator<Item = usize>) -> Option<usize> {
        let extra = |class: &usize| self.accounts[*class].extra_ns as f64 / self.accounts[*class].weight;
        classes.min_by(|one, other| extra(one).total_cmp(&extra(other)))
    }

    /// Charges a class.
    pub(super) fn charge(&mut self, class: usize, paid: Paid, amount_ns: i64) {
        let account = &mut self.accounts[class];
        let purse = match paid {
            Paid::Share => &mut account.used_ns,
            Paid::Extra => &mut account.extra_ns,
        };
        *purse = purse.saturating_add(amount_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_in_proportion_and_excess_is_taken_off_later() {
        let mut allocation = Allocation::new(1000, &[3.0, 1.0]);
        assert_eq!(allocation.begin(500), 0);
        allocation.charge(0, Paid::Share, 749);
        assert!(allocation.has_left(0) && allocation.has_left(1));
        allocation.charge(0, Paid::Share, 800);
        allocation.charge(1, Paid::Share, 600);
        assert!(!allocation.has_left(0) && !allocation.has_left(1));
        // 799 too much of 750 a piece: the next interval is paid for. 350 of 250: the next, and 100 of the one after.
        assert_eq!(allocation.begin(1000), 1);
        assert!(!allocation.has_left(0) && !allocation.has_left(1));
        allocation.begin(2000);
        assert!(allocation.has_left(0) && allocation.has_left(1));
        allocation.charge(1, Paid::Share, 151);
        assert!(!allocation.has_left(1));
        assert_eq!(allocation.begin(2500), 2);
        allocation.begin(10_000);
        assert!(allocation.has_left(1));
    }

    #[test]
    fn what_is_left_goes_by_weight() {
        let mut allocation = Allocation::new(1000, &[2.0, 1.0]);
        let mut given = [0, 0];
        for _ in 0..30 {
            let class = allocation.next_for_extra(0..2).unwrap();
            allocation.charge(class, Paid::Extra, 10);
            given[class] += 1;
        }
        assert_eq!(given, [20, 10]);
        assert_eq!(allocation.next_for_extra(0..0), None);
    }
}
