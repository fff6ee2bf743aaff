//! Task sets with known result and slack.

use super::*;

fn set(tasks: &[(u64, u64)]) -> Vec<Task> {
    tasks.iter().map(|(cost_ns, period_ns)| Task::new(*cost_ns, *period_ns).unwrap()).collect()
}

/// ΔLm, ΔLn and ΔL.
fn found(tasks: &[(u64, u64)], mode: Mode) -> (u64, Option<u64>, u64) {
    let slack = slack(&set(tasks), mode).unwrap().unwrap();
    assert!(slack.is_exact);
    (slack.in_order.slack_ns, slack.out_of_order.map(|out| out.slack_ns), slack.slack_ns())
}

#[test]
fn small_sets() {
    for mode in [Mode::Thesis, Mode::Exact] {
        assert_eq!(found(&[(20, 30), (10, 40)], mode), (10, Some(1), 1));
        assert_eq!(found(&[(10, 40), (20, 30)], mode), (10, Some(1), 1));
        assert_eq!(found(&[(10, 20), (11, 39)], mode).2, 0);
        assert_eq!(found(&[(5, 10)], mode), (5, None, 5));
        assert_eq!(found(&[(5, 10), (1, 10), (2, 10)], mode), (2, None, 2));
        assert_eq!(slack(&[], mode), Ok(None));
        let slack = slack(&set(&[(20, 30), (10, 40)]), mode).unwrap().unwrap();
        assert_eq!((slack.in_order.interval_ns, slack.out_of_order.unwrap().interval_ns), (30, 31));
    }
    assert_eq!(found(&[(10, 20), (11, 39)], Mode::Thesis), (10, Some(0), 0));
    // 40 is beyond the longest period: two requests of the first and one of the second leave 9.
    assert_eq!(found(&[(10, 20), (11, 39)], Mode::Exact), (9, Some(0), 0));
}

/// Table 6.2 of the thesis: USD admits it.
#[test]
fn what_usd_admits_is_rejected_with_task_interval_and_shortfall() {
    let table_6_2 = set(&[(42, 250), (69, 250), (122, 1000), (163, 2000)]);
    let utilisation = Utilisation::of(&table_6_2);
    assert!(utilisation.fits() && (utilisation.share() - 0.6475).abs() < 1e-12);
    for mode in [Mode::Thesis, Mode::Exact] {
        let rejection = slack(&table_6_2, mode).unwrap_err();
        assert_eq!(rejection, Rejection::Blocked { task: 3, interval_ns: 251, shortfall_ns: 23 });
    }
}

#[test]
fn more_than_the_whole_is_rejected() {
    match slack(&set(&[(7, 20), (7, 21), (8, 22)]), Mode::Thesis) {
        Err(Rejection::Overload { utilisation }) => assert!((utilisation.share() - 1.047).abs() < 5e-4),
        other => panic!("{other:?}"),
    }
}

/// Definition 1 stops too early for sets that use nearly all of the device, and for some that use half of it.
#[test]
fn longer_intervals_can_leave_less() {
    assert_eq!(found(&[(4, 8), (4, 9), (1, 18)], Mode::Thesis).2, 1);
    assert_eq!(found(&[(4, 8), (4, 9), (1, 18)], Mode::Exact).2, 0);
    assert_eq!(found(&[(3, 12), (4, 11), (3, 8)], Mode::Thesis).2, 2);
    assert_eq!(found(&[(3, 12), (4, 11), (3, 8)], Mode::Exact).2, 1);
    let mut half = vec![(10, 100)];
    half.extend([(1, 199); 91]);
    assert!((Utilisation::of(&set(&half)).share() - 0.557).abs() < 5e-4);
    assert_eq!(found(&half, Mode::Thesis).2, 90);
    // 200 - 2 * 10 - 91.
    assert_eq!(found(&half, Mode::Exact).2, 89);
}

/// All of the device is used: nothing is left at the end of the hyper-period.
#[test]
fn a_full_device_has_no_slack() {
    assert_eq!(found(&[(1, 2), (1, 3), (1, 6)], Mode::Exact).2, 0);
}

#[test]
fn what_cannot_be_looked_at_is_bounded_or_undecided() {
    let least_of = |tasks: &[(u64, u64)], most_points| {
        let mut sorted: Vec<(u64, u64, usize)> =
            tasks.iter().enumerate().map(|(index, (cost, period))| (*period, *cost, index)).collect();
        sorted.sort_unstable();
        let groups = groups(sorted.into_iter());
        least(&groups, Utilisation::of(&set(tasks)), Mode::Exact, most_points)
    };
    // Three intervals of the many up to 10,000,000 are enough here.
    let enough = least_of(&[(50, 100), (25, 10_000_000)], 3).unwrap().unwrap();
    assert!(enough.is_exact);
    assert_eq!((enough.slack_ns(), enough.out_of_order.unwrap().interval_ns), (26, 101));
    // The last of these makes others late within 102; the first interval does not reveal that.
    let nearly_full = [(80, 100), (20, 101), (4, 10_000_000)];
    assert_eq!(least_of(&nearly_full, 1), Err(Rejection::Undecided { points: 1 }));
    assert!(matches!(least_of(&nearly_full, MOST_POINTS), Err(Rejection::Blocked { task: 2, .. })));
    // Observed lateness is certain, however many intervals were not examined.
    assert!(matches!(least_of(&[(90, 100), (14, 150), (12, 10_000_000)], 1), Err(Rejection::Blocked { .. })));
    let bounded = least_of(&[(3, 12), (4, 11), (3, 8)], 4).unwrap().unwrap();
    assert_eq!((bounded.slack_ns(), bounded.is_exact), (0, false));
}

const WG: (u64, u64) = (256, 245);
const RO: (u64, u64) = (1024, 817);
const RO_LARGE: (u64, u64) = (2048, 817);
const CD: (u64, u64) = (256, 172);
const CD_LARGE: (u64, u64) = (512, 172);

/// A stream with blocks of so many KB at so many KB/s over `disks` disks, each served in `cost_ms`.
fn stream(cost_ms: u64, (block_kb, kb_per_s): (u64, u64), disks: u64) -> Task {
    let period_ns = (disks * block_kb * 1_000_000_000 + kb_per_s / 2) / kb_per_s;
    Task::new(cost_ms * 1_000_000, period_ns).unwrap()
}

/// The task set of section 6.5 on a disk of three: pairs of video and audio, Wallace and Gromit alternate, Wallace first.
fn rotation(pairs: usize, large_ms: u64, small_ms: u64) -> Vec<Task> {
    let pair = |pair: usize| match pair % 2 {
        0 => [stream(small_ms, WG, 3), stream(small_ms, CD, 3)],
        _ => [stream(large_ms, RO, 3), stream(small_ms, CD, 3)],
    };
    (0..pairs).flat_map(pair).collect()
}

fn ms(ns: u64) -> u64 {
    (ns + 500_000) / 1_000_000
}

fn slack_ms(tasks: &[Task], mode: Mode) -> u64 {
    ms(slack(tasks, mode).unwrap().unwrap().slack_ns())
}

#[test]
fn periods_of_rotating_layouts() {
    let us = |task: Task| (task.period_ns() + 5000) / 10_000;
    assert_eq!(us(stream(1, WG, 3)), 313_469);
    assert_eq!(us(stream(1, RO, 3)), 376_010);
    assert_eq!(us(stream(1, CD, 3)), 446_512);
}

/// Figure 6.4, rotation, with the service times of Table 6.4 for zone 0 and with those that give the 925 ms of the text.
#[test]
fn slack_of_the_thesis_by_pairs() {
    let table = [
        (1, 3025, 3027),
        (2, 2946, 2948),
        (8, 2781, 2786),
        (12, 2571, 2584),
        (14, 2372, 2397),
        (16, 2073, 2105),
        (20, 1475, 1515),
        (22, 1176, 1220),
        (24, 877, 925),
        (25, 767, 817),
    ];
    for (pairs, table_6_4_ms, text_ms) in table {
        assert_eq!(slack_ms(&rotation(pairs, 134, 55), Mode::Thesis), table_6_4_ms, "{pairs} pairs");
        assert_eq!(slack_ms(&rotation(pairs, 133, 54), Mode::Thesis), text_ms, "{pairs} pairs");
        assert_eq!(slack_ms(&rotation(pairs, 133, 54), Mode::Exact), text_ms, "{pairs} pairs");
    }
    let regime = |pairs| {
        let slack = slack(&rotation(pairs, 134, 55), Mode::Thesis).unwrap().unwrap();
        match slack.out_of_order {
            Some(out) if out.slack_ns < slack.in_order.slack_ns => ("n", ms(out.interval_ns)),
            _ => ("m", ms(slack.in_order.interval_ns)),
        }
    };
    assert_eq!((regime(1), regime(12), regime(16)), (("n", 3135), ("n", 3760), ("m", 4465)));
    // The end of the curve: 18 MB/s.
    assert!(matches!(slack(&rotation(26, 134, 55), Mode::Thesis), Err(Rejection::Overload { .. })));
    assert_eq!(slack_ms(&rotation(26, 133, 54), Mode::Thesis), 630);
    let exact = slack(&rotation(26, 133, 54), Mode::Exact).unwrap().unwrap();
    assert_eq!((ms(exact.slack_ns()), (ms(exact.in_order.interval_ns) + 50) / 100), (253, 226));
}

/// Section 6.5.4: 24 pairs and a periodic server for best-effort requests.
#[test]
fn slack_with_a_best_effort_server() {
    let with = |cost_ms: u64, period_ms: u64| {
        let mut tasks = rotation(24, 133, 54);
        tasks.push(Task::new(cost_ms * 1_000_000, period_ms * 1_000_000).unwrap());
        tasks
    };
    let share = |tasks: &[Task]| (Utilisation::of(tasks).share() * 1000.0).round() / 1000.0;
    assert_eq!((slack_ms(&with(100, 3000), Mode::Thesis), share(&with(100, 3000))), (825, 0.955));
    assert_eq!((slack_ms(&with(200, 3000), Mode::Thesis), share(&with(200, 3000))), (725, 0.988));
    assert_eq!(share(&with(100, 1000)), 1.021);
    assert!(matches!(slack(&with(100, 1000), Mode::Thesis), Err(Rejection::Overload { .. })));
}

/// Figure 6.4, each movie on one disk.
#[test]
fn slack_of_memory_optimised_layouts() {
    let disk = |pairs: usize, pair: [Task; 2]| pair.repeat(pairs);
    let all = |pair: [Task; 2], pairs: std::ops::RangeInclusive<usize>| -> Vec<u64> {
        pairs.map(|pairs| slack_ms(&disk(pairs, pair), Mode::Thesis)).collect()
    };
    let ro = [stream(134, RO, 1), stream(55, CD, 1)];
    assert_eq!(all(ro, 1..=6), [1064, 930, 796, 662, 528, 354]);
    assert!(slack(&disk(7, ro), Mode::Thesis).is_err());
    let wg = [stream(55, WG, 1), stream(55, CD, 1)];
    assert_eq!(all(wg, 1..=11), [935, 880, 825, 770, 715, 660, 605, 550, 495, 388, 278]);
    assert_eq!(slack_ms(&disk(11, wg), Mode::Exact), 110);
    assert!(slack(&disk(12, wg), Mode::Thesis).is_err());
    let ro_large = [stream(240, RO_LARGE, 1), stream(81, CD_LARGE, 1)];
    assert_eq!(all(ro_large, 1..=8), [2186, 1946, 1706, 1466, 1226, 986, 730, 409]);
    let wg_large = [stream(55, WG, 1), stream(81, CD_LARGE, 1)];
    let slacks = all(wg_large, 1..=12);
    assert_eq!((slacks[0], slacks[11]), (909, 304));
    assert!(slack(&disk(13, wg_large), Mode::Thesis).is_err());
}

/// With the service times of the slowest zone the random layout ends earlier.
#[test]
fn slack_of_the_random_layout() {
    assert_eq!(slack_ms(&rotation(18, 204, 69), Mode::Thesis), 766);
    assert!(matches!(slack(&rotation(19, 204, 69), Mode::Thesis), Err(Rejection::Overload { .. })));
}
