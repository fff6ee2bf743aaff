//! Deadlines on random sets of contracts, with as much best effort as fits.

use weir_scheduler::guarantee::{Mode, Task, slack};
use weir_scheduler::{Class, Request};

use crate::harness::{Numbers, best_effort, misses, policy, read, run, stream};

const SETS: usize = 2000;

/// How requests of streams come.
#[derive(Debug, Clone, Copy)]
enum Releases {
    AllAtOnce,
    Phased,
    Sporadic,
    /// Often faster than the contract's cost.
    Violating,
}

/// Up to five contracts that are admitted, with their ΔL; many use most of the device.
fn contracts(numbers: &mut Numbers) -> (Vec<(u64, u64)>, u64) {
    loop {
        let count = 1 + numbers.up_to(4);
        let contract = |numbers: &mut Numbers| {
            let period = 5 + numbers.up_to(45);
            (1 + numbers.up_to(period / (count + 1)), period)
        };
        let tasks: Vec<(u64, u64)> = (0..count).map(|_| contract(numbers)).collect();
        let set: Vec<Task> = tasks.iter().map(|(cost, period)| Task::new(*cost, *period).unwrap()).collect();
        if let Ok(Some(slack)) = slack(&set, Mode::Exact) {
            return (tasks, slack.slack_ns());
        }
    }
}

fn releases(tasks: &[(u64, u64)], how: Releases, numbers: &mut Numbers, end_ns: u64) -> Vec<Request> {
    let mut arrivals = Vec::new();
    for (class, (cost, period)) in (0..).zip(tasks) {
        let mut at_ns = if matches!(how, Releases::AllAtOnce) { 1 } else { numbers.up_to(*period) };
        while at_ns < end_ns {
            arrivals.push(read(at_ns, class, *cost));
            at_ns += match how {
                Releases::AllAtOnce | Releases::Phased => *period,
                Releases::Sporadic if numbers.chance(70) => *period,
                Releases::Sporadic => period + numbers.up_to(*period),
                Releases::Violating => numbers.up_to(period * 3 / 2),
            };
        }
    }
    arrivals
}

/// Permanent best-effort requests of length ΔL, or of any length up to ΔL.
fn load(class: u16, slack_ns: u64, greedy: bool, numbers: &mut Numbers, end_ns: u64) -> Vec<Request> {
    let mut arrivals = Vec::new();
    let mut all_ns = 0;
    while slack_ns > 0 && all_ns < end_ns {
        let size = if greedy { slack_ns } else { 1 + numbers.up_to(slack_ns - 1) };
        let at_ns = if greedy { 0 } else { numbers.up_to(end_ns) };
        arrivals.push(read(at_ns, class, size));
        all_ns += size;
    }
    arrivals
}

/// Sets in which something was late, and those in which something could have been.
fn late_sets(
    sets: usize,
    (name, settings): (&str, &[(&str, &str)]),
    how: Releases,
    (greedy, shorter): (bool, bool),
) -> (usize, usize) {
    let mut numbers = Numbers(1);
    let (mut late, mut all) = (0, 0);
    for _ in 0..sets {
        let (tasks, slack_ns) = contracts(&mut numbers);
        let end_ns = 400;
        let mut classes: Vec<Class> = tasks.iter().copied().map(stream).collect();
        let background = classes.len() as u16;
        classes.push(best_effort(None));
        let mut arrivals = load(background, slack_ns, greedy, &mut numbers, end_ns);
        arrivals.extend(releases(&tasks, how, &mut numbers, end_ns));
        let mut policy = policy(name, &classes, settings);
        let took = |request: &Request| match u64::from(request.size_bytes) {
            most if shorter => 1 + numbers.up_to(most - 1),
            most => most,
        };
        let (served, waiting) = run(&mut *policy, &arrivals, took);
        // All of these fit within ΔL.
        assert_eq!(
            (served.len(), waiting),
            (arrivals.len(), 0),
            "{tasks:?} {slack_ns} {settings:?} {how:?} {greedy} {shorter}"
        );
        all += usize::from(slack_ns > 0);
        late += usize::from(misses(&classes, &served) > 0);
    }
    (late, all)
}

const ALL: [Releases; 4] = [Releases::AllAtOnce, Releases::Phased, Releases::Sporadic, Releases::Violating];

/// Property 1: nothing that an admitted contract promises is ever late.
#[test]
fn delta_l_is_never_late() {
    for how in ALL {
        for shape in [(true, false), (false, false), (false, true)] {
            let (late, _) = late_sets(SETS, ("deltal", &[]), how, shape);
            assert_eq!(late, 0, "{how:?} {shape:?}");
            for settings in [&[("early", "spend")][..], &[("debit", "actual"), ("order", "sync-scan")]] {
                let (late, _) = late_sets(SETS / 10, ("deltal", settings), how, shape);
                assert_eq!(late, 0, "{how:?} {shape:?} {settings:?}");
            }
        }
    }
}

/// Requests shorter than their contracts leave time for best effort before them, and nothing is late because of it.
#[test]
fn what_contracts_do_not_need_can_be_filled() {
    let mut numbers = Numbers(3);
    let mut gained_ns = 0;
    for set in 0..SETS {
        let (tasks, slack_ns) = contracts(&mut numbers);
        let mut classes: Vec<Class> = tasks.iter().copied().map(stream).collect();
        let background = classes.len() as u16;
        classes.push(best_effort(None));
        let mut arrivals = load(background, slack_ns.min(3), set % 2 == 0, &mut numbers, 400);
        arrivals.extend(releases(&tasks, ALL[set % 4], &mut numbers, 400));
        for request in arrivals.iter_mut().filter(|request| request.class != background) {
            request.size_bytes = 1 + numbers.up_to(u64::from(request.size_bytes) - 1) as u32;
        }
        let mut waited_ns = [0; 2];
        for (settings, waited_ns) in [("spare", "leave"), ("spare", "fill")].into_iter().zip(&mut waited_ns) {
            let mut policy = policy("deltal", &classes, &[settings]);
            let (served, waiting) = run(&mut *policy, &arrivals, |request| u64::from(request.size_bytes));
            assert_eq!((served.len(), waiting), (arrivals.len(), 0), "{tasks:?} {settings:?}");
            assert_eq!(misses(&classes, &served), 0, "{tasks:?} {slack_ns} {settings:?}");
            let extra = served.iter().filter(|served| served.request.class == background);
            *waited_ns = extra.map(|served| served.begun_ns - served.request.arrived_ns).sum::<u64>() as i64;
        }
        gained_ns += waited_ns[0] - waited_ns[1];
    }
    println!("best effort began {gained_ns} ns sooner in all");
    assert!(gained_ns > 0);
}

/// The same with the thesis's accounting, and with latest start times.
#[test]
fn others_are_late() {
    for (name, settings, least_percent) in [("deltal", &[("accounting", "free")][..], 40), ("lst", &[], 10)] {
        let (late, all) = late_sets(SETS, (name, settings), Releases::Sporadic, (true, false));
        println!("{name} {settings:?}: {late} of {all} sets are late");
        assert!(late * 100 > all * least_percent, "{name} {settings:?}: {late} of {all}");
    }
}

/// Servers beside streams: neither makes the other late.
#[test]
fn streams_beside_servers_are_never_late() {
    let mut numbers = Numbers(2);
    let mut served_by_servers = 0;
    for _ in 0..SETS {
        let (tasks, _) = contracts(&mut numbers);
        let servers = 1 + numbers.up_to(1) as usize;
        let first_server = tasks.len().saturating_sub(servers);
        let class = |(number, task): (usize, &(u64, u64))| {
            if number < first_server { stream(*task) } else { best_effort(Some(*task)) }
        };
        let mut classes: Vec<Class> = tasks.iter().enumerate().map(class).collect();
        classes.push(best_effort(None));
        let mut arrivals = releases(&tasks[..first_server], Releases::Sporadic, &mut numbers, 600);
        for (number, (cost, _)) in tasks.iter().enumerate().skip(first_server) {
            for _ in 0..numbers.up_to(60) {
                // Also longer ones than the server has in a period.
                let (at_ns, size) = (numbers.up_to(600), 1 + numbers.up_to(*cost));
                arrivals.push(read(at_ns, number as u16, size));
            }
        }
        for _ in 0..40 {
            arrivals.push(read(numbers.up_to(600), tasks.len() as u16, 1 + numbers.up_to(10)));
        }
        let mut policy = policy("deltal", &classes, &[]);
        let (served, _) = run(&mut *policy, &arrivals, |request| u64::from(request.size_bytes));
        assert_eq!(misses(&classes, &served), 0, "{tasks:?}, servers from {first_server} on");
        let of_server = |class: usize| (first_server..tasks.len()).contains(&class);
        served_by_servers +=
            served.iter().filter(|served| of_server(usize::from(served.request.class))).count();
    }
    assert!(served_by_servers > SETS);
}
