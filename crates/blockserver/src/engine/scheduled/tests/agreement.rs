//! The same requests in real time and in virtual time: the order of dispatch and the models' times are equal, to the ns.

use std::collections::VecDeque;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_scheduler::{Class, Settings};
use weir_simulator::machine::Model;
use weir_simulator::server::{
    Ask, ClassLayout, Head, Limits, Placement, Server, ServerClass, Source, Volume,
};
use weir_simulator::{Op, StripedArray, profile};

use super::super::attribution::Caller;
use super::super::buffer::Written;
use super::super::classes::completed;
use super::{Logged, Running, reply};
use crate::engine::scheduled::{Arrangement, ClassSpec};

const MIB: u64 = 1 << 20;
const SIZE_MIB: u64 = 512;
const UNIT_KIB: u64 = 64;
/// Limit of lateness on a shared machine. On a quiet one the median is far below.
const BOUND: Duration = Duration::from_millis(20);

/// Requests of a class at the times at which they came.
struct List(VecDeque<(u64, Ask)>);

impl Source for List {
    fn next_ns(&self) -> Option<u64> {
        self.0.front().map(|(at_ns, _)| *at_ns)
    }

    fn take(&mut self) -> Option<Ask> {
        self.0.pop_front().map(|(_, ask)| ask)
    }
}

/// When each request was begun and done in virtual time: class, offset, begin, end; in order of the end.
fn in_virtual_time(policy: &str, heads: u32, depth: usize, log: &[Logged]) -> Vec<(u16, u64, u64)> {
    let specs = completed(&classes());
    let classes: Vec<Class> = specs.iter().map(ClassSpec::class).collect();
    let profile = profile::load("hdd-15k").unwrap();
    let (name, settings) = policy.split_once(' ').unwrap_or((policy, ""));
    let pairs = settings.split_whitespace().map(|word| word.split_once('=').unwrap());
    let settings = Settings(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
    let head_bytes = match heads {
        1 => SIZE_MIB * MIB,
        heads => StripedArray::device_bytes(SIZE_MIB * MIB, u64::from(heads), UNIT_KIB * 1024),
    };
    let made = (0..u64::from(heads)).map(|head| {
        let policy = weir_scheduler::build(name, &classes, &settings).unwrap();
        Head::new(Model::new(&profile, head_bytes, head).unwrap(), policy, depth)
    });
    let of_class = |number: usize| {
        let asks = log.iter().filter(|logged| usize::from(logged.wanted.class) == number).map(|logged| {
            let wanted = logged.wanted;
            let ask = Ask {
                intended_ns: logged.arrived_ns,
                deadline_ns: wanted.deadline_ns,
                client: wanted.stream,
                file: 0,
                op: wanted.op,
                offset_bytes: wanted.offset_bytes,
                size_bytes: u64::from(wanted.size_bytes),
            };
            (logged.arrived_ns, ask)
        });
        let mut asks: Vec<(u64, Ask)> = asks.collect();
        asks.sort_by_key(|(at_ns, _)| *at_ns);
        let volume = Volume { first_head: 0, heads };
        let placement = Placement::Packed { from_bytes: 0 };
        let layout =
            ClassLayout::new(volume, UNIT_KIB * 1024, head_bytes, &[SIZE_MIB * MIB], placement).unwrap();
        ServerClass { source: Box::new(List(asks.into())), layout, cache_bytes: 0, cache_hit_ns: 0 }
    };
    let server = Server::new(made.collect(), (0..specs.len()).map(of_class).collect()).unwrap();
    let mut served = Vec::new();
    let limits = Limits { end_ns: u64::MAX - 1, most_outstanding: usize::MAX };
    let mut record = |one: &weir_simulator::server::Served| {
        served.push((one.class, one.ask.offset_bytes, one.completed_ns.unwrap()));
    };
    server.run(limits, &mut record).unwrap();
    served
}

fn classes() -> Vec<ClassSpec> {
    vec![
        ClassSpec {
            wants: weir_vocabulary::TrafficKind::RealTime,
            deadline_ms: Some(60.0),
            range_mib: Some([0, 128]),
            stream_mib: Some(32),
            weight: 3.0,
            ..ClassSpec::named("video")
        },
        ClassSpec {
            wants: weir_vocabulary::TrafficKind::Interactive,
            range_mib: Some([128, 256]),
            ..ClassSpec::named("text")
        },
    ]
}

/// Bursts with pauses, so that queues build up and empty. A server that `is_arranged` began with other settings.
fn in_real_time(policy: &str, heads: u32, depth: usize, is_arranged: bool) -> Vec<Logged> {
    let folder = tempfile::tempdir().unwrap();
    let yaml = serde_json::json!({
        "name": "agreement", "profile": "hdd-15k", "heads": heads, "size_mib": SIZE_MIB,
        "stripe_unit_kib": UNIT_KIB,
        "live": match is_arranged {
            true => serde_json::json!({"policy": "look", "queue_depth": 7}),
            false => serde_json::json!({"policy": policy, "queue_depth": depth, "classes": classes()}),
        },
    });
    let running = Running::start(&yaml.to_string(), folder.path());
    if is_arranged {
        let engine = &running.engine;
        engine.set_timing(false);
        let (reply, answer) = reply();
        engine.read(0, 4096, &Caller::default(), reply);
        answer.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        let policy = policy.to_owned();
        let arrangement = Arrangement { policy, queue_depth: depth as u32, seed: 0, classes: classes() };
        engine.arrange(&arrangement).unwrap();
        engine.set_timing(true);
        engine.begin_at(crate::clock::now_ns()).unwrap();
        let classes = completed(&arrangement.classes);
        assert_eq!(engine.arrangement(), Arrangement { classes, ..arrangement });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut answers = Vec::new();
    for _ in 0..4 {
        for _ in 0..10 {
            let size = 4096u64 << rng.random_range(0..7u32);
            let offset = rng.random_range(0..(SIZE_MIB * MIB - size) / 4096) * 4096;
            let (reply, answer) = reply();
            let caller = Caller::default();
            match rng.random_range(0..3) {
                0 => {
                    let data = vec![1; size as usize];
                    running.engine.write(offset, Written::Borrowed(&data), false, &caller, reply);
                }
                _ => running.engine.read(offset, size as u32, &caller, reply),
            }
            answers.push(answer);
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(1..50)));
    }
    for answer in answers {
        answer.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    }
    running.log()
}

#[test]
fn real_and_virtual_time_agree_to_the_ns() {
    let policies =
        ["fcfs", "c-look", "scan-edf batch_ms=20", "sfq", "cello", "hds root_kb_s=20000", "lst", "linux-bfq"];
    for (number, policy) in policies.into_iter().enumerate() {
        // One disk with one request at a time, and an array with a queue in each disk.
        let (heads, depth) = if number % 2 == 0 { (1, 1) } else { (3, 2) };
        let real = in_real_time(policy, heads, depth, number % 4 < 2);
        assert_eq!(real.len(), 40, "{policy}");
        let of_real: Vec<(u16, u64, u64)> =
            real.iter().map(|one| (one.wanted.class, one.wanted.offset_bytes, one.done_ns)).collect();
        assert_eq!(of_real, in_virtual_time(policy, heads, depth, &real), "{policy}");
        let mut late_ns: Vec<u64> = real.iter().map(|one| one.answered_ns - one.done_ns).collect();
        late_ns.sort_unstable();
        assert!(u128::from(late_ns[late_ns.len() / 2]) < BOUND.as_nanos(), "{policy}: {late_ns:?}");
    }
}

#[test]
fn reads_and_writes_are_told_apart() {
    let log = in_real_time("fcfs", 1, 1, false);
    let writes = log.iter().filter(|one| one.wanted.op == Op::Write).count();
    assert!(writes > 0 && writes < log.len(), "{writes}");
}
