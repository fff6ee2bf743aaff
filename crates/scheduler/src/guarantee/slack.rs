//! Jeffay's test, and the slack ΔL of an admitted task set.
//!
//! With tasks 1 to n by period T, of cost C, and a time unit of 1 ns (thesis, section 6.2, Definition 1):
//!
//! * `M(L) = L - Σ floor(L / T_j) C_j` is the rest of an interval L when requests are served in deadline order;
//!   `ΔLm` is its minimum;
//! * `N(i, L) = L - C_i - Σ_{j<i} floor((L - 1) / T_j) C_j`, for `T_1 < L < T_i`, is its rest when a request of task i with a
//!   later deadline begins 1 ns before the other arrivals; `ΔLn` is its minimum. Condition (6.2): it is not negative;
//! * `ΔL = min(ΔLm, ΔLn)`.
//!
//! Both sums grow only at multiples of periods (Theorem 2), so only these are examined, in one sweep: of the tasks with
//! `T_i > L` the one with the largest cost determines the minimum, and the sum over tasks before it is the sum over all,
//! since the others have no deadline within L yet.

use super::sweep::{Group, Points, groups};
use super::task::Task;
use super::utilisation::Utilisation;

/// Range of tested intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Until no longer interval can have a smaller rest. Definition 1 stops at the longest period, but longer intervals
    /// have a smaller rest for some sets: for {(4, 8), (4, 9), (1, 18)} it yields 1, and M(72) is 0. As `M(L) >= L (1 -
    /// utilisation)`, no interval from `ΔL / (1 - utilisation)` on can.
    #[default]
    Exact,
    /// Up to the longest period, as the thesis has it.
    Thesis,
}

/// The interval with the least rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tightest {
    /// Rest of the interval.
    pub slack_ns: u64,
    /// Length of the interval; the shortest of equal rests.
    pub interval_ns: u64,
}

/// Slack of an admitted set: the time by which its requests can be postponed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slack {
    /// ΔLm: all requests in deadline order.
    pub in_order: Tightest,
    /// ΔLn: a request with a later deadline has just begun. `None` if all periods have the same length.
    pub out_of_order: Option<Tightest>,
    /// Whether these are the minima. If not, there were too many intervals to examine, and ΔL is at least
    /// [`Slack::slack_ns`].
    pub is_exact: bool,
}

impl Slack {
    /// ΔL: least time between completion and deadline of any request.
    pub fn slack_ns(self) -> u64 {
        self.out_of_order.map_or(self.in_order.slack_ns, |out| out.slack_ns.min(self.in_order.slack_ns))
    }
}

/// Reason why deadlines cannot be guaranteed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// Overload: condition (6.1).
    #[error("utilisation is too high (found {:.4}, expected at most 1)", utilisation.share())]
    Overload {
        /// Utilisation of the tasks.
        utilisation: Utilisation,
    },
    /// A request in service delays others: condition (6.2).
    #[error(
        "after a request of task {task} has just begun, an interval of {interval_ns} ns is {shortfall_ns} ns too short for \
         the requests with deadlines in it"
    )]
    Blocked {
        /// Index of the task, from 0.
        task: usize,
        /// L: the interval with the least rest.
        interval_ns: u64,
        /// Missing time: `-N(i, L)`.
        shortfall_ns: u64,
    },
    /// Too many intervals.
    #[error(
        "schedulability is undecided after {points} intervals: periods differ by too much. Use closer periods"
    )]
    Undecided {
        /// Tested intervals.
        points: u64,
    },
}

/// Tests tasks in any order and returns their slack; `Ok(None)` without tasks.
///
/// # Errors
/// A non-preemptive device cannot meet all deadlines in any order.
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

/// Maximum number of tested intervals: one second of CPU time.
const MOST_POINTS: u64 = 10_000_000;

/// Minimum so far, with its interval and the task in service, if any.
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
    // The first group whose period is longer than the current interval.
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
