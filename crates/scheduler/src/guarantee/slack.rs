//! Jeffay's test, and the slack ΔL of an admitted task set.
//!
//! With tasks 1 to n by period T, of cost C, and a time unit of 1 ns (thesis, section 6.2, Definition 1):
//!
//! * `M(L) = L - Σ floor(L / T_j) C_j` is what an interval L has left when requests are served in deadline order;
//!   `ΔLm` is its least value;
//! * `N(i, L) = L - C_i - Σ_{j<i} floor((L - 1) / T_j) C_j`, for `T_1 < L < T_i`, is what it has left when a request of task
//!   i, due later, was begun 1 ns before the others came; `ΔLn` is its least value. Condition (6.2) is that it is not
//!   negative;
//! * `ΔL = min(ΔLm, ΔLn)`.
//!
//! Both sums grow only at multiples of periods (Theorem 2), so that only these are looked at, in one sweep: of the tasks
//! with `T_i > L` the one with the largest cost leaves the least, whichever it is, and the sum over tasks before it is the
//! sum over all, since the others have no deadline within L yet.

use super::sweep::{Group, Points, groups};
use super::task::Task;
use super::utilisation::Utilisation;

/// How far intervals are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Until no longer one can leave less. Definition 1 stops at the longest period, and longer intervals leave less for
    /// some sets: of {(4, 8), (4, 9), (1, 18)} it says 1, and M(72) is 0. As
    /// `M(L) >= L (1 - utilisation)`, none from `ΔL / (1 - utilisation)` on can.
    #[default]
    Exact,
    /// Up to the longest period, as the thesis has it.
    Thesis,
}

/// The interval that leaves least, and what it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tightest {
    /// What is left of it.
    pub slack_ns: u64,
    /// The interval: the shortest of several that leave as little.
    pub interval_ns: u64,
}

/// How long requests of an admitted set can be put off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slack {
    /// ΔLm: all requests in deadline order.
    pub in_order: Tightest,
    /// ΔLn: a request that is due later has just been begun. `None` if all periods are the same length, so that none is.
    pub out_of_order: Option<Tightest>,
    /// Whether these are the least values. If not, there were too many intervals to look at, and ΔL is at least
    /// [`Slack::slack_ns`].
    pub is_exact: bool,
}

impl Slack {
    /// ΔL: every request is done so long before its deadline, or longer.
    pub fn slack_ns(self) -> u64 {
        self.out_of_order.map_or(self.in_order.slack_ns, |out| out.slack_ns.min(self.in_order.slack_ns))
    }
}

/// Why deadlines cannot be promised.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// More is asked for than the device has: (6.1).
    #[error("{:.4} of the device is asked for, more than all of it", utilisation.share())]
    Overload {
        /// What is asked for.
        utilisation: Utilisation,
    },
    /// A request that was just begun makes others late: (6.2).
    #[error(
        "a request of task {task} that was just begun leaves {shortfall_ns} ns too little of an interval of \
         {interval_ns} ns for those that are due within it"
    )]
    Blocked {
        /// Number of the task among those asked for, from 0.
        task: usize,
        /// L: the interval that leaves least.
        interval_ns: u64,
        /// By how much it is too short: `-N(i, L)`.
        shortfall_ns: u64,
    },
    /// There are too many intervals to look at.
    #[error(
        "after {points} intervals it cannot be said whether deadlines are met: periods differ by too much"
    )]
    Undecided {
        /// Intervals that were looked at.
        points: u64,
    },
}

/// Tests tasks, in any order, and says what slack they have; `Ok(None)` for none.
///
/// # Errors
/// A nonpreemptive device cannot hold the deadlines of all of them, whatever the order in which it serves.
pub fn slack(tasks: &[Task], mode: Mode) -> Result<Option<Slack>, Rejection> {
    let mut sorted: Vec<(u64, u64, usize)> =
        tasks.iter().enumerate().map(|(index, task)| (task.period_ns(), task.cost_ns(), index)).collect();
    sorted.sort_unstable();
    of_sorted(sorted.into_iter(), mode)
}

/// The same for (period, cost, number) sorted by period.
pub(super) fn of_sorted(
    sorted: impl Iterator<Item = (u64, u64, usize)>,
    mode: Mode,
) -> Result<Option<Slack>, Rejection> {
    let groups = groups(sorted);
    let costs: Vec<(u64, u128)> = groups.iter().map(|group| (group.period_ns, group.cost_ns)).collect();
    let utilisation = Utilisation::of_costs(&costs);
    if !utilisation.fits() {
        return Err(Rejection::Overload { utilisation });
    }
    least(&groups, utilisation, mode, MOST_POINTS)
}

/// Intervals to look at before giving up: a second's work.
const MOST_POINTS: u64 = 10_000_000;

/// A least value so far, with its interval and the task that was begun, if one was.
#[derive(Debug, Clone, Copy)]
struct Least {
    left_ns: i128,
    interval_ns: u64,
    task: usize,
}

impl Least {
    fn tightest(self) -> Tightest {
        Tightest { slack_ns: to_ns(self.left_ns.unsigned_abs()), interval_ns: self.interval_ns }
    }
}

fn least(
    groups: &[Group],
    utilisation: Utilisation,
    mode: Mode,
    most_points: u64,
) -> Result<Option<Slack>, Rejection> {
    let Some(longest_ns) = groups.last().map(|group| group.period_ns) else { return Ok(None) };
    let mut in_order: Option<Least> = None;
    let mut out_of_order: Option<Least> = None;
    // The first group whose period is longer than the interval at hand.
    let mut first_longer = 0;
    let mut idle_ns = 0;
    let mut is_exact = true;
    let mut intervals = (0_u64..).zip(Points::of(groups));
    loop {
        let Some((points, point)) = intervals.next() else {
            // No period is so long that a request of it could have been begun before all these.
            is_exact = false;
            break;
        };
        if point.interval_ns > longest_ns && mode == Mode::Thesis {
            break;
        }
        idle_ns = i128::from(utilisation.idle_ns(point.interval_ns));
        // Longer intervals leave at least `idle_ns`, or this less the longest request that can have been begun.
        let order_is_known = in_order.is_some_and(|least| least.left_ns <= idle_ns);
        while groups
            .get(first_longer)
            .is_some_and(|group| group.period_ns <= point.interval_ns.saturating_add(1))
        {
            first_longer += 1;
        }
        let begun = groups.get(first_longer);
        let block_is_known = begun.is_none_or(|begun| {
            out_of_order.is_some_and(|least| least.left_ns <= idle_ns - i128::from(begun.longest_ns))
        });
        if order_is_known && block_is_known {
            break;
        }
        if points >= most_points {
            let may_be_late = begun.is_some_and(|begun| idle_ns < i128::from(begun.longest_ns));
            if may_be_late && !block_is_known && out_of_order.is_none_or(|least| least.left_ns >= 0) {
                return Err(Rejection::Undecided { points });
            }
            is_exact = false;
            break;
        }
        let left_ns = i128::from(point.interval_ns) - i128::from(point.demand_ns);
        if in_order.is_none_or(|least| left_ns < least.left_ns) {
            in_order = Some(Least { left_ns, interval_ns: point.interval_ns, task: 0 });
        }
        if let Some(begun) = begun {
            let left_ns = left_ns + 1 - i128::from(begun.longest_ns);
            if out_of_order.is_none_or(|least| left_ns < least.left_ns) {
                let interval_ns = point.interval_ns.saturating_add(1);
                out_of_order = Some(Least { left_ns, interval_ns, task: begun.longest });
            }
        }
    }
    if let Some(blocked) = out_of_order.filter(|least| least.left_ns < 0) {
        let Tightest { slack_ns: shortfall_ns, interval_ns } = blocked.tightest();
        return Err(Rejection::Blocked { task: blocked.task, interval_ns, shortfall_ns });
    }
    let Some(mut in_order) = in_order else { return Ok(None) };
    if !is_exact {
        in_order.left_ns = in_order.left_ns.min(idle_ns);
        if let Some(out) = &mut out_of_order {
            let begun_ns = groups.get(first_longer).map_or(0, |begun| i128::from(begun.longest_ns));
            out.left_ns = out.left_ns.min(idle_ns - begun_ns);
        }
    }
    Ok(Some(Slack {
        in_order: in_order.tightest(),
        out_of_order: out_of_order.map(Least::tightest),
        is_exact,
    }))
}

fn to_ns(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "slack_tests.rs"]
mod tests;
