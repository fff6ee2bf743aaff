//! Common parts of the schedulers' unit tests.

use crate::model::{LinearModel, ServiceModel};
use crate::policy::{Decision, Policy};
use crate::registry::build;
use crate::request::{Class, ClassId, Op, Request, TrafficKind};
use crate::settings::Settings;

/// A device of 1,000 cylinders of one byte: seeks take 1,000 ns a cylinder, a revolution 10,000 ns, a byte 1 ns.
pub(crate) fn device(head_bytes: u64) -> LinearModel {
    LinearModel {
        capacity_bytes: 1_000_000,
        cylinder_bytes: 1,
        seek_ns: 0,
        seek_ns_per_cylinder: 1000,
        revolution_ns: 10_000,
        transfer_ns_per_byte: 1,
        head_bytes,
    }
}

/// A read of one byte at an offset, whose tag is the offset.
pub(crate) fn read(offset_bytes: u64) -> Request {
    Request {
        tag: offset_bytes,
        class: 0,
        stream: 0,
        op: Op::Read,
        offset_bytes,
        size_bytes: 1,
        arrived_ns: 0,
        deadline_ns: None,
    }
}

pub(crate) fn write(offset_bytes: u64) -> Request {
    Request { op: Op::Write, ..read(offset_bytes) }
}

pub(crate) fn of_class(class: ClassId, tag: u64, size_bytes: u32) -> Request {
    Request { class, tag, size_bytes, ..read(tag) }
}

pub(crate) fn at(offsets: &[u64]) -> Vec<Request> {
    offsets.iter().copied().map(read).collect()
}

/// Classes of these weights, named `a`, `b` and so on.
pub(crate) fn weighted(weights: &[f64]) -> Vec<Class> {
    let class = |(letter, weight): (char, &f64)| Class {
        name: letter.into(),
        kind: TrafficKind::Interactive,
        weight: *weight,
        contract: None,
    };
    ('a'..='z').zip(weights).map(class).collect()
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

pub(crate) fn policy(name: &str, pairs: &[(&str, &str)]) -> Box<dyn Policy> {
    policy_for(name, &weighted(&[1.0, 1.0]), pairs)
}

pub(crate) fn policy_for(name: &str, classes: &[Class], pairs: &[(&str, &str)]) -> Box<dyn Policy> {
    build(name, classes, &settings(pairs)).unwrap()
}

/// The order in which requests that all arrive at once are served one after the other.
pub(crate) fn order(policy: &mut dyn Policy, requests: &[Request], head_bytes: u64) -> Vec<Request> {
    let mut device = device(head_bytes);
    let mut now_ns = 0;
    for request in requests {
        policy.arrive(now_ns, *request, &device);
    }
    let mut served = Vec::new();
    while let Decision::Serve(request) = policy.next(now_ns, &device) {
        let begun_ns = now_ns;
        now_ns += device.expected_ns(device.head_bytes(), &request);
        device.serve(&request);
        policy.complete(now_ns, &request, begun_ns);
        served.push(request);
    }
    assert_eq!(policy.waiting(), 0);
    served
}

pub(crate) fn offsets(policy: &mut dyn Policy, requests: &[Request], head_bytes: u64) -> Vec<u64> {
    order(policy, requests, head_bytes).iter().map(|request| request.offset_bytes).collect()
}

pub(crate) fn tags(policy: &mut dyn Policy, requests: &[Request]) -> Vec<u64> {
    order(policy, requests, 0).iter().map(|request| request.tag).collect()
}
