//! A device on which a request of n bytes takes at most n ns, and its record.

use std::collections::BTreeMap;

use weir_scheduler::guarantee::Task;
use weir_scheduler::{
    Class, Contract, Decision, LinearModel, Op, Policy, Request, ServiceModel, SettingError, Settings,
    TrafficKind, build,
};

pub fn device() -> LinearModel {
    LinearModel {
        capacity_bytes: 1_000_000,
        cylinder_bytes: 1000,
        seek_ns: 0,
        seek_ns_per_cylinder: 0,
        revolution_ns: 0,
        transfer_ns_per_byte: 1,
        head_bytes: 0,
    }
}

/// A real-time class of one stream with a contract of (cost, period).
pub fn stream((cost_ns, period_ns): (u64, u64)) -> Class {
    let task = Task::new(cost_ns, period_ns).unwrap();
    Class {
        name: format!("stream {cost_ns}/{period_ns}"),
        kind: TrafficKind::RealTime,
        weight: 1.0,
        contract: Some(Contract { task, streams: 1 }),
    }
}

/// A best-effort class, with a server of (cost, period) or without.
pub fn best_effort(server: Option<(u64, u64)>) -> Class {
    let contract = server
        .map(|(cost_ns, period_ns)| Contract { task: Task::new(cost_ns, period_ns).unwrap(), streams: 1 });
    Class { name: "best effort".to_owned(), kind: TrafficKind::Interactive, weight: 1.0, contract }
}

pub fn try_policy(
    name: &str,
    classes: &[Class],
    settings: &[(&str, &str)],
) -> Result<Box<dyn Policy>, SettingError> {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    build(name, classes, &Settings(settings))
}

pub fn policy(name: &str, classes: &[Class], settings: &[(&str, &str)]) -> Box<dyn Policy> {
    try_policy(name, classes, settings).unwrap()
}

/// A read that arrives, of so many bytes, for a class.
pub fn read(arrived_ns: u64, class: u16, size_bytes: u64) -> Request {
    Request {
        tag: 0,
        class,
        stream: 0,
        op: Op::Read,
        offset_bytes: 0,
        size_bytes: size_bytes as u32,
        arrived_ns,
        deadline_ns: None,
    }
}

/// A request that was served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Served {
    pub request: Request,
    pub begun_ns: u64,
    pub done_ns: u64,
}

/// Serves arrivals in the order of their times, each in `took_ns`; tags are numbers of arrival. Ends when nothing more
/// can happen; returns the served requests, and the number of the others.
pub fn run(
    policy: &mut dyn Policy,
    arrivals: &[Request],
    mut took_ns: impl FnMut(&Request) -> u64,
) -> (Vec<Served>, usize) {
    let mut device = device();
    let mut sorted = arrivals.to_vec();
    sorted.sort_by_key(|request| request.arrived_ns);
    let mut arrivals = (0..).zip(sorted).map(|(tag, request)| Request { tag, ..request }).peekable();
    let (mut now_ns, mut served) = (0, Vec::new());
    let mut in_service: Option<Served> = None;
    loop {
        while let Some(request) = arrivals.next_if(|request| request.arrived_ns <= now_ns) {
            policy.arrive(now_ns, request, &device);
        }
        let mut ask_again_ns = u64::MAX;
        if in_service.is_none() {
            match policy.next(now_ns, &device) {
                Decision::Serve(request) => {
                    let took_ns = took_ns(&request);
                    assert!(took_ns <= device.bound_ns(0, &request));
                    device.serve(&request);
                    in_service = Some(Served { request, begun_ns: now_ns, done_ns: now_ns + took_ns });
                }
                Decision::WaitUntil(until_ns) => {
                    assert!(until_ns > now_ns && policy.waiting() > 0);
                    ask_again_ns = until_ns;
                }
                Decision::Idle => assert_eq!(policy.waiting(), 0),
            }
        }
        let done_ns = in_service.map_or(u64::MAX, |served| served.done_ns);
        let arrival_ns = arrivals.peek().map_or(u64::MAX, |request| request.arrived_ns);
        now_ns = done_ns.min(arrival_ns).min(ask_again_ns);
        if now_ns == u64::MAX {
            return (served, policy.waiting());
        }
        if let Some(done) = in_service.take_if(|served| served.done_ns <= now_ns) {
            policy.complete(now_ns, &done.request, done.begun_ns);
            served.push(done);
        }
    }
}

/// By how much requests of one-stream classes with contracts are late, in the order of service; releases are arrivals or
/// last deadlines.
pub fn lateness(classes: &[Class], served: &[Served]) -> Vec<(u64, i64)> {
    let mut by_arrival: Vec<Served> = served.to_vec();
    by_arrival.sort_by_key(|served| served.request.tag);
    let mut last_due: BTreeMap<u16, u64> = BTreeMap::new();
    let mut late = BTreeMap::new();
    for served in by_arrival {
        let class = &classes[usize::from(served.request.class)];
        let (Some(contract), TrafficKind::RealTime) = (class.contract, class.kind) else { continue };
        let due = last_due.entry(served.request.class).or_default();
        *due = served.request.arrived_ns.max(*due) + contract.task.period_ns();
        late.insert(served.request.tag, served.done_ns as i64 - *due as i64);
    }
    served.iter().filter_map(|served| Some((served.request.tag, *late.get(&served.request.tag)?))).collect()
}

pub fn misses(classes: &[Class], served: &[Served]) -> usize {
    lateness(classes, served).iter().filter(|(_, late_ns)| *late_ns > 0).count()
}

/// Numbers that look random and are the same each time (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// From 0 to `most`, both among them.
    pub fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % (most + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.up_to(99) < percent
    }
}
