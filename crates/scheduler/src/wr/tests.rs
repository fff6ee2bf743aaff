//! Tests of the round scheduler's guarantees.

use proptest::prelude::*;

use super::groups::{Device, Groups};
use crate::model::{LinearModel, ServiceModel};
use crate::policy::{Decision, Policy};
use crate::registry::build;
use crate::request::{Class, ClassId, Op, Request, TrafficKind};
use crate::settings::Settings;

const MS: u64 = 1_000_000;
const ROUND_NS: u64 = 500 * MS;
const PERIODIC: ClassId = 0;
const INTERACTIVE: ClassId = 1;
const APERIODIC: ClassId = 2;

/// A device of 1,000 cylinders of 1 MB, with seeks of 1 to 11 ms; no request of 100 kB takes longer than 41 ms.
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

fn request(tag: u64, class: ClassId, megabyte: u64, size_bytes: u32, arrived_ns: u64) -> Request {
    let offset_bytes = megabyte * 1_000_000;
    Request { tag, class, stream: 0, op: Op::Read, offset_bytes, size_bytes, arrived_ns, deadline_ns: None }
}

fn policy(pairs: &[(&str, &str)]) -> Result<Box<dyn Policy>, String> {
    let kinds = [TrafficKind::RealTime, TrafficKind::Interactive, TrafficKind::BestEffort];
    let classes = kinds.map(|kind| Class { name: format!("{kind:?}"), kind, weight: 1.0, contract: None });
    let pairs = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    build("wr-round", &classes, &Settings(pairs.collect())).map_err(|error| error.to_string())
}

/// Serves requests, which are in order of arrival, each in `slow` thousandths of its bound; returns the completions.
fn serve(
    policy: &mut dyn Policy,
    arrivals: &[Request],
    mut slow: impl FnMut() -> u64,
) -> Vec<(Request, u64)> {
    let mut device = disk();
    let mut arrivals = arrivals.iter().peekable();
    let mut served = Vec::new();
    let mut now_ns = 0;
    loop {
        while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
            policy.arrive(request.arrived_ns, *request, &device);
        }
        let waiting = policy.waiting();
        match policy.next(now_ns, &device) {
            Decision::Serve(request) => {
                assert_eq!(policy.waiting(), waiting - 1);
                let begun_ns = now_ns;
                now_ns += device.bound_ns(device.head_bytes(), &request) * slow() / 1000;
                device.serve(&request);
                while let Some(request) = arrivals.next_if(|request| request.arrived_ns < now_ns) {
                    policy.arrive(request.arrived_ns, *request, &device);
                }
                policy.complete(now_ns, &request, begun_ns);
                served.push((request, now_ns));
            }
            Decision::WaitUntil(until_ns) => {
                assert!(until_ns > now_ns);
                now_ns = arrivals.peek().map_or(until_ns, |request| until_ns.min(request.arrived_ns));
            }
            Decision::Idle => {
                assert_eq!(waiting, 0);
                match arrivals.peek() {
                    Some(request) => now_ns = request.arrived_ns,
                    None => return served,
                }
            }
        }
    }
}

fn tags(served: &[(Request, u64)]) -> Vec<u64> {
    served.iter().map(|(request, _)| request.tag).collect()
}

#[test]
fn a_round_goes_as_in_figure_2() {
    let mut all: Vec<_> = (0..6).map(|tag| request(tag, PERIODIC, 100 * tag, 1000, 0)).collect();
    all.extend([
        // Guaranteed: in the sweep with the periodic ones.
        request(10, APERIODIC, 250, 1000, 0),
        // Comes during the first subgroup (0, 1): before the next, and on no subgroup's cylinders.
        request(20, INTERACTIVE, 900, 1000, MS),
        // Comes then too; the second subgroup (2, 10) is around it.
        request(21, INTERACTIVE, 220, 1000, 2 * MS),
        // Aperiodic and late: into the closest subgroup, which is the last (5, after 3 and 4).
        request(11, APERIODIC, 510, 1000, 3 * MS),
    ]);
    let served = serve(&mut *policy(&[("subgroup", "2")]).unwrap(), &all, || 1000);
    // The first interactive request cannot be combined: it is served in the slack, and so is the other one, after it. The
    // arm is at 220 then, and the subgroup of 200 and 250 is closest.
    assert_eq!(tags(&served), [0, 1, 20, 21, 2, 10, 3, 4, 5, 11]);
    all.remove(7);
    let served = serve(&mut *policy(&[("subgroup", "2")]).unwrap(), &all, || 1000);
    assert_eq!(tags(&served), [0, 1, 2, 21, 10, 3, 4, 5, 11]);
}

#[test]
fn late_requests_join_the_round_or_wait() {
    let at_begin: Vec<_> = (0..6).map(|tag| request(tag, PERIODIC, 100 * tag, 1000, 0)).collect();
    let order = |late: Request, key, value| {
        let all = [&at_begin[..], &[late]].concat();
        tags(&serve(&mut *policy(&[("subgroup", "2"), (key, value)]).unwrap(), &all, || 1000))
    };
    // Both come during the first subgroup; 310 is in the second, of 200 and 300. Section 2.1 merges the aperiodic one.
    let aperiodic = request(11, APERIODIC, 310, 1000, 3 * MS);
    assert_eq!(order(aperiodic, "late_aperiodic", "join"), [0, 1, 2, 3, 11, 4, 5]);
    assert_eq!(order(aperiodic, "late_aperiodic", "wait"), [0, 1, 2, 3, 4, 5, 11]);
    let periodic = request(9, PERIODIC, 310, 1000, 3 * MS);
    assert_eq!(order(periodic, "late_periodic", "join"), [0, 1, 2, 3, 9, 4, 5]);
    assert_eq!(order(periodic, "late_periodic", "wait"), [0, 1, 2, 3, 4, 5, 9]);
}

#[test]
fn interactive_requests_wait_where_there_is_no_slack() {
    // Twelve periodic requests fill a round, or all of it but 25 ms: one interactive request takes 23 ms, as then the
    // sweep goes downwards, and each further one at the same place 10 ms.
    let all: Vec<_> = (0..12)
        .map(|tag| request(tag, PERIODIC, 80 * tag, 120_000, 0))
        .chain((20..23).map(|tag| request(tag, INTERACTIVE, 990, 1000, 0)))
        .collect();
    let device = disk();
    let periodic = Device { model: &device, bound: true };
    let needs_ns = periodic.sweep_ns(0, &all[..12]);
    let shares = [("periodic", "100"), ("aperiodic", "0"), ("subgroup", "1")];
    let with = |round_ns: u64| {
        let round_ms = (round_ns as f64 / 1e6).to_string();
        let settings = [&shares[..], &[("round_ms", &round_ms)]].concat();
        serve(&mut *policy(&settings).unwrap(), &all, || 1000)
    };
    assert_eq!(tags(&with(needs_ns))[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    let order = tags(&with(needs_ns + 25 * MS));
    assert_eq!(order.iter().take_while(|&&tag| tag >= 20).count(), 1, "{order:?}");
}

#[test]
fn an_interactive_request_is_combined_only_if_the_rest_is_in_time_then() {
    let requests = [0, 100, 900, 950].map(|place| request(place, PERIODIC, place, 1000, 0));
    let interactive = request(1, INTERACTIVE, 920, 1000, 0);
    let model = disk();
    let device = Device { model: &model, bound: true };
    let with = |time_ns| {
        let mut groups = Groups::new(&requests, 2);
        let merged = groups.take_merged(device, &interactive, time_ns);
        (
            merged.map(|merged| merged.iter().map(|request| request.tag).collect::<Vec<_>>()),
            groups.iter().count(),
        )
    };
    // To 900 and on to 950, and back to 100 and 0: seeks of 10, 1.2, 1.3, 9.5 and 2 ms and 10.2 ms a piece.
    let needs_ns = 75 * MS;
    assert_eq!(with(needs_ns), (Some(vec![900, 1, 950]), 2));
    assert_eq!(with(needs_ns - 1), (None, 4));
    let outside = request(1, INTERACTIVE, 500, 1000, 0);
    assert_eq!(Groups::new(&requests, 2).take_merged(device, &outside, u64::MAX), None);
}

#[test]
fn held_back_requests_are_named_with_their_time() {
    let all: Vec<_> = (0..4).map(|tag| request(tag, INTERACTIVE, tag, 1000, 0)).collect();
    let settings = [("interactive_per_s", "2"), ("burst", "1")];
    let served = serve(&mut *policy(&settings).unwrap(), &all, || 0);
    let done: Vec<_> = served.iter().map(|(_, done_ns)| *done_ns).collect();
    assert_eq!(done, [0, ROUND_NS, 2 * ROUND_NS, 3 * ROUND_NS]);
}

#[test]
fn a_request_that_would_reach_too_far_into_the_next_round_waits() {
    // At 470 ms the periodic share of 95 % leaves 25 ms behind the round: 56 ms, no.
    let long = request(0, APERIODIC, 500, 200_000, 470 * MS);
    let done = |periodic| {
        let settings = [("periodic", periodic), ("aperiodic", "5")];
        serve(&mut *policy(&settings).unwrap(), &[long], || 1000)[0].1
    };
    assert_eq!(done("95"), ROUND_NS + 56 * MS);
    assert_eq!(done("90"), 470 * MS + 56 * MS);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |key, value| policy(&[(key, value)]).err().unwrap();
    assert!(refused("aperiodic", "60").contains("at most 50, the rest of a round with periodic=50"));
    assert!(refused("round_ms", "0").contains("round_ms=0"));
    assert!(refused("subgroup", "2.5").contains("whole number"));
    assert!(refused("interactive_per_s", "0").contains("interactive_per_s=0"));
    assert!(refused("bucket", "leaky").contains("sliding or fixed or tokens"));
    assert!(policy(&[("subgroup", "0.25")]).is_ok());
}

/// Claim W-C1 needs the edge: from between two groups a merged sweep covers a distance that neither covers alone.
#[test]
fn the_claim_of_the_paper_does_not_hold_from_the_middle() {
    let device = disk();
    let sweep = |megabytes: &[u64]| {
        let requests: Vec<_> = megabytes.iter().map(|&place| request(0, 0, place, 1, 0)).collect();
        Device { model: &device, bound: true }.sweep_ns(500_000_000, &requests)
    };
    assert!(sweep(&[0, 499, 501, 999]) > sweep(&[0, 499]) + sweep(&[501, 999]));
}

proptest! {
    /// Claim W-C1: from an edge, the merged sweep takes no longer than those of its parts together.
    #[test]
    fn merged_sweeps_are_no_longer_than_their_parts(
        places in prop::collection::btree_map(0u64..1000, (0u16..4, 1u32..1_000_000), 1..60), upper in any::<bool>(),
        bound in any::<bool>(), seek_ns in 0u64..5_000_000, per_cylinder in 0u64..50_000,
    ) {
        let model = LinearModel { seek_ns, seek_ns_per_cylinder: per_cylinder, ..disk() };
        let device = Device { model: &model, bound };
        let edge = if upper { model.capacity_bytes } else { 0 };
        let all: Vec<_> = places.iter().map(|(&place, &(class, size))| request(place, class, place, size, 0)).collect();
        let parts: u64 = (0..4)
            .map(|class| {
                let part: Vec<_> = all.iter().filter(|request| request.class == class).copied().collect();
                device.sweep_ns(edge, &part)
            })
            .sum();
        prop_assert!(device.sweep_ns(edge, &all) <= parts);
    }

    /// Periodic requests within their share are done by the end of the round, and aperiodic ones get their guarantee,
    /// whatever else comes and when.
    #[test]
    fn guarantees_hold(
        periodic in prop::collection::vec(prop::collection::vec((0u64..1000, 1u32..100_000), 0..7), 4),
        interactive in prop::collection::vec((0u64..1000, 1u32..100_000, 0u64..2000), 0..60),
        aperiodic in prop::collection::vec((0u64..1000, 1u32..100_000, 0u64..2000), 0..60),
        backlog in 0usize..40,
        subgroup in prop::sample::select(vec!["1", "3", "0.5"]),
        speeds in prop::collection::vec(300u64..=1000, 1..50),
        late in prop::sample::select(vec![("late_aperiodic", "join"), ("late_aperiodic", "wait"), ("late_periodic", "wait")]),
        bucket in prop::sample::select(vec!["sliding", "fixed", "tokens"]),
    ) {
        // Six periodic requests of 41 ms at most are within 250 ms, three aperiodic ones within 125 ms.
        let mut all = Vec::new();
        for (round, requests) in (0u64..).zip(&periodic) {
            for (tag, &(place, size)) in (0..).zip(requests) {
                all.push(request(round * 100 + tag, PERIODIC, place, size, round * ROUND_NS));
            }
        }
        for (tag, &(place, size, at_ms)) in (1000..).zip(&interactive) {
            all.push(request(tag, INTERACTIVE, place, size, at_ms * MS));
        }
        for (tag, &(place, size, at_ms)) in (2000..).zip(&aperiodic) {
            all.push(request(tag, APERIODIC, place, size, at_ms * MS));
        }
        all.extend((0..backlog as u64).map(|tag| request(3000 + tag, APERIODIC, tag * 37 % 1000, 100_000, 0)));
        all.sort_by_key(|request| request.arrived_ns);
        let mut speeds = speeds.iter().cycle();
        let mut policy = policy(&[("subgroup", subgroup), ("interactive_per_s", "40"), ("bucket", bucket), late]).unwrap();
        let served = serve(&mut *policy, &all, || speeds.next().copied().unwrap_or(1000));
        prop_assert_eq!(served.len(), all.len());
        for (request, done_ns) in &served {
            if request.class == PERIODIC {
                prop_assert!(*done_ns <= request.arrived_ns + ROUND_NS, "{request:?} at {done_ns}");
            }
        }
        let order = served.iter().filter(|(request, _)| request.class == INTERACTIVE);
        prop_assert!(order.clone().zip(order.skip(1)).all(|((one, _), (other, _))| one.arrived_ns <= other.arrived_ns));
        for round in 0..4 {
            let (begin, end) = (round * ROUND_NS, (round + 1) * ROUND_NS);
            let own = || served.iter().filter(|(request, _)| request.class == APERIODIC);
            let waiting = own().filter(|(request, done)| request.arrived_ns <= begin && *done > begin).count();
            let done = own().filter(|(request, done)| request.arrived_ns <= begin && *done > begin && *done <= end).count();
            // One of the waiting requests may have been in service when the round began.
            prop_assert!(done >= waiting.min(3), "round {round}: {done} of {waiting}");
        }
    }

    /// With nothing to hold back and no share that forbids it, the device never pauses while something waits.
    #[test]
    fn nothing_is_held_back_but_by_the_bucket(
        arrivals in prop::collection::vec((0u16..4, 0u64..1000, 1u32..3_000_000, 0u64..3000), 0..150),
        periodic in 0u32..60,
    ) {
        let mut all: Vec<_> = (0..)
            .zip(&arrivals)
            .map(|(tag, &(class, place, size, at_ms))| request(tag, class, place, size, at_ms * MS))
            .collect();
        all.sort_by_key(|request| request.arrived_ns);
        let settings = [("interactive_per_s", "1000000"), ("periodic", &periodic.to_string())];
        let served = serve(&mut *policy(&settings).unwrap(), &all, || 1000);
        let mut seen = tags(&served);
        seen.sort_unstable();
        prop_assert!(seen.into_iter().eq(0..all.len() as u64));
    }
}
