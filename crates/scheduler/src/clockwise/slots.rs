//! Release times and deadlines of a contract's requests.

use std::collections::VecDeque;

use crate::guarantee::Task;

/// A request's release and deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) release_ns: u64,
    pub(super) due_ns: u64,
}

/// Slots of a contract.
///
/// [`Slots::next`] returns the slot of the next request without a change; [`Slots::spend`] uses it. Requests of a contract are
/// served in order, so only the first one has a slot. A request served without spending its slot leaves it to the next one.
#[derive(Debug, Clone)]
pub(super) enum Slots {
    /// One request in a period. Thesis, section 6.3.2: the release is the arrival or the last deadline, whichever is later.
    Stream { period_ns: u64, last_due_ns: u64 },
    /// Up to `cost` in any period: used time is replenished one period after its release (sporadic server of Sprunt, Sha and
    /// Lehoczky 1989). The demand of any interval is at most that of a task with this cost and period.
    Server { task: Task, last_release_ns: u64, spent: VecDeque<(u64, u64)> },
    /// Up to `cost` in a container, which is due a period after its release. Thesis, section 6.5.4. A late joiner of
    /// an open container is due earlier after its arrival than the admission test assumes.
    Container { task: Task, open: Slot, left_ns: u64 },
    /// A slice of `cost` in a period, used up by actual service times; excess reduces the next slices. Atropos, as in section
    /// 2.7 of the thesis.
    Slice { task: Task, open: Slot, left_ns: i64 },
}

impl Slots {
    pub(super) fn stream(task: Task) -> Slots {
        Slots::Stream { period_ns: task.period_ns(), last_due_ns: 0 }
    }

    pub(super) fn server(task: Task) -> Slots {
        Slots::Server { task, last_release_ns: 0, spent: VecDeque::new() }
    }

    pub(super) fn container(task: Task) -> Slots {
        Slots::Container { task, open: NONE, left_ns: 0 }
    }

    pub(super) fn slice(task: Task) -> Slots {
        Slots::Slice { task, open: NONE, left_ns: 0 }
    }

    /// Whether it is the contract of a best-effort class.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Slots::Server { .. } | Slots::Container { .. })
    }

    /// Release and deadline of an arrived request with a bound of `cost_ns`.
    pub(super) fn next(&self, arrived_ns: u64, cost_ns: u64) -> Slot {
        match self {
            Slots::Stream { period_ns, last_due_ns } => slot(arrived_ns.max(*last_due_ns), *period_ns),
            Slots::Server { task, last_release_ns, spent } => {
                let mut release_ns = arrived_ns.max(*last_release_ns);
                let mut used_ns: u64 = spent.iter().map(|(_, cost_ns)| cost_ns).sum();
                for (spent_at_ns, spent_ns) in spent {
                    let again_ns = spent_at_ns.saturating_add(task.period_ns());
                    if again_ns > release_ns {
                        if used_ns.saturating_add(cost_ns) <= task.cost_ns() {
                            break;
                        }
                        release_ns = again_ns;
                    }
                    used_ns -= spent_ns;
                }
                slot(release_ns, task.period_ns())
            }
            Slots::Container { task, open, left_ns } => {
                if *left_ns >= cost_ns && arrived_ns < open.due_ns {
                    *open
                } else {
                    slot(arrived_ns.max(open.due_ns), task.period_ns())
                }
            }
            Slots::Slice { task, open, left_ns } => {
                if *left_ns > 0 && arrived_ns < open.due_ns {
                    *open
                } else {
                    // Periods that only compensate for excess use.
                    let owed_ns = left_ns.min(&0).unsigned_abs();
                    let waits_ns = (owed_ns / task.cost_ns()).saturating_mul(task.period_ns());
                    slot(arrived_ns.max(open.due_ns).saturating_add(waits_ns), task.period_ns())
                }
            }
        }
    }

    /// Uses the slot of [`Slots::next`] for a request with a bound of `cost_ns`.
    pub(super) fn spend(&mut self, given: Slot, cost_ns: u64) {
        match self {
            Slots::Stream { last_due_ns, .. } => *last_due_ns = given.due_ns,
            Slots::Server { task, last_release_ns, spent } => {
                *last_release_ns = given.release_ns;
                let period_ns = task.period_ns();
                while spent
                    .front()
                    .is_some_and(|(at_ns, _)| at_ns.saturating_add(period_ns) <= given.release_ns)
                {
                    spent.pop_front();
                }
                match spent.back_mut().filter(|(at_ns, _)| *at_ns == given.release_ns) {
                    Some((_, spent_ns)) => *spent_ns = spent_ns.saturating_add(cost_ns),
                    None => spent.push_back((given.release_ns, cost_ns)),
                }
            }
            Slots::Container { task, open, left_ns } => {
                if *open != given {
                    (*open, *left_ns) = (given, task.cost_ns());
                }
                *left_ns = left_ns.saturating_sub(cost_ns);
            }
            Slots::Slice { task, open, left_ns } => {
                if *open != given {
                    let slice_ns = signed(task.cost_ns());
                    // Whole slices that were owed have been waited for.
                    *left_ns = slice_ns + (*left_ns).min(0) % slice_ns;
                    *open = given;
                }
                *left_ns = left_ns.saturating_sub(signed(cost_ns));
            }
        }
    }

    /// Reports the service time `took_ns` of a request with `cost_ns` spent; returns whether later slots changed.
    pub(super) fn settle(&mut self, cost_ns: u64, took_ns: u64) -> bool {
        let Slots::Slice { left_ns, .. } = self else { return false };
        *left_ns = left_ns.saturating_add(signed(cost_ns)).saturating_sub(signed(took_ns));
        true
    }

    /// Removes a percentage of a slice from the current slice, or from the next one if it is used up.
    pub(super) fn punish(&mut self, percent: u64) {
        if let Slots::Slice { task, left_ns, .. } = self {
            let lost_ns = u128::from(task.cost_ns()) * u128::from(percent.min(100)) / 100;
            *left_ns = left_ns.saturating_sub(i64::try_from(lost_ns).unwrap_or(i64::MAX));
        }
    }
}

const NONE: Slot = Slot { release_ns: 0, due_ns: 0 };

fn slot(release_ns: u64, period_ns: u64) -> Slot {
    Slot { release_ns, due_ns: release_ns.saturating_add(period_ns) }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task::new(10, 100).unwrap()
    }

    /// Assigns slots to requests of (arrival, cost); returns releases and deadlines.
    fn given(slots: &mut Slots, requests: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let give = |(arrived_ns, cost_ns): &(u64, u64)| {
            let slot = slots.next(*arrived_ns, *cost_ns);
            slots.spend(slot, *cost_ns);
            (slot.release_ns, slot.due_ns)
        };
        requests.iter().map(give).collect()
    }

    #[test]
    fn a_stream_that_asks_too_fast_is_released_in_the_future() {
        let slots = &mut Slots::stream(task());
        let requests = [(5, 10), (20, 10), (120, 10), (500, 10)];
        assert_eq!(given(slots, &requests), [(5, 105), (105, 205), (205, 305), (500, 600)]);
    }

    #[test]
    fn a_server_gives_its_cost_in_any_period() {
        let slots = &mut Slots::server(task());
        // 4 + 4 fit; 4 more when the first are replenished; then the rest.
        let requests = [(0, 4), (50, 4), (60, 4), (60, 2), (60, 6), (300, 10), (300, 1)];
        let slots = given(slots, &requests);
        assert_eq!(slots, [(0, 100), (50, 150), (100, 200), (100, 200), (200, 300), (300, 400), (400, 500)]);
    }

    #[test]
    fn a_container_is_filled_and_then_the_next() {
        let slots = &mut Slots::container(task());
        let requests = [(0, 4), (90, 4), (90, 4), (90, 7), (90, 3), (500, 1)];
        let slots = given(slots, &requests);
        assert_eq!(slots, [(0, 100), (0, 100), (100, 200), (200, 300), (200, 300), (500, 600)]);
    }

    #[test]
    fn a_slice_is_used_up_by_time_and_pays_back() {
        let mut slots = Slots::slice(task());
        assert_eq!(given(&mut slots, &[(0, 10), (0, 10)]), [(0, 100), (100, 200)]);
        // The second took 3 only: there are 7 left. Then one takes 30: it owes 23, two slices and 3.
        assert!(slots.settle(10, 3));
        assert_eq!(given(&mut slots, &[(150, 10)]), [(100, 200)]);
        assert!(slots.settle(10, 30));
        assert_eq!(given(&mut slots, &[(150, 10)]), [(400, 500)]);
        assert!(slots.settle(10, 6));
        assert_eq!(given(&mut slots, &[(150, 1)]), [(400, 500)]);
        // Nothing is left, and half of the next slice is lost as well.
        slots.punish(50);
        assert_eq!(given(&mut slots, &[(450, 9), (450, 1)]), [(500, 600), (600, 700)]);
        slots.punish(100);
        slots.punish(100);
        // Of the 5 that are left nothing is, and a slice and a half are owed.
        assert_eq!(given(&mut slots, &[(650, 9), (650, 1)]), [(800, 900), (900, 1000)]);
    }
}
