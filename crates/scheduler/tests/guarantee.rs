//! The admission tests on random sets, against their definitions and against service in deadline order.

use proptest::prelude::*;
use weir_scheduler::guarantee::{Mode, Rejection, Slack, Task, TaskSet, Utilisation, slack};

fn set(tasks: &[(u64, u64)]) -> Vec<Task> {
    tasks.iter().map(|(cost_ns, period_ns)| Task::new(*cost_ns, *period_ns).unwrap()).collect()
}

/// Costs and periods of up to five tasks, of which many sets use most of the device.
fn tasks() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((4..=24_u64).prop_flat_map(|period| (1..=period / 2, Just(period))), 1..=5)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn hyper_period(tasks: &[(u64, u64)]) -> u64 {
    tasks.iter().fold(1, |lcm, (_, period)| lcm / gcd(lcm, *period) * period)
}

/// Σ cost / period <= 1, over a common denominator.
fn fits(tasks: &[(u64, u64)]) -> bool {
    let common = hyper_period(tasks);
    tasks.iter().map(|(cost, period)| cost * (common / period)).sum::<u64>() <= common
}

/// M(L).
fn in_order(tasks: &[(u64, u64)], interval: u64) -> i64 {
    let demand: u64 = tasks.iter().map(|(cost, period)| interval / period * cost).sum();
    interval as i64 - demand as i64
}

/// ΔLm up to an interval, and ΔLn with the interval that leaves least, word by word and interval by interval.
fn defined(tasks: &[(u64, u64)], up_to: u64) -> (i64, Option<(i64, u64)>) {
    let mut sorted = tasks.to_vec();
    sorted.sort_by_key(|(_, period)| *period);
    let shortest = sorted[0].1;
    let least_in_order = (shortest..=up_to).map(|interval| in_order(&sorted, interval)).min().unwrap();
    let mut out_of_order = None;
    for (index, (cost, period)) in sorted.iter().enumerate().skip(1) {
        for interval in shortest + 1..*period {
            let before: u64 =
                sorted[..index].iter().map(|(cost, period)| (interval - 1) / period * cost).sum();
            let left = interval as i64 - (cost + before) as i64;
            out_of_order = out_of_order.into_iter().chain([(left, interval)]).min();
        }
    }
    (least_in_order, out_of_order)
}

/// Intervals beyond it are not examined one by one.
const MOST_LOOKED_AT: u64 = 20_000;

fn found(tasks: &[(u64, u64)], mode: Mode) -> Result<Slack, Rejection> {
    slack(&set(tasks), mode).map(|slack| slack.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Both modes equal their definitions, the exact one over the whole hyper-period. Property 2: exact is at most
    /// thesis, and differs only where thesis exceeds the idle share of the longest period.
    #[test]
    fn verdict_and_slack_are_as_defined(tasks in tasks()) {
        let longest = tasks.iter().map(|(_, period)| *period).max().unwrap();
        let (thesis, exact) = (found(&tasks, Mode::Thesis), found(&tasks, Mode::Exact));
        if !fits(&tasks) {
            for rejected in [thesis, exact] {
                let is_overload = matches!(rejected, Err(Rejection::Overload { .. }));
                prop_assert!(is_overload, "{:?}", rejected);
            }
            return Ok(());
        }
        let (in_order, out_of_order) = defined(&tasks, longest);
        if let Some((left, interval)) = out_of_order.filter(|(left, _)| *left < 0) {
            for rejected in [thesis, exact] {
                let Err(Rejection::Blocked { task, interval_ns, shortfall_ns }) = rejected else {
                    panic!("{rejected:?}");
                };
                prop_assert_eq!((interval_ns, shortfall_ns), (interval, left.unsigned_abs()));
                prop_assert!(tasks[task].1 > interval_ns);
            }
            return Ok(());
        }
        let (thesis, exact) = (thesis.unwrap(), exact.unwrap());
        prop_assert!(thesis.is_exact && exact.is_exact);
        prop_assert_eq!(thesis.in_order.slack_ns, in_order.unsigned_abs());
        for slack in [thesis, exact] {
            let found = slack.out_of_order.map(|out| (out.slack_ns as i64, out.interval_ns));
            // Tasks whose periods differ by 1 have no interval between them.
            prop_assert_eq!(found, out_of_order);
        }
        let all = hyper_period(&tasks).max(longest);
        let (over_all, _) = defined(&tasks, all.min(MOST_LOOKED_AT));
        let least = out_of_order.map_or(over_all, |(left, _)| left.min(over_all)).unsigned_abs();
        if all <= MOST_LOOKED_AT {
            prop_assert_eq!(exact.slack_ns(), least);
        } else {
            prop_assert!(exact.slack_ns() <= least);
        }
        prop_assert!(exact.slack_ns() <= thesis.slack_ns());
        // Longer intervals than the longest period leave at least their idle share.
        if exact.slack_ns() < thesis.slack_ns() {
            prop_assert!(exact.in_order.interval_ns > longest);
            let idle = 1.0 - Utilisation::of(&set(&tasks)).share();
            prop_assert!(longest as f64 * idle < thesis.slack_ns() as f64 + 1e-9, "{:?}", tasks);
        }
    }

    /// Property 4: another task, or a larger cost, never leaves more.
    #[test]
    fn more_work_never_leaves_more(tasks in tasks(), which in any::<prop::sample::Index>(), more in 1..4_u64) {
        for mode in [Mode::Thesis, Mode::Exact] {
            let slack_of = |tasks: &[(u64, u64)]| match slack(&set(tasks), mode) {
                Ok(slack) => slack.map_or(i64::MAX, |slack| slack.slack_ns() as i64),
                Err(_) => -1,
            };
            let all = slack_of(&tasks);
            let without: Vec<(u64, u64)> = tasks[1..].to_vec();
            // A task with the longest period of all makes the thesis look further, and one with the shortest, nearer.
            prop_assert!(slack_of(&without) >= all, "{:?} {:?}", mode, tasks);
            let mut larger = tasks.clone();
            which.get_mut(&mut larger).0 += more;
            prop_assert!(slack_of(&larger) <= all);
        }
    }
}

/// Requests served in deadline order, one after the other, unit by unit; the least time from completion to deadline.
fn least_slack(tasks: &[(u64, u64)], releases: &[Vec<u64>]) -> i64 {
    let mut waiting: Vec<(u64, usize)> = Vec::new();
    let mut next = vec![0; tasks.len()];
    let (mut now, mut least) = (0, i64::MAX);
    loop {
        for (task, releases) in releases.iter().enumerate() {
            while releases.get(next[task]).is_some_and(|release| *release <= now) {
                waiting.push((releases[next[task]] + tasks[task].1, task));
                next[task] += 1;
            }
        }
        let Some(first) = waiting.iter().min().copied() else {
            let later = releases.iter().zip(&next).filter_map(|(releases, next)| releases.get(*next)).min();
            match later {
                Some(later) => now = *later,
                None => return least,
            }
            continue;
        };
        waiting.retain(|other| *other != first);
        now += tasks[first.1].0;
        least = least.min(first.0 as i64 - now as i64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Property 3: with arbitrary arrivals within the contract, each request completes ΔL before its deadline.
    #[test]
    fn requests_are_done_so_long_before_their_deadlines(
        tasks in tasks(),
        gaps in prop::collection::vec(prop::collection::vec(prop_oneof![4 => Just(0_u64), 1 => 0..30_u64], 40), 5),
        first in prop::collection::vec(prop_oneof![Just(0_u64), Just(1), 0..24_u64], 5),
    ) {
        let Ok(slack) = found(&tasks, Mode::Exact) else { return Ok(()) };
        let release = |index: usize, gaps: &Vec<u64>| -> Vec<u64> {
            let period = tasks[index].1;
            gaps.iter().scan(first[index], |at, gap| {
                let release = *at;
                *at += period + gap;
                Some(release)
            }).collect()
        };
        let releases: Vec<Vec<u64>> = gaps[..tasks.len()].iter().enumerate().map(|(i, gaps)| release(i, gaps)).collect();
        prop_assert!(least_slack(&tasks, &releases) >= slack.slack_ns() as i64);
    }

    /// Adding and removing tasks one by one yields the same set.
    #[test]
    fn a_set_is_the_same_whichever_way_it_came_about(
        tasks in prop::collection::vec((1..6_u64, 4..40_u64), 1..20),
        gone in prop::collection::vec(any::<bool>(), 20),
    ) {
        let mut kept = TaskSet::new(Mode::Exact);
        let mut admitted = Vec::new();
        for ((cost, period), goes) in tasks.iter().zip(gone) {
            if let Ok(id) = kept.admit(Task::new(*cost, *period).unwrap()) {
                if goes {
                    prop_assert!(kept.remove(id));
                } else {
                    admitted.push((*cost, *period));
                }
            }
        }
        prop_assert_eq!(kept.tasks().len(), admitted.len());
        prop_assert_eq!(Ok(kept.slack()), slack(&set(&admitted), Mode::Exact));
    }
}

/// A thousand streams of different periods, and one more.
#[test]
fn one_more_of_a_thousand_takes_no_time() {
    let mut tasks = TaskSet::new(Mode::Exact);
    for number in 0..1000_u64 {
        let period_ns = 1_000_000_000 + number * 9_000_017;
        tasks.admit(Task::new(period_ns / 1100, period_ns).unwrap()).unwrap();
    }
    let begun = std::time::Instant::now();
    let id = tasks.admit(Task::new(5_000_000, 3_333_333_333).unwrap()).unwrap();
    let took = begun.elapsed();
    println!("one more of a thousand: {took:?}, slack {:?}", tasks.slack().map(Slack::slack_ns));
    // The bound is for machines that do other things as well; `make bench-schedulers` measures it.
    assert!(took.as_millis() < 20, "{took:?}");
    assert!(tasks.remove(id));
}
