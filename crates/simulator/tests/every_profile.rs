//! Every profile under every policy: each request is answered, and the device keeps the bounds of its model.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_scheduler::{Class, POLICIES, Request, ServiceModel, Settings, TrafficKind};
use weir_simulator::machine::Model;
use weir_simulator::server::{
    ClassLayout, ClosedLoop, Head, Limits, Outcome, Placement, Served, Server, ServerClass, Volume,
};
use weir_simulator::{Device, IoRequest, Op, profile};

const SIZE_BYTES: u64 = 256 << 20;

fn model(name: &str) -> Model {
    Model::new(&profile::load(name).unwrap(), SIZE_BYTES, 1).unwrap()
}

fn classes() -> Vec<Class> {
    let class = |name: &str, service| Class { name: name.into(), kind: service, weight: 1.0, contract: None };
    vec![
        class("text", TrafficKind::Interactive),
        class("video", TrafficKind::RealTime),
        class("copy", TrafficKind::BestEffort),
    ]
}

/// Three classes of clients on one device for half a simulated second: requests, answers, answers before the question.
fn served(profile: &str, policy: &str, depth: usize) -> (u64, u64, u64) {
    let (mut answered, mut wrong) = (0, 0);
    let outcome = run(profile, policy, depth, &mut |served| {
        answered += u64::from(served.completed_ns.is_some());
        wrong += u64::from(served.completed_ns.is_none_or(|done_ns| done_ns < served.ask.intended_ns));
    });
    (outcome.asked, answered, wrong)
}

fn run(profile: &str, policy: &str, depth: usize, record: &mut dyn FnMut(&Served)) -> Outcome {
    let policy = weir_scheduler::build(policy, &classes(), &Settings::default()).unwrap();
    let head = Head::new(model(profile), policy, depth);
    let volume = Volume { first_head: 0, heads: 1 };
    let class = |number: u32| {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(number));
        let from = Placement::Packed { from_bytes: u64::from(number) * (SIZE_BYTES / 4) };
        let layout = ClassLayout::new(volume, 65536, SIZE_BYTES, &[SIZE_BYTES / 4], from).unwrap();
        let ask = move |_: u32| weir_simulator::server::Ask {
            intended_ns: 0,
            deadline_ns: (number == 1).then_some(100_000_000),
            client: number,
            file: 0,
            op: if rng.random::<bool>() { Op::Read } else { Op::Write },
            offset_bytes: rng.random_range(0..SIZE_BYTES / 4 / 4096 - 16) * 4096,
            size_bytes: rng.random_range(1..=16) * 4096,
        };
        // Without service time a loop without thinking would never come to the end of its time.
        let source = ClosedLoop::new(4, 1, 1_000_000, 500_000_000, ask);
        ServerClass { source: Box::new(source), layout, cache_bytes: 0, cache_hit_ns: 0 }
    };
    let server = Server::new(vec![head], (0..3).map(class).collect()).unwrap();
    let limits = Limits { end_ns: 100_000_000_000, most_outstanding: 10_000 };
    server.run(limits, record).unwrap()
}

#[test]
fn every_policy_serves_all_requests_of_every_profile() {
    for name in profile::names() {
        for policy in POLICIES {
            for depth in [1, 8] {
                let (asked, answered, wrong) = served(name, policy.name, depth);
                assert!(asked >= 20, "{name} {}: only {asked}", policy.name);
                assert_eq!((answered, wrong), (asked, 0), "{name} {} {depth}", policy.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn nothing_takes_longer_than_its_bound(seed in any::<u64>()) {
        for name in profile::names() {
            let mut device = model(name);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (mut now_ns, mut done) = (0, Vec::new());
            let mut cylinder = 0;
            for tag in 0..60 {
                now_ns += rng.random_range(0..20_000_000);
                let request = Request {
                    tag,
                    class: 0,
                    stream: 0,
                    op: if rng.random::<bool>() { weir_scheduler::Op::Read } else { weir_scheduler::Op::Write },
                    offset_bytes: rng.random_range(0..SIZE_BYTES / 512 - 4096) * 512,
                    size_bytes: rng.random_range(1..=2000) * 512,
                    arrived_ns: now_ns,
                    deadline_ns: None,
                };
                let from = device.head_bytes();
                let (expected_ns, bound_ns) = (device.expected_ns(from, &request), device.bound_ns(from, &request));
                prop_assert!(expected_ns <= bound_ns, "{name}: {expected_ns} {bound_ns}");
                // Cylinders are in the order of addresses.
                let next = device.cylinder(tag * (SIZE_BYTES / 60));
                prop_assert!(next >= cylinder, "{name}");
                cylinder = next;
                device.arrive(now_ns, IoRequest::from(&request)).unwrap();
                while done.is_empty() {
                    let event_ns = device.next_event_ns().unwrap();
                    device.advance(event_ns, &mut done);
                }
                let done_ns = done.pop().unwrap().done_ns;
                prop_assert!(done_ns - now_ns <= bound_ns, "{name}: {} > {bound_ns}, {request:?}", done_ns - now_ns);
                now_ns = done_ns;
            }
        }
    }
}

#[test]
fn a_device_with_several_requests_is_busy_once() {
    for (name, depth) in [("ssd-nvme", 8), ("ssd-sata", 8), ("hdd-7200", 8), ("hdd-7200", 1)] {
        let outcome = run(name, "fcfs", depth, &mut |_| {});
        let busy = outcome.heads[0].busy_ns as f64 / outcome.now_ns as f64;
        assert!(busy > 0.1 && busy <= 1.0, "{name} {depth}: {busy}");
    }
}
