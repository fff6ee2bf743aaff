//! A device in virtual time, and arrivals.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_scheduler::{
    Class, Decision, LinearModel, Op, Policy, Request, ServiceModel, Settings, TrafficKind, build,
};

pub const SLOT_BYTES: u64 = 4096;
pub const SLOTS: u64 = 24;

/// A disk of 24 slots of four cylinders, so that requests for one slot or one cylinder are frequent.
pub fn disk() -> LinearModel {
    LinearModel {
        capacity_bytes: SLOTS * SLOT_BYTES,
        cylinder_bytes: SLOT_BYTES / 4,
        seek_ns: 500_000,
        seek_ns_per_cylinder: 50_000,
        revolution_ns: 8_000_000,
        transfer_ns_per_byte: 100,
        head_bytes: 0,
    }
}

pub fn classes(weights: &[u32]) -> Vec<Class> {
    let services =
        [TrafficKind::RealTime, TrafficKind::Interactive, TrafficKind::BestEffort].into_iter().cycle();
    let class = |(index, (weight, service)): (usize, (&u32, TrafficKind))| Class {
        name: format!("class{index}"),
        kind: service,
        weight: f64::from(*weight),
        contract: None,
    };
    weights.iter().zip(services).enumerate().map(class).collect()
}

pub fn policy(name: &str, weights: &[u32], settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    build(name, &classes(weights), &Settings(settings)).unwrap()
}

/// Requests in the order of their arrival, tagged by number; at times often the same, for three classes of two streams.
pub fn arrivals(most: usize) -> impl Strategy<Value = Vec<Request>> {
    let gap_ns = prop_oneof![2 => Just(0_u64), 3 => 0..40_000_000_u64, 1 => 0..400_000_000_u64];
    let due_ns = prop_oneof![1 => Just(None), 4 => (0..8_u64).prop_map(|steps| Some(steps * 20_000_000))];
    let request = (gap_ns, 0..3_u16, 0..2_u32, any::<bool>(), 0..SLOTS, 1..=SLOT_BYTES as u32, due_ns);
    prop::collection::vec(request, 1..most).prop_map(|drawn| {
        let mut now_ns = 0;
        let request = |(tag, (gap_ns, class, stream, read, slot, size_bytes, due_ns)): (
            usize,
            (_, _, _, _, u64, _, Option<u64>),
        )| {
            now_ns += gap_ns;
            Request {
                tag: tag as u64,
                class,
                stream,
                op: if read { Op::Read } else { Op::Write },
                offset_bytes: slot * SLOT_BYTES,
                size_bytes,
                arrived_ns: now_ns,
                // Often the same for several, whenever they arrive.
                deadline_ns: due_ns.map(|due_ns: u64| (now_ns + due_ns) / 20_000_000 * 20_000_000),
            }
        };
        drawn.into_iter().enumerate().map(request).collect()
    })
}

/// A moment at which a request was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub now_ns: u64,
    pub head_bytes: u64,
    /// What waited, in the order of arrival, the chosen one with it.
    pub waiting: Vec<Request>,
    pub chosen: Request,
}

/// Serves arrivals on a device that takes `depth` requests at once, and checks the invariants of every policy: only
/// waiting requests are served; the number of waiting requests is right; idle only without waiting requests;
/// work-conserving policies never wait while a request waits; others never wait for a past instant.
pub fn run(policy: &mut dyn Policy, arrivals: &[Request], depth: usize, conserves: bool) -> Vec<Choice> {
    let mut disk = disk();
    let mut now_ns = 0;
    let mut waiting: Vec<Request> = Vec::new();
    let mut in_service: BTreeMap<(u64, u64), (Request, u64)> = BTreeMap::new();
    let mut arrivals = arrivals.iter().peekable();
    let mut choices = Vec::new();
    loop {
        while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
            policy.arrive(now_ns, *request, &disk);
            waiting.push(*request);
            assert_eq!(policy.waiting(), waiting.len());
        }
        let mut ask_at_ns = u64::MAX;
        while in_service.len() < depth {
            let head_bytes = disk.head_bytes();
            match policy.next(now_ns, &disk) {
                Decision::Serve(chosen) => {
                    let before = waiting.clone();
                    let index = waiting.iter().position(|request| *request == chosen);
                    waiting.remove(index.unwrap_or_else(|| panic!("{chosen:?} does not wait")));
                    let done_ns = now_ns + disk.expected_ns(head_bytes, &chosen);
                    disk.serve(&chosen);
                    in_service.insert((done_ns, chosen.tag), (chosen, now_ns));
                    choices.push(Choice { now_ns, head_bytes, waiting: before, chosen });
                    assert_eq!(policy.waiting(), waiting.len());
                }
                Decision::WaitUntil(until_ns) => {
                    assert!(!conserves, "waits until {until_ns} though {} requests wait", waiting.len());
                    assert!(until_ns > now_ns && !waiting.is_empty());
                    ask_at_ns = until_ns;
                    break;
                }
                Decision::Idle => {
                    assert!(waiting.is_empty(), "idle though {} requests wait", waiting.len());
                    break;
                }
            }
        }
        let done_ns = in_service.first_key_value().map_or(u64::MAX, |((done_ns, _), _)| *done_ns);
        let arrival_ns = arrivals.peek().map_or(u64::MAX, |request| request.arrived_ns);
        now_ns = done_ns.min(arrival_ns).min(ask_at_ns);
        if now_ns == u64::MAX {
            break;
        }
        while let Some(entry) = in_service.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            let (request, begun_ns) = entry.remove();
            policy.complete(now_ns, &request, begun_ns);
        }
    }
    assert!(waiting.is_empty(), "{} requests were never served", waiting.len());
    choices
}
