//! Schedulers against theory: exact identities and optima on each sample path, and means with a stated interval.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use weir_scheduler::guarantee::{Mode, Task, slack};
use weir_scheduler::{
    Class, Decision, LinearModel, Op, POLICIES, Policy, Request, Settings, TrafficKind, build,
};

const MS: f64 = 1e6;
/// Schedulers that can hold requests back from an idle device.
const HOLD_BACK: [&str; 4] = ["linux-kyber", "linux-bfq", "wr-round", "hds"];

fn classes() -> Vec<Class> {
    [("a", TrafficKind::RealTime), ("b", TrafficKind::Interactive), ("c", TrafficKind::BestEffort)]
        .map(|(name, kind)| Class { name: name.to_owned(), kind, weight: 1.0, contract: None })
        .to_vec()
}

fn policy(name: &str, settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    build(name, &classes(), &Settings(settings)).unwrap()
}

/// A request and its service time, whatever the scheduler believes.
#[derive(Debug, Clone, Copy)]
struct Job {
    request: Request,
    service_ns: u64,
}

fn job(tag: u64, class: u16, arrived_ns: u64, service_ns: u64, deadline_ns: Option<u64>) -> Job {
    let offset_bytes = tag * 7919 % 1000 * 1_000_000;
    let (op, size_bytes) = (Op::Read, 4096);
    Job {
        request: Request { tag, class, stream: 0, op, offset_bytes, size_bytes, arrived_ns, deadline_ns },
        service_ns,
    }
}

/// Start and end of the service of a job, by its tag.
type Served = Vec<(u64, u64)>;

/// Serves jobs, which are in order of arrival with tags from 0 on, one at a time. Returns their times, and the integral over
/// time of the number of requests that wait by the scheduler's own account or are in service.
fn serve(policy: &mut dyn Policy, jobs: &[Job]) -> (Served, u128) {
    let mut device = LinearModel {
        capacity_bytes: 1_000_000_000,
        cylinder_bytes: 1_000_000,
        seek_ns: 1_000_000,
        seek_ns_per_cylinder: 10_000,
        revolution_ns: 10_000_000,
        transfer_ns_per_byte: 200,
        head_bytes: 0,
    };
    let mut times = vec![(0, 0); jobs.len()];
    let (mut next, mut now_ns, mut present_ns) = (0, 0, 0u128);
    let mut in_service: Option<(Request, u64, u64)> = None;
    loop {
        while let Some(job) = jobs.get(next).filter(|job| job.request.arrived_ns <= now_ns) {
            policy.arrive(now_ns, job.request, &device);
            next += 1;
        }
        let mut ask_at_ns = u64::MAX;
        if in_service.is_none() {
            match policy.next(now_ns, &device) {
                Decision::Serve(request) => {
                    let done_ns = now_ns + jobs[request.tag as usize].service_ns;
                    device.serve(&request);
                    in_service = Some((request, now_ns, done_ns));
                }
                Decision::WaitUntil(until_ns) => ask_at_ns = until_ns,
                Decision::Idle => assert_eq!(policy.waiting(), 0),
            }
        }
        let present = policy.waiting() + usize::from(in_service.is_some());
        let done_ns = in_service.map_or(u64::MAX, |(.., done_ns)| done_ns);
        let arrival_ns = jobs.get(next).map_or(u64::MAX, |job| job.request.arrived_ns);
        let then_ns = done_ns.min(arrival_ns).min(ask_at_ns);
        if then_ns == u64::MAX {
            return (times, present_ns);
        }
        present_ns += present as u128 * u128::from(then_ns - now_ns);
        now_ns = then_ns;
        if let Some((request, begun_ns, done_ns)) = in_service.take_if(|(.., done_ns)| *done_ns <= now_ns) {
            policy.complete(now_ns, &request, begun_ns);
            times[request.tag as usize] = (begun_ns, done_ns);
        }
    }
}

/// Arrivals of three classes in bursts, some with deadlines, with service times of their own.
fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let drawn = (
        prop_oneof![2 => Just(0u64), 3 => 0..30_000_000u64, 1 => 0..300_000_000u64],
        0u16..3,
        1..40_000_000u64,
        prop::option::of(0..200_000_000u64),
    );
    prop::collection::vec(drawn, 1..60).prop_map(|drawn| {
        let mut now_ns = 0;
        let of = |(tag, (gap_ns, class, service_ns, due_ns)): (u64, (u64, u16, u64, Option<u64>))| {
            now_ns += gap_ns;
            job(tag, class, now_ns, service_ns, due_ns.map(|due_ns| now_ns + due_ns))
        };
        (0..).zip(drawn).map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Little 1961, L T = Σ W over a sample path that ends empty: exact for every scheduler, whether it conserves work or
    /// not, by its own count of waiting requests.
    #[test]
    fn littles_law_holds_for_every_scheduler(jobs in jobs()) {
        for entry in POLICIES {
            let (times, present_ns) = serve(&mut *policy(entry.name, &[]), &jobs);
            let response = |(job, (_, done_ns)): (&Job, &(u64, u64))| u128::from(done_ns - job.request.arrived_ns);
            let responses_ns: u128 = jobs.iter().zip(&times).map(response).sum();
            prop_assert_eq!(present_ns, responses_ns, "{}", entry.name);
        }
    }

    /// Kleinrock's conservation law (1965) on a sample path: the unfinished work is the same at all times under every
    /// work-conserving order, and so is Σ S W, exactly.
    #[test]
    fn service_times_times_waits_are_conserved(jobs in jobs()) {
        let weighted = |name: &str| -> u128 {
            let (times, _) = serve(&mut *policy(name, &[]), &jobs);
            let of = |(job, (begun_ns, done_ns)): (&Job, &(u64, u64))| {
                assert_eq!(done_ns - begun_ns, job.service_ns);
                u128::from(job.service_ns) * u128::from(begun_ns - job.request.arrived_ns)
            };
            jobs.iter().zip(&times).map(of).sum()
        };
        let first_come = weighted("fcfs");
        for entry in POLICIES.iter().filter(|entry| !HOLD_BACK.contains(&entry.name)) {
            prop_assert_eq!(weighted(entry.name), first_come, "{}", entry.name);
        }
    }
}

/// Calls `visit` with each order of the numbers below `count`.
fn orders(count: usize, order: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    if order.len() == count {
        visit(order);
    }
    for number in 0..count {
        if !order.contains(&number) {
            order.push(number);
            orders(count, order, visit);
            order.pop();
        }
    }
}

fn latest_ns(jobs: &[Job], times: &Served) -> i64 {
    let late = |(job, (_, done_ns)): (&Job, &(u64, u64))| *done_ns as i64 - job.request.due_ns() as i64;
    jobs.iter().zip(times).map(late).max().unwrap()
}

/// The least maximum lateness of any order, with idle times before releases.
fn least_latest_ns(jobs: &[Job]) -> i64 {
    let mut least = i64::MAX;
    orders(jobs.len(), &mut Vec::new(), &mut |order| {
        let mut now_ns = 0;
        let late = order.iter().map(|&place| {
            now_ns = jobs[place].request.arrived_ns.max(now_ns) + jobs[place].service_ns;
            now_ns as i64 - jobs[place].request.due_ns() as i64
        });
        least = least.min(late.max().unwrap());
    });
    least
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Equal lengths, releases at multiples of the length: EDF meets all deadlines if any order does, and its maximum
    /// lateness is the least of all orders.
    #[test]
    fn edf_is_optimal_for_equal_lengths(drawn in prop::collection::vec((0..6u64, 1..9u64), 1..7)) {
        let mut drawn = drawn;
        drawn.sort_unstable();
        let jobs: Vec<Job> = (0..)
            .zip(drawn)
            .map(|(tag, (release, due))| job(tag, 0, release * 10, 10, Some((release + due) * 10)))
            .collect();
        for name in ["edf", "scan-edf"] {
            let (times, _) = serve(&mut *policy(name, &[]), &jobs);
            prop_assert_eq!(latest_ns(&jobs, &times), least_latest_ns(&jobs), "{}", name);
        }
    }

    /// Jackson 1955: any lengths, all released at once.
    #[test]
    fn edf_is_optimal_for_jobs_released_at_once(drawn in prop::collection::vec((1..20u64, 1..80u64), 1..7)) {
        let jobs: Vec<Job> =
            (0..).zip(drawn).map(|(tag, (length, due))| job(tag, 0, 0, length, Some(due))).collect();
        for name in ["edf", "scan-edf"] {
            let (times, _) = serve(&mut *policy(name, &[]), &jobs);
            prop_assert_eq!(latest_ns(&jobs, &times), least_latest_ns(&jobs), "{}", name);
        }
    }
}

/// The limit of the theorem: with a release between multiples of the length, an order that idles first is in time. No
/// work-conserving scheduler is.
#[test]
fn edf_is_not_optimal_where_idling_helps() {
    let jobs = [job(0, 0, 0, 2, Some(10)), job(1, 0, 1, 2, Some(3))];
    let (times, _) = serve(&mut *policy("edf", &[]), &jobs);
    assert_eq!((latest_ns(&jobs, &times), least_latest_ns(&jobs)), (1, 0));
}

/// Numbers that look random and are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// From 0 to below 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

/// Poisson arrivals of a class: rate per ms, and service times with their first two moments in ms.
struct Stream {
    per_ms: f64,
    draw_ms: fn(&mut Numbers) -> f64,
    mean_ms: f64,
    second_ms2: f64,
}

const CONSTANT: Stream = Stream { per_ms: 0.06, draw_ms: |_| 4.0, mean_ms: 4.0, second_ms2: 16.0 };
/// 5 ms, and 25 ms once in five.
const TWO_POINT: Stream = Stream {
    per_ms: 0.02,
    draw_ms: |numbers| if numbers.uniform() < 0.2 { 25.0 } else { 5.0 },
    mean_ms: 9.0,
    second_ms2: 145.0,
};
const EXPONENTIAL: Stream =
    Stream { per_ms: 0.025, draw_ms: |numbers| numbers.exponential(12.0), mean_ms: 12.0, second_ms2: 288.0 };

/// `count` arrivals of the streams together, each stream a class; deadlines `due_ns` after the arrival, by class.
fn poisson(seed: u64, streams: &[Stream], count: u64, due_ns: u64) -> Vec<Job> {
    let mut numbers = Numbers(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let total: f64 = streams.iter().map(|stream| stream.per_ms).sum();
    let mut now_ms = 0.0;
    let of = |tag| {
        now_ms += numbers.exponential(1.0 / total);
        let mut which = numbers.uniform() * total;
        let mut class = 0;
        while class + 1 < streams.len() && which >= streams[class].per_ms {
            which -= streams[class].per_ms;
            class += 1;
        }
        let arrived_ns = (now_ms * MS) as u64;
        let service_ns = ((streams[class].draw_ms)(&mut numbers) * MS).round() as u64;
        job(tag, class as u16, arrived_ns, service_ns, Some(arrived_ns + class as u64 * due_ns))
    };
    (0..count).map(of).collect()
}

/// The mean over 20 seeds and half of its 99.9 % interval by Student's t with 19 degrees of freedom.
fn interval(value: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (0..20).map(value).collect();
    let mean = values.iter().sum::<f64>() / 20.0;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 19.0;
    (mean, 3.883 * (variance / 20.0).sqrt())
}

/// Mean wait in ms of a class's requests after the first tenth.
fn mean_wait_ms(jobs: &[Job], times: &Served, class: u16) -> f64 {
    let waits = jobs.iter().zip(times).skip(jobs.len() / 10).filter(|(job, _)| job.request.class == class);
    let (sum, count) = waits.fold((0.0, 0.0), |(sum, count), (job, (begun_ns, _))| {
        (sum + (begun_ns - job.request.arrived_ns) as f64, count + 1.0)
    });
    sum / count / MS
}

fn agrees(what: &str, theory: f64, most_half: f64, value: impl Fn(u64) -> f64) {
    let (mean, half) = interval(value);
    println!("{what}: {mean:.3} +- {half:.3}, theory {theory:.3}");
    assert!(
        (mean - theory).abs() < half && half < most_half * theory,
        "{what}: {mean} +- {half}, theory {theory}"
    );
}

/// Pollaczek and Khinchine: W = λ E[S²] / (2 (1 - ρ)); and ρ = λ E[S].
#[test]
fn first_come_first_served_agrees_with_pollaczek_and_khinchine() {
    // M/D/1 with ρ = 0.72, M/G/1 with 0.72 and 0.9.
    let streams = [
        Stream { per_ms: 0.18, ..CONSTANT },
        Stream { per_ms: 0.08, ..TWO_POINT },
        Stream { per_ms: 0.06, ..EXPONENTIAL },
    ];
    for (name, stream) in ["M/D/1", "M/G/1, two points", "M/M/1"].into_iter().zip(streams) {
        let load = stream.per_ms * stream.mean_ms;
        let wait_ms = stream.per_ms * stream.second_ms2 / (2.0 * (1.0 - load));
        let of = [stream];
        let run = |seed| {
            let jobs = poisson(seed, &of, 60_000, 0);
            let times = serve(&mut *policy("fcfs", &[]), &jobs).0;
            (jobs, times)
        };
        agrees(&format!("{name} wait in ms"), wait_ms, 0.05, |seed| {
            let (jobs, times) = run(seed);
            mean_wait_ms(&jobs, &times, 0)
        });
        agrees(&format!("{name} utilisation"), load, 0.01, |seed| {
            let (jobs, times) = run(seed);
            let busy_ns: u64 = jobs.iter().map(|job| job.service_ns).sum();
            busy_ns as f64 / times.iter().map(|(_, done_ns)| *done_ns).max().unwrap() as f64
        });
    }
}

/// Cobham 1954, non-preemptive priorities: W_k = W_0 / ((1 - σ_{k-1}) (1 - σ_k)), with W_0 = Σ λ E[S²] / 2 and σ_k = Σ_{i <= k} ρ_i.
#[test]
fn priorities_agree_with_cobham() {
    let streams = [CONSTANT, TWO_POINT, EXPONENTIAL];
    let first_ms = streams.iter().map(|stream| stream.per_ms * stream.second_ms2 / 2.0).sum::<f64>();
    // Priorities of classes, and deadlines so far apart that they are priorities.
    let priorities = [("realtime", "a"), ("idle", "c"), ("prio_aging_expire", "1e9")];
    for (name, settings) in [("linux-mq-deadline", priorities.as_slice()), ("edf", &[])] {
        let mut above = 0.0;
        for (class, stream) in (0u16..).zip(&streams) {
            let with = above + stream.per_ms * stream.mean_ms;
            let wait_ms = first_ms / ((1.0 - above) * (1.0 - with));
            above = with;
            agrees(&format!("{name}, class {class}: wait in ms"), wait_ms, 0.05, |seed| {
                let jobs = poisson(seed, &streams, 60_000, 1 << 60);
                let times = serve(&mut *policy(name, settings), &jobs).0;
                mean_wait_ms(&jobs, &times, class)
            });
        }
    }
}

/// A device and its tasks of (cost, period), at a whole unit of time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    /// By task: time until its next release may come.
    wait: Vec<u64>,
    /// By task: time until the deadline of its pending request.
    due: Vec<Option<u64>>,
    /// The task in service, and the rest of its service.
    serving: Option<(usize, u64)>,
}

/// The least time from a completion to its deadline under non-preemptive EDF, over every arrival pattern within the contracts
/// at whole units of time, for ever: by a search of all moments that can be reached.
fn least_slack_of_all(tasks: &[(u64, u64)]) -> i64 {
    let count = tasks.len();
    let mut least = i64::MAX;
    let idle = Moment { wait: vec![0; count], due: vec![None; count], serving: None };
    let mut seen = BTreeSet::from([idle.clone()]);
    let mut open = VecDeque::from([idle]);
    while let Some(moment) = open.pop_front() {
        for released in 0..1u32 << count {
            let is_released = |task: usize| released >> task & 1 == 1;
            if (0..count).any(|task| is_released(task) && moment.wait[task] > 0) {
                continue;
            }
            let mut next = moment.clone();
            for task in (0..count).filter(|&task| is_released(task)) {
                assert_eq!(next.due[task], None, "admitted, and a request is not done by its deadline");
                (next.wait[task], next.due[task]) = (tasks[task].1, Some(tasks[task].1));
            }
            if next.serving.is_none() {
                let first =
                    (0..count).filter(|&task| next.due[task].is_some()).min_by_key(|&task| next.due[task]);
                next.serving = first.map(|task| (task, tasks[task].0));
            }
            for wait in &mut next.wait {
                *wait = wait.saturating_sub(1);
            }
            let mut done = None;
            if let Some((task, left)) = &mut next.serving {
                *left -= 1;
                done = (*left == 0).then_some(*task);
            }
            for (task, due) in next.due.iter_mut().enumerate() {
                if let Some(rest) = due {
                    assert!(*rest > 0, "admitted, and a deadline is missed");
                    *rest -= 1;
                    if done == Some(task) {
                        least = least.min(*rest as i64);
                        *due = None;
                    }
                }
            }
            if done.is_some() {
                next.serving = None;
            }
            if seen.insert(next.clone()) {
                open.push_back(next);
            }
        }
    }
    least
}

/// Bosch 1999, section 6.2: ΔL is not only a bound but the least slack that some arrival pattern leaves. Every admitted set of
/// up to three tasks with periods of up to 6 units.
#[test]
fn slack_is_the_least_that_any_arrivals_leave() {
    let single: Vec<(u64, u64)> =
        (2..=6).flat_map(|period| (1..period).map(move |cost| (cost, period))).collect();
    let mut sets: Vec<Vec<(u64, u64)>> = single.iter().map(|task| vec![*task]).collect();
    for (place, one) in single.iter().enumerate() {
        for (between, two) in single.iter().enumerate().skip(place) {
            sets.push(vec![*one, *two]);
            sets.extend(single[between..].iter().map(|three| vec![*one, *two, *three]));
        }
    }
    let mut admitted = 0;
    for tasks in &sets {
        let set: Vec<Task> = tasks.iter().map(|(cost, period)| Task::new(*cost, *period).unwrap()).collect();
        let Ok(Some(slack)) = slack(&set, Mode::Exact) else { continue };
        admitted += 1;
        assert_eq!(slack.slack_ns() as i64, least_slack_of_all(tasks), "{tasks:?}");
    }
    println!("{admitted} of {} sets admitted", sets.len());
    assert!(admitted > 100);
}
