//! Policies without starvation, against clients that never stop.

use proptest::prelude::*;
use weir_scheduler::{Decision, Policy, Request};

use crate::harness::{SLOT_BYTES, SLOTS, disk, policy};

/// Serves for ever and replaces each request by one at the next of `slots`: returns how many others are served before the
/// request that waits at `victim`, or none if it is not among `most`.
fn others_before(policy: &mut dyn Policy, victim: u64, slots: &[u64], most: usize) -> Option<usize> {
    let mut disk = disk();
    let request = |tag: u64, slot: u64, now_ns: u64| Request {
        tag,
        class: 0,
        stream: 0,
        op: weir_scheduler::Op::Read,
        offset_bytes: slot * SLOT_BYTES,
        size_bytes: 512,
        arrived_ns: now_ns,
        deadline_ns: None,
    };
    let mut slots = slots.iter().copied().cycle();
    let mut tag = 0;
    for _ in 0..4 {
        tag += 1;
        policy.arrive(0, request(tag, slots.next()?, 0), &disk);
    }
    policy.arrive(0, request(0, victim, 0), &disk);
    for others in 0..most {
        let now_ns = others as u64 * 10_000_000;
        let Decision::Serve(served) = policy.next(now_ns, &disk) else { return None };
        if served.tag == 0 {
            return Some(others);
        }
        disk.serve(&served);
        policy.complete(now_ns + 10_000_000, &served, now_ns);
        tag += 1;
        policy.arrive(now_ns + 10_000_000, request(tag, slots.next()?, now_ns + 10_000_000), &disk);
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn everybody_is_served(victim in 0..SLOTS, slots in prop::collection::vec(0..SLOTS, 1..12)) {
        // Five requests wait. At each slot a sweep serves the requests that were there, five at most; it reaches the
        // victim's slot in this sweep or the next.
        let sweep = 5 * SLOTS as usize;
        let bounds = [
            ("fcfs", 4),
            ("fscan", 4 + 5),
            ("n-step-scan", 4 + 9),
            ("c-look", 2 * sweep),
            ("c-scan", 2 * sweep),
            ("look", 2 * sweep),
            ("scan", 2 * sweep),
            ("edf", 4),
            ("round-robin", 4),
            ("sfq", 4),
            ("wf2q+", 4),
        ];
        for (name, bound) in bounds {
            let others = others_before(&mut *policy(name, &[1], &[]), victim, &slots, 1000);
            prop_assert!(others.is_some_and(|others| others <= bound), "{name}: {others:?} > {bound}");
        }
        // Ageing ends the starvation that SATF alone allows.
        let aged = others_before(&mut *policy("satf", &[1], &[("age_weight", "1")]), victim, &slots, 1000);
        prop_assert!(aged.is_some());
        let overdue = others_before(&mut *policy("linux-mq-deadline", &[1], &[]), victim, &slots, 1000);
        prop_assert!(overdue.is_some());
    }
}

/// The counterpart: that the test above can fail.
#[test]
fn sstf_and_satf_starve_the_far_one() {
    for name in ["sstf", "satf"] {
        assert_eq!(others_before(&mut *policy(name, &[1], &[]), SLOTS - 1, &[0, 1], 1000), None, "{name}");
    }
}
