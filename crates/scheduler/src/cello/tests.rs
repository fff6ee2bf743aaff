//! Tests of Cello's guarantees.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::model::{LinearModel, ServiceModel};
use crate::policy::{Decision, Policy};
use crate::registry::build;
use crate::request::{Class, ClassId, Op, Request, TrafficKind};
use crate::settings::Settings;

const MS: u64 = 1_000_000;

/// A device of 1,000 cylinders of 1 MB, with seeks of 1 to 11 ms.
fn disk() -> LinearModel {
    LinearModel {
        capacity_bytes: 1_000_000_000,
        cylinder_bytes: 1_000_000,
        seek_ns: MS,
        seek_ns_per_cylinder: 10_000,
        revolution_ns: 10 * MS,
        transfer_ns_per_byte: 200,
        head_bytes: 0,
    }
}

/// The same without seeks: a request takes the same time wherever it is, and estimates hold exactly.
fn even_disk() -> LinearModel {
    LinearModel { seek_ns: 0, seek_ns_per_cylinder: 0, ..disk() }
}

fn request(tag: u64, class: ClassId, megabyte: u64, size_bytes: u32, due_ns: Option<u64>) -> Request {
    Request {
        tag,
        class,
        stream: 0,
        op: Op::Read,
        offset_bytes: megabyte * 1_000_000,
        size_bytes,
        arrived_ns: 0,
        deadline_ns: due_ns,
    }
}

/// Defaults: intervals of a second, exact estimates.
fn cello(classes: &[(TrafficKind, f64)], settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let class = |&(kind, weight): &(TrafficKind, f64)| Class {
        name: format!("{kind:?}"),
        kind,
        weight,
        contract: None,
    };
    let classes: Vec<Class> = classes.iter().map(class).collect();
    let mut pairs: BTreeMap<String, String> = [("period_ms", "1000"), ("estimate", "expected")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    pairs.extend(settings.iter().map(|(key, value)| (key.to_string(), value.to_string())));
    build("cello", &classes, &Settings(pairs)).unwrap()
}

/// A request that was served, from when until when.
#[derive(Debug, Clone, Copy)]
struct Served {
    request: Request,
    begun_ns: u64,
    done_ns: u64,
}

/// Serves requests, which arrive at their `arrived_ns` and are in this order, until a time or until none is left.
fn serve(
    policy: &mut dyn Policy,
    mut device: LinearModel,
    arrivals: &[Request],
    until_ns: u64,
) -> Vec<Served> {
    let mut arrivals = arrivals.iter().peekable();
    let mut served = Vec::new();
    let mut now_ns = 0;
    while now_ns < until_ns {
        while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
            policy.arrive(request.arrived_ns, *request, &device);
        }
        let waiting = policy.waiting();
        match policy.next(now_ns, &device) {
            Decision::Serve(request) => {
                assert_eq!(policy.waiting(), waiting - 1);
                let begun_ns = now_ns;
                now_ns += device.expected_ns(device.head_bytes(), &request);
                device.serve(&request);
                while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
                    policy.arrive(request.arrived_ns, *request, &device);
                }
                policy.complete(now_ns, &request, begun_ns);
                served.push(Served { request, begun_ns, done_ns: now_ns });
            }
            Decision::WaitUntil(_) => panic!("Cello holds nothing back"),
            Decision::Idle => {
                assert_eq!(waiting, 0, "work conserving");
                match arrivals.peek() {
                    Some(request) => now_ns = request.arrived_ns,
                    None => break,
                }
            }
        }
    }
    served
}

fn tags(served: &[Served]) -> Vec<u64> {
    served.iter().map(|served| served.request.tag).collect()
}

const BOTH: [(TrafficKind, f64); 2] = [(TrafficKind::Interactive, 1.0), (TrafficKind::RealTime, 1.0)];

#[test]
fn interactive_requests_use_the_slack_and_no_more() {
    // Each takes 5 ms and the transfer of 5 ms; the three real-time ones 30 ms, so there is a slack of 30 ms until 60 ms.
    let real_time = (0..3).map(|tag| request(tag, 1, tag, 25_000, Some(60 * MS)));
    let interactive = (10..15).map(|tag| request(tag, 0, tag, 25_000, None));
    let all: Vec<_> = real_time.chain(interactive).collect();
    let served = serve(&mut *cello(&BOTH, &[]), even_disk(), &all, u64::MAX);
    assert_eq!(tags(&served), [10, 11, 12, 0, 1, 2, 13, 14]);
    assert_eq!(served[5].done_ns, 60 * MS);
    // With whole revolutions the three take 45 ms, and 15 are enough for one only.
    let served = serve(&mut *cello(&BOTH, &[("estimate", "bound")]), even_disk(), &all, u64::MAX);
    assert_eq!(tags(&served)[..2], [10, 0]);
}

#[test]
fn slack_is_counted_from_when_a_device_with_a_queue_is_free() {
    let mut policy = cello(&BOTH, &[]);
    let device = even_disk();
    let all = (0..3).map(|tag| request(tag, 1, tag, 25_000, Some(60 * MS)));
    for request in all.chain((10..15).map(|tag| request(tag, 0, tag, 25_000, None))) {
        policy.arrive(0, request, &device);
    }
    let mut order = Vec::new();
    while let Decision::Serve(request) = policy.next(0, &device) {
        order.push(request);
    }
    let tags: Vec<_> = order.iter().map(|request| request.tag).collect();
    assert_eq!(tags, [10, 11, 12, 0, 1, 2, 13, 14]);
    for (request, done_ns) in order.iter().zip((1..).map(|nth| nth * 10 * MS)) {
        policy.complete(done_ns, request, done_ns - 10 * MS);
    }
    assert_eq!(policy.next(80 * MS, &device), Decision::Idle);
}

#[test]
fn each_kind_of_class_has_its_order() {
    let classes =
        [(TrafficKind::BestEffort, 1.0), (TrafficKind::RealTime, 1.0), (TrafficKind::Interactive, 1.0)];
    let all = [
        request(0, 0, 900, 1, None),
        request(1, 0, 100, 1, None),
        request(2, 1, 800, 1, Some(700 * MS)),
        request(3, 1, 200, 1, Some(700 * MS)),
        request(4, 1, 700, 1, Some(300 * MS)),
        request(5, 2, 500, 1, None),
        request(6, 2, 300, 1, None),
    ];
    let served = serve(&mut *cello(&classes, &[]), disk(), &all, u64::MAX);
    assert_eq!(tags(&served), [6, 5, 4, 2, 3, 0, 1], "upwards from where the arm is");
    let served = serve(&mut *cello(&classes, &[("interactive", "fcfs")]), disk(), &all, u64::MAX);
    assert_eq!(tags(&served)[..2], [5, 6]);
    let steps = [("deadline_batch_ms", "1000")];
    let served = serve(&mut *cello(&classes, &steps), disk(), &all, u64::MAX);
    assert_eq!(tags(&served)[2..5], [4, 2, 3]);
}

#[test]
fn merged_classes_are_served_in_one_sweep() {
    let real_time = [(0, 100), (1, 500), (2, 900)].map(|(tag, at)| request(tag, 1, at, 1, Some(900 * MS)));
    let interactive = [(10, 800), (11, 200), (12, 600)].map(|(tag, at)| request(tag, 0, at, 1, None));
    let all: Vec<_> = real_time.into_iter().chain(interactive).collect();
    let served = serve(&mut *cello(&BOTH, &[]), disk(), &all, u64::MAX);
    assert_eq!(tags(&served), [11, 12, 10, 2, 0, 1]);
    let served = serve(&mut *cello(&BOTH, &[("interactive", "merged")]), disk(), &all, u64::MAX);
    assert_eq!(tags(&served), [0, 11, 1, 12, 10, 2]);
}

/// SCAN as section 2.1 of Shenoy, Goyal and Vin defines it ("in the increasing order of cylinder numbers") is `c-scan`.
#[test]
fn a_sweep_goes_upwards_or_both_ways() {
    let classes =
        [(TrafficKind::BestEffort, 1.0), (TrafficKind::RealTime, 1.0), (TrafficKind::Interactive, 1.0)];
    let at = |class: ClassId, due_ns: Option<u64>| {
        move |(tag, megabyte): (u64, u64)| request(tag, class, megabyte, 1, due_ns)
    };
    // Interactive from 0 to 600, real-time with one deadline on both sides of it, best effort on both sides of its last.
    let mut all: Vec<_> = [(0, 300), (1, 600)].into_iter().map(at(2, None)).collect();
    all.extend([(2, 700), (3, 100), (4, 500), (5, 800)].into_iter().map(at(1, Some(900 * MS))));
    all.extend([(6, 200), (7, 50), (8, 90)].into_iter().map(at(0, None)));
    let served = |pairs: &[(&str, &str)]| tags(&serve(&mut *cello(&classes, pairs), disk(), &all, u64::MAX));
    assert_eq!(served(&[("sweep", "c-scan")]), [0, 1, 2, 5, 3, 4, 7, 8, 6]);
    // Up to 800, down to 100, and on down: 90 and 50; then up again.
    assert_eq!(served(&[("sweep", "scan")]), [0, 1, 2, 5, 4, 3, 8, 7, 6]);
    // On its way up to 300 and 600 the arm passes 100 and 500.
    assert_eq!(served(&[("sweep", "scan"), ("interactive", "merged")]), [3, 0, 4, 1, 2, 5, 6, 8, 7]);
}

#[test]
fn interactive_requests_of_an_interval_go_before_later_ones_or_not() {
    // The first of the sweep takes until the second interval, where a request comes that is on the way to the other one.
    let long = Request { size_bytes: 5_450_000, ..request(0, 0, 0, 1, None) };
    let later = Request { arrived_ns: 1010 * MS, ..request(2, 0, 100, 1, None) };
    let all = [request(1, 0, 900, 1, None), long, later];
    let served = |batches| {
        let settings = [("batches", batches), ("period_ms", "1000")];
        let both = [(TrafficKind::Interactive, 999.0), (TrafficKind::RealTime, 1.0)];
        tags(&serve(&mut *cello(&both, &settings), disk(), &all, u64::MAX))
    };
    assert_eq!(served("interval"), [0, 1, 2]);
    assert_eq!(served("none"), [0, 2, 1]);
}

/// Estimates of 15 ms for services of 10: what is gained is slack when it is computed at dispatch only.
#[test]
fn slack_is_that_of_the_dispatch_or_of_the_insertion() {
    let real_time = (0..3).map(|tag| request(tag, 1, tag, 25_000, Some(60 * MS)));
    let interactive = (10..15).map(|tag| request(tag, 0, tag, 25_000, None));
    let all: Vec<_> = real_time.chain(interactive).collect();
    let served = |slack| {
        let settings = [("slack", slack), ("estimate", "bound")];
        tags(&serve(&mut *cello(&BOTH, &settings), even_disk(), &all, u64::MAX))
    };
    // 15 ms are left beside three times 15. At 30 ms one real-time request is left, and 60 - 30 - 15 ms for 11.
    assert_eq!(served("dispatch"), [10, 0, 1, 11, 2, 12, 13, 14]);
    assert_eq!(served("insertion"), [10, 0, 1, 2, 11, 12, 13, 14]);
}

#[test]
fn places_are_kept_until_a_real_time_request_takes_their_slack() {
    let settings = [("slack", "insertion")];
    let policy = || cello(&BOTH, &settings);
    // Interactive at 500 and 300 go before a request that is due late, in SCAN order; a later one at 100 MB, below the arm,
    // behind them.
    let due = |tag, ms| request(tag, 1, 900, 1, Some(ms * MS));
    let later = Request { arrived_ns: 5 * MS, ..request(3, 0, 100, 1, None) };
    let all = [due(0, 900), request(1, 0, 500, 1, None), request(2, 0, 300, 1, None), later];
    assert_eq!(tags(&serve(&mut *policy(), disk(), &all, u64::MAX)), [2, 1, 3, 0]);
    // One that is due at 26 ms comes during the service of 2, which ends at 9 ms. After 1, at 17 ms, it would take 10 ms.
    let urgent = Request { arrived_ns: 5 * MS, ..due(4, 26) };
    let all = [due(0, 900), request(1, 0, 500, 1, None), request(2, 0, 300, 1, None), later, urgent];
    assert_eq!(tags(&serve(&mut *policy(), disk(), &all, u64::MAX)), [2, 4, 1, 3, 0]);
}

#[test]
fn a_class_that_is_alone_keeps_its_order_beyond_its_share() {
    // Half of the interval is four requests of 10 ms and more; all are served downwards.
    let settings = [("period_ms", "80")];
    let all: Vec<_> = (0..8).map(|tag| request(tag, 0, 800 - 100 * tag, 25_000, None)).collect();
    let served = serve(&mut *cello(&BOTH, &settings), even_disk(), &all, u64::MAX);
    assert_eq!(tags(&served), [3, 2, 1, 0, 7, 6, 5, 4]);
}

#[test]
fn a_burst_of_one_class_leaves_the_other_its_share() {
    // 200 interactive requests of 10 ms arrive at the same time, and one real-time request with a distant deadline.
    let burst = (0..200).map(|tag| request(tag, 0, tag, 25_000, None));
    let all: Vec<_> = burst.chain([request(999, 1, 500, 25_000, Some(10_000 * MS))]).collect();
    let served = serve(&mut *cello(&BOTH, &[]), even_disk(), &all, u64::MAX);
    let place = tags(&served).iter().position(|&tag| tag == 999).unwrap();
    assert_eq!(place, 50, "after half of the interval");
}

#[test]
fn what_a_class_leaves_unused_goes_to_the_others_by_weight() {
    let classes =
        [(TrafficKind::Interactive, 1.0), (TrafficKind::BestEffort, 2.0), (TrafficKind::RealTime, 3.0)];
    let all: Vec<_> =
        (0..2000).map(|tag| request(tag, (tag % 2) as ClassId, tag % 1000, 25_000, None)).collect();
    // 12 s of requests of 10 ms; the real-time class, which has half of every interval, has none.
    let served = serve(&mut *cello(&classes, &[]), even_disk(), &all, 12_000 * MS);
    let interactive = served.iter().filter(|served| served.request.class == 0).count();
    // A third, within one request in each interval.
    assert_eq!(served.len(), 1200);
    assert!(interactive.abs_diff(400) <= 12, "{interactive}");
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |classes: &[Class], pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        build("cello", classes, &Settings(pairs.collect())).err().unwrap().to_string()
    };
    let class =
        |weight| Class { name: "text".into(), kind: TrafficKind::Interactive, weight, contract: None };
    assert!(refused(&[], &[]).contains("no class"));
    assert!(refused(&[class(0.0)], &[]).contains("class `text` has weight 0"));
    assert!(refused(&[class(f64::NAN)], &[]).contains("NaN"));
    assert!(refused(&[class(1.0)], &[("period_ms", "0")]).contains("period_ms=0"));
    assert!(refused(&[class(1.0)], &[("estimate", "worst")]).contains("bound or expected"));
    for other in [("interactive", "merged"), ("sweep", "scan")] {
        let problem = refused(&[class(1.0)], &[("slack", "insertion"), other]);
        assert!(problem.contains(&format!("expected dispatch, for {}={}", other.0, other.1)), "{problem}");
    }
}

fn kinds() -> impl Strategy<Value = TrafficKind> {
    prop::sample::select(vec![TrafficKind::RealTime, TrafficKind::Interactive, TrafficKind::BestEffort])
}

proptest! {
    /// All classes have requests pending all the time: at the end of each interval each has received its share of the
    /// time, within one request of each other class.
    #[test]
    fn shares_are_kept(
        classes in prop::collection::vec((kinds(), 1u32..6, 1u32..100_000), 2..5),
        period_ms in 50u64..1500,
        deadline_ms in 0u64..3000,
    ) {
        let intervals = 6;
        let device = even_disk();
        let time = |size: u32| device.expected_ns(0, &request(0, 0, 0, size, None));
        let mut all = Vec::new();
        for (class, &(kind, _, size)) in (0..).zip(&classes) {
            let due_ns = (kind == TrafficKind::RealTime).then_some(deadline_ms * MS);
            let enough = intervals * period_ms * MS / time(size) + 2;
            all.extend((0..enough).map(|tag| request(tag, class, tag * 7 % 1000, size, due_ns)));
        }
        let weights: Vec<_> = classes.iter().map(|&(kind, weight, _)| (kind, f64::from(weight))).collect();
        let mut policy = cello(&weights, &[("period_ms", &period_ms.to_string())]);
        let served = serve(&mut *policy, device.clone(), &all, intervals * period_ms * MS);
        let sum: u32 = classes.iter().map(|&(_, weight, _)| weight).sum();
        let longest: u64 = classes.iter().map(|&(_, _, size)| time(size)).sum();
        for interval in 1..=intervals {
            let end_ns = interval * period_ms * MS;
            for (class, &(_, weight, size)) in (0u16..).zip(&classes) {
                let own = served.iter().filter(|served| served.request.class == class);
                let got_ns: u64 =
                    own.map(|served| served.done_ns.min(end_ns) - served.begun_ns.min(end_ns)).sum();
                let due_ns = end_ns * u64::from(weight) / u64::from(sum);
                let others = longest - time(size);
                prop_assert!(got_ns + others + 10 >= due_ns, "class {class} got {got_ns} of {due_ns}");
            }
        }
    }

    /// Real-time requests within their share that SCAN-EDF alone serves in time are in time beside interactive ones with
    /// arbitrary arrivals, if the policy's estimates are exact.
    #[test]
    fn interactive_requests_make_no_deadline_missed(
        real_time in prop::collection::vec((0u64..1000, 1u32..60_000, 10u64..900), 1..30),
        interactive in prop::collection::vec((0u64..1000, 1u32..60_000, 0u64..900), 0..60),
        order in prop::sample::select(vec!["scan", "fcfs", "merged"]),
        other in prop::sample::select(vec![("slack", "dispatch"), ("slack", "insertion"), ("sweep", "scan"), ("batches", "none")]),
    ) {
        let order = if other == ("slack", "insertion") && order == "merged" { "scan" } else { order };
        let mut all: Vec<_> = (0..)
            .zip(&real_time)
            .map(|(tag, &(place, size, due_ms))| request(tag, 1, place, size, Some(due_ms * MS)))
            .collect();
        let settings = [("interactive", order), other];
        let weights = [(TrafficKind::Interactive, 1.0), (TrafficKind::RealTime, 5.0)];
        let alone = serve(&mut *cello(&weights, &settings), disk(), &all, u64::MAX);
        prop_assume!(alone.last().unwrap().done_ns <= 1000 * MS * 5 / 6);
        let mut others: Vec<_> = (1000..)
            .zip(&interactive)
            .map(|(tag, &(place, size, at_ms))| Request {
                arrived_ns: at_ms * MS,
                ..request(tag, 0, place, size, None)
            })
            .collect();
        others.sort_by_key(|request| request.arrived_ns);
        all.extend(others);
        let both = serve(&mut *cello(&weights, &settings), disk(), &all, u64::MAX);
        prop_assert_eq!(both.len(), all.len());
        for served in alone.iter().filter(|served| served.done_ns <= served.request.due_ns()) {
            let tag = served.request.tag;
            let beside = both.iter().find(|served| served.request.tag == tag).unwrap();
            prop_assert!(beside.done_ns <= served.request.due_ns(), "{tag}: {} ns", beside.done_ns);
        }
    }

    /// Whatever comes, when and for whom: all is served, once, and the device never idles while something waits.
    #[test]
    fn all_is_served_without_a_pause(
        arrivals in prop::collection::vec((0u16..6, 0u64..1000, 1u32..200_000, 0u64..3000, prop::option::of(0u64..5000)), 0..150),
        period_ms in 1u64..2000,
    ) {
        let mut all: Vec<_> = (0..)
            .zip(&arrivals)
            .map(|(tag, &(class, place, size, at_ms, due_ms))| Request {
                arrived_ns: at_ms * MS,
                ..request(tag, class, place, size, due_ms.map(|ms| ms * MS))
            })
            .collect();
        all.sort_by_key(|request| request.arrived_ns);
        let classes = [(TrafficKind::Interactive, 0.3), (TrafficKind::RealTime, 2.0), (TrafficKind::BestEffort, 1.0), (TrafficKind::RealTime, 0.001)];
        let served = serve(&mut *cello(&classes, &[("period_ms", &period_ms.to_string())]), disk(), &all, u64::MAX);
        let mut seen = tags(&served);
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..all.len() as u64));
    }
}
