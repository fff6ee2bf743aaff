//! Demand of tasks over the intervals at which it grows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Tasks of one period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) period_ns: u64,
    /// Of all of them.
    pub(super) cost_ns: u128,
    /// The largest cost of a task of this period or a longer one, and which task's it is.
    pub(super) longest_ns: u64,
    pub(super) longest: usize,
}

/// Tasks as (period, cost, name), sorted by period, taken together by period.
pub(super) fn groups(tasks: impl Iterator<Item = (u64, u64, usize)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (period_ns, cost_ns, task) in tasks {
        match groups.last_mut().filter(|group| group.period_ns == period_ns) {
            Some(group) => {
                group.cost_ns += u128::from(cost_ns);
                if cost_ns > group.longest_ns {
                    (group.longest_ns, group.longest) = (cost_ns, task);
                }
            }
            None => groups.push(Group {
                period_ns,
                cost_ns: u128::from(cost_ns),
                longest_ns: cost_ns,
                longest: task,
            }),
        }
    }
    for index in (1..groups.len()).rev() {
        let later = groups[index];
        let group = &mut groups[index - 1];
        if later.longest_ns > group.longest_ns {
            (group.longest_ns, group.longest) = (later.longest_ns, later.longest);
        }
    }
    groups
}

/// An interval with deadlines at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// Its length.
    pub(super) interval_ns: u64,
    /// Maximum demand within it, with all tasks released at its beginning: the sum of `floor(interval / period) cost`. At
    /// most the interval if the utilisation is at most 1.
    pub(super) demand_ns: u64,
}

/// The intervals `k period` of all tasks, each length once, the shortest first; they end after 584 years.
pub(super) struct Points<'a> {
    groups: &'a [Group],
    /// The next interval of each group. Words, not pairs of words: most of the time of a test is spent in this heap.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    demand_ns: u64,
}

impl<'a> Points<'a> {
    pub(super) fn of(groups: &'a [Group]) -> Points<'a> {
        let first = |(index, group): (u32, &Group)| Reverse((group.period_ns, index));
        Points { groups, next: (0..).zip(groups).map(first).collect(), demand_ns: 0 }
    }
}

impl Iterator for Points<'_> {
    type Item = Point;

    fn next(&mut self) -> Option<Point> {
        let Reverse((interval_ns, _)) = *self.next.peek()?;
        loop {
            let mut top = self.next.peek_mut()?;
            let Reverse((due_ns, index)) = *top;
            if due_ns > interval_ns {
                break;
            }
            let group = &self.groups[index as usize];
            self.demand_ns = self.demand_ns.saturating_add(to_ns(group.cost_ns));
            match due_ns.checked_add(group.period_ns) {
                Some(next_ns) => *top = Reverse((next_ns, index)),
                None => {
                    // Longer intervals would have to be computed without this group.
                    PeekMut::pop(top);
                    self.next.clear();
                }
            }
        }
        Some(Point { interval_ns, demand_ns: self.demand_ns })
    }
}

fn to_ns(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_grows_at_the_multiples_of_periods() {
        let groups = groups([(4, 1, 0), (4, 2, 1), (6, 5, 2), (9, 3, 3)].into_iter());
        let longest: Vec<(u64, usize)> =
            groups.iter().map(|group| (group.longest_ns, group.longest)).collect();
        assert_eq!(longest, [(5, 2), (5, 2), (3, 3)]);
        let points: Vec<(u64, u64)> =
            Points::of(&groups).take(5).map(|point| (point.interval_ns, point.demand_ns)).collect();
        assert_eq!(points, [(4, 3), (6, 8), (8, 11), (9, 14), (12, 22)]);
    }
}
