//! Utilisation of a task set, compared with 1 without rounding.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::task::Task;

/// The sum of cost / period over tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilisation {
    against_whole: Ordering,
    /// Idle share of the device, in steps of 2^-64, rounded down; 0 if fully used.
    idle: u64,
    about: f64,
}

/// Parts of a step of the comparison.
const STEP_BITS: u32 = 64;

impl Utilisation {
    /// Of these tasks.
    pub fn of(tasks: &[Task]) -> Utilisation {
        let mut costs: BTreeMap<u64, u128> = BTreeMap::new();
        for task in tasks {
            *costs.entry(task.period_ns()).or_default() += u128::from(task.cost_ns());
        }
        let costs: Vec<(u64, u128)> = costs.into_iter().collect();
        Utilisation::of_costs(&costs)
    }

    /// The utilisation of tasks, grouped by period: each period once, and its total cost.
    pub(super) fn of_costs(costs: &[(u64, u128)]) -> Utilisation {
        let about = costs.iter().map(|(period, cost)| *cost as f64 / *period as f64).sum();
        let used = costs.iter().try_fold(0u128, |used, (period, cost)| {
            used.checked_add(cost.checked_mul(1 << STEP_BITS)?.div_ceil(u128::from(*period)))
        });
        let idle = used.map_or(0, |used| (1u128 << STEP_BITS).saturating_sub(used));
        // Even rounded up, the utilisation is below 1: no exact comparison is needed.
        if idle > 0 {
            let idle = u64::try_from(idle).unwrap_or(u64::MAX);
            return Utilisation { against_whole: Ordering::Less, idle, about };
        }
        Utilisation { against_whole: compare(costs), idle: 0, about }
    }

    /// Whether it is at most 1: the test of Liu and Layland for deadline order with preemption, of Atropos and USD, and
    /// condition (6.1) of Bosch's thesis.
    pub fn fits(self) -> bool {
        self.against_whole != Ordering::Greater
    }

    /// As a number; rounded, for people.
    pub fn share(self) -> f64 {
        self.about
    }

    /// Minimum unused time in the first `interval_ns`: `interval (1 - utilisation)`, rounded down.
    pub(super) fn idle_ns(self, interval_ns: u64) -> u64 {
        ((u128::from(interval_ns) * u128::from(self.idle)) >> STEP_BITS) as u64
    }
}

/// Compares a sum of fractions with 1 by long division in steps of 2^-64, for all fractions together.
///
/// The rest of 1 after k digits, less the rests of the fractions, is the true difference scaled by 2^(64 k). A nonzero
/// difference is at least 1 / (product of the periods), and each period is below 2^64: it is found after as many steps as
/// periods, or is 0.
fn compare(costs: &[(u64, u128)]) -> Ordering {
    let count = costs.len() as i128;
    let whole: u128 = costs.iter().map(|(period, cost)| cost / u128::from(*period)).sum();
    let Ok(mut left) = i128::try_from(whole).map(|whole| 1 - whole) else { return Ordering::Greater };
    let mut rests: Vec<u128> = costs.iter().map(|(period, cost)| cost % u128::from(*period)).collect();
    for _ in 0..=costs.len() + 1 {
        // The rests are from 0 to less than one each.
        if left < 0 {
            return Ordering::Greater;
        }
        if rests.iter().all(|rest| *rest == 0) {
            return 0.cmp(&left);
        }
        if left >= count {
            return Ordering::Less;
        }
        left <<= STEP_BITS;
        for ((period, _), rest) in costs.iter().zip(&mut rests) {
            let scaled = *rest << STEP_BITS;
            left -= (scaled / u128::from(*period)) as i128;
            *rest = scaled % u128::from(*period);
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(tasks: &[(u64, u64)]) -> Utilisation {
        let tasks: Vec<Task> =
            tasks.iter().map(|(cost, period)| Task::new(*cost, *period).unwrap()).collect();
        Utilisation::of(&tasks)
    }

    #[test]
    fn a_whole_is_told_from_a_hair_more() {
        assert!(of(&[]).fits() && of(&[(1, 3), (1, 3), (1, 3)]).fits());
        assert!(of(&[(1, 3), (1, 7), (11, 21)]).fits());
        assert!(of(&[(1, 3), (2, 9), (4, 9)]).fits());
        // Over or under 1 by 2^-93, which a double cannot represent.
        let (p, q) = (999_999_999_999_989, 999_999_999_999_947);
        assert!(of(&[(2, p), (q - 2, q)]).fits());
        assert!(!of(&[(2, q), (p - 2, p)]).fits());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn it_agrees_with_a_common_denominator(tasks in prop::collection::vec((1..30_u64, 1..60_u64), 1..6)) {
            let product: u128 = tasks.iter().map(|(_, period)| u128::from(*period)).product();
            let sum: u128 =
                tasks.iter().map(|(cost, period)| u128::from(*cost) * (product / u128::from(*period))).sum();
            let found = of(&tasks);
            prop_assert_eq!(found.fits(), sum <= product);
            // Reported idle time is idle, and at most one step per task is lost.
            let idle = (1000 * product.saturating_sub(sum) / product) as u64;
            let said = found.idle_ns(1000);
            prop_assert!(said <= idle && idle <= said + 1);
        }
    }
}
