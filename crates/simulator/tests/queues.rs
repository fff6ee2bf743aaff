//! The server against queueing theory: single queues whose mean waiting times are known exactly.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use weir_scheduler::{Class, Request, ServiceModel, Settings, TrafficKind};
use weir_simulator::server::{
    Ask, ClassLayout, ClosedLoop, Head, Limits, Outcome, Placement, Served, Server, ServerClass, Source,
    Volume,
};
use weir_simulator::{Completion, Device, IoRequest, Op, RequestError};

const MS: f64 = 1e6;

/// A device whose service times are drawn from a distribution, independent of the request.
struct Drawn {
    rng: ChaCha8Rng,
    draw_ns: fn(&mut ChaCha8Rng) -> f64,
    queue: VecDeque<u64>,
    serving: Option<Completion>,
}

impl Drawn {
    fn begin(&mut self, now_ns: u64) {
        if self.serving.is_none()
            && let Some(tag) = self.queue.pop_front()
        {
            let done_ns = now_ns + (self.draw_ns)(&mut self.rng).round() as u64;
            self.serving = Some(Completion { tag, start_ns: now_ns, done_ns });
        }
    }
}

impl Device for Drawn {
    fn arrive(&mut self, now_ns: u64, request: IoRequest) -> Result<(), RequestError> {
        self.queue.push_back(request.tag);
        self.begin(now_ns);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.serving.map(|serving| serving.done_ns)
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(done) = self.serving.take_if(|serving| serving.done_ns <= now_ns) {
            completions.push(done);
            self.begin(done.done_ns);
        }
    }

    fn outstanding(&self) -> usize {
        self.queue.len() + usize::from(self.serving.is_some())
    }

    fn capacity_bytes(&self) -> u64 {
        1 << 30
    }
}

impl ServiceModel for Drawn {
    fn cylinder(&self, _: u64) -> u32 {
        0
    }
    fn head_bytes(&self) -> u64 {
        0
    }
    fn positioning_ns(&self, _: u64, _: &Request) -> u64 {
        0
    }
    fn expected_ns(&self, _: u64, _: &Request) -> u64 {
        0
    }
    fn bound_ns(&self, _: u64, _: &Request) -> u64 {
        0
    }
    fn capacity_bytes(&self) -> u64 {
        1 << 30
    }
}

/// Exponential gaps.
struct Poisson {
    rng: ChaCha8Rng,
    mean_gap_ns: f64,
    next_ns: f64,
    end_ns: f64,
}

fn exponential(mean: f64, rng: &mut ChaCha8Rng) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}

fn ask() -> Ask {
    Ask {
        intended_ns: 0,
        deadline_ns: None,
        client: 0,
        file: 0,
        op: Op::Read,
        offset_bytes: 0,
        size_bytes: 512,
    }
}

impl Source for Poisson {
    fn next_ns(&self) -> Option<u64> {
        (self.next_ns < self.end_ns).then_some(self.next_ns as u64)
    }

    fn take(&mut self) -> Option<Ask> {
        let intended_ns = self.next_ns()?;
        self.next_ns += exponential(self.mean_gap_ns, &mut self.rng);
        Some(Ask { intended_ns, ..ask() })
    }
}

fn head(seed: u64, draw_ns: fn(&mut ChaCha8Rng) -> f64) -> Head<Drawn> {
    let classes = [Class { name: "one".into(), kind: TrafficKind::Interactive, weight: 1.0, contract: None }];
    let policy = weir_scheduler::build("fcfs", &classes, &Settings::default()).unwrap();
    let rng = ChaCha8Rng::seed_from_u64(seed);
    Head::new(Drawn { rng, draw_ns, queue: VecDeque::new(), serving: None }, policy, 1)
}

fn class(source: Box<dyn Source>, heads: u32) -> ServerClass {
    let volume = Volume { first_head: 0, heads };
    let layout = ClassLayout::new(
        volume,
        512,
        1 << 30,
        &[512 * u64::from(heads)],
        Placement::Packed { from_bytes: 0 },
    )
    .unwrap();
    ServerClass { source, layout, cache_bytes: 0, cache_hit_ns: 0 }
}

const UNLIMITED: Limits = Limits { end_ns: u64::MAX - 1, most_outstanding: 1_000_000 };

/// Mean response in ms of requests that came after the first tenth.
fn mean_response_ms(seed: u64, mean_gap_ms: f64, draw_ns: fn(&mut ChaCha8Rng) -> f64) -> (f64, Outcome) {
    let end_ns = 150_000.0 * mean_gap_ms * MS;
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 1000);
    let next_ns = exponential(mean_gap_ms * MS, &mut rng);
    let source = Poisson { rng, mean_gap_ns: mean_gap_ms * MS, next_ns, end_ns };
    let server = Server::new(vec![head(seed, draw_ns)], vec![class(Box::new(source), 1)]).unwrap();
    let (mut sum, mut count) = (0.0, 0.0);
    let outcome = server
        .run(UNLIMITED, &mut |served: &Served| {
            if served.ask.intended_ns as f64 > end_ns / 10.0 {
                sum += (served.completed_ns.unwrap() - served.ask.intended_ns) as f64;
                count += 1.0;
            }
        })
        .unwrap();
    (sum / count / MS, outcome)
}

/// The mean over 20 seeds and half of its 99.9 % interval by Student's t with 19 degrees of freedom.
fn interval(value: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (0..20).map(value).collect();
    let mean = values.iter().sum::<f64>() / 20.0;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 19.0;
    (mean, 3.883 * (variance / 20.0).sqrt())
}

#[test]
fn exponential_service_agrees_with_m_m_1() {
    // Utilisation 0.8: mean response 10 / (1 - 0.8).
    let (mean, half) = interval(|seed| mean_response_ms(seed, 12.5, |rng| exponential(10.0 * MS, rng)).0);
    assert!((mean - 50.0).abs() < half && half < 3.0, "{mean} +- {half}");
}

#[test]
fn uniform_service_agrees_with_pollaczek_and_khinchine() {
    // Uniform from 5 to 15 ms: mean 10, second moment 100 + 100 / 12; a request every 14 ms.
    let draw = |rng: &mut ChaCha8Rng| (5.0 + 10.0 * rng.random::<f64>()) * MS;
    let (rate, mean_ms, second) = (1.0 / 14.0, 10.0, 100.0 + 100.0 / 12.0);
    let theory = mean_ms + rate * second / (2.0 * (1.0 - rate * mean_ms));
    let (mean, half) = interval(|seed| mean_response_ms(seed, 14.0, draw).0);
    assert!((mean - theory).abs() < half && half < 0.5, "{mean} +- {half}, theory {theory}");
}

#[test]
fn utilisation_is_the_rate_times_the_service_time() {
    let outcome = mean_response_ms(3, 20.0, |_| 10.0 * MS).1;
    let utilisation = outcome.heads[0].busy_ns as f64 / outcome.now_ns as f64;
    assert!((utilisation - 0.5).abs() < 0.01, "{utilisation}");
    assert_eq!((outcome.asked, outcome.saturation), (outcome.answered, None));
}

#[test]
fn clients_that_wait_for_answers_agree_with_the_machine_repairman() {
    // Four clients without pause, one device: always busy, each answer takes four services (10 ms constant).
    let source = ClosedLoop::new(4, 1, 0, 1_000_000_000, |_| ask());
    let server = Server::new(vec![head(1, |_| 10.0 * MS)], vec![class(Box::new(source), 1)]).unwrap();
    let mut responses = Vec::new();
    let outcome = server
        .run(UNLIMITED, &mut |served| responses.push(served.completed_ns.unwrap() - served.ask.intended_ns))
        .unwrap();
    assert_eq!(&responses[..4], [10_000_000, 20_000_000, 30_000_000, 40_000_000]);
    assert!(responses[4..].iter().all(|response| *response == 40_000_000));
    assert_eq!(outcome.heads[0].busy_ns, outcome.now_ns);
    // 100 answers in the second; the last four clients send no more.
    assert_eq!(outcome.answered, 103);
}

#[test]
fn a_request_over_several_heads_is_done_when_the_last_piece_is() {
    let source = ClosedLoop::new(1, 1, 0, 1, |_| Ask { size_bytes: 1024, ..ask() });
    let heads = vec![head(1, |_| 10.0 * MS), head(2, |_| 25.0 * MS)];
    let server = Server::new(heads, vec![class(Box::new(source), 2)]).unwrap();
    let mut seen = Vec::new();
    server.run(UNLIMITED, &mut |served| seen.push((served.served_ns, served.completed_ns))).unwrap();
    assert_eq!(seen, [(Some(0), Some(25_000_000))]);
}

#[test]
fn each_piece_is_a_disk_access_with_its_own_queueing_and_service() {
    // Both clients ask both heads at once: the second waits for the first on each.
    let source = ClosedLoop::new(2, 1, 0, 1, |_| Ask { size_bytes: 1024, ..ask() });
    let heads = vec![head(1, |_| 10.0 * MS), head(2, |_| 25.0 * MS)];
    let server = Server::new(heads, vec![class(Box::new(source), 2)]).unwrap();
    let mut seen = Vec::new();
    server
        .run(UNLIMITED, &mut |served| seen.push((served.accesses, served.access_queueing_ns, served.busy_ns)))
        .unwrap();
    assert_eq!(seen, [(2, 0, 35_000_000), (2, 10_000_000 + 25_000_000, 35_000_000)]);
}

#[test]
fn a_hit_in_the_cache_is_no_disk_access() {
    // Of three reads of the same file, one after another, the first is from the disk.
    let source = ClosedLoop::new(1, 1, 0, 25_000_000, |_| ask());
    let cached = ServerClass { cache_bytes: 1 << 20, cache_hit_ns: 10_000_000, ..class(Box::new(source), 1) };
    let server = Server::new(vec![head(1, |_| 10.0 * MS)], vec![cached]).unwrap();
    let mut seen = Vec::new();
    server.run(UNLIMITED, &mut |served| seen.push((served.accesses, served.busy_ns))).unwrap();
    assert_eq!(seen, [(1, 10_000_000), (0, 0), (0, 0)]);
}

#[test]
fn accesses_of_an_unanswered_request_are_those_that_completed() {
    let source = ClosedLoop::new(1, 1, 0, 1, |_| Ask { size_bytes: 1024, ..ask() });
    let heads = vec![head(1, |_| 10.0 * MS), head(2, |_| 25.0 * MS)];
    let server = Server::new(heads, vec![class(Box::new(source), 2)]).unwrap();
    let mut seen = Vec::new();
    let limits = Limits { end_ns: 20_000_000, ..UNLIMITED };
    server
        .run(limits, &mut |served| seen.push((served.completed_ns, served.accesses, served.busy_ns)))
        .unwrap();
    assert_eq!(seen, [(None, 1, 10_000_000)]);
}

#[test]
fn an_overload_is_said_with_the_time_it_began() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let next_ns = exponential(5.0 * MS, &mut rng);
    let source = Poisson { rng, mean_gap_ns: 5.0 * MS, next_ns, end_ns: 1e18 };
    let server = Server::new(vec![head(1, |_| 10.0 * MS)], vec![class(Box::new(source), 1)]).unwrap();
    let mut unanswered = 0;
    let limits = Limits { end_ns: u64::MAX - 1, most_outstanding: 10_000 };
    let outcome =
        server.run(limits, &mut |served| unanswered += u64::from(served.completed_ns.is_none())).unwrap();
    let saturation = outcome.saturation.unwrap();
    // Ten requests a second too many from the beginning on: 10,000 of them after 100 s.
    assert_eq!(saturation.head, 0);
    assert!(saturation.since_ns < 1_000_000_000, "{saturation:?}");
    assert!((80e9..120e9).contains(&(saturation.at_ns as f64)), "{saturation:?}");
    assert_eq!(unanswered, 10_001);
    assert_eq!(outcome.asked, outcome.answered + unanswered);
}

#[test]
fn a_queue_that_is_left_when_all_have_asked_is_an_overload() {
    let saturation = |gap_ms: f64, asks_until_ns: f64, end_ns: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let next_ns = exponential(gap_ms * MS, &mut rng);
        let source = Poisson { rng, mean_gap_ns: gap_ms * MS, next_ns, end_ns: asks_until_ns };
        let server = Server::new(vec![head(1, |_| 10.0 * MS)], vec![class(Box::new(source), 1)]).unwrap();
        let limits = Limits { end_ns, most_outstanding: usize::MAX };
        server.run(limits, &mut |_| {}).unwrap().saturation
    };
    // Twice as many as can be served come for 10 s: half of the rest is there 5 s later, and none 30 s later.
    let left = saturation(5.0, 10e9, 15_000_000_000).unwrap();
    assert_eq!((left.head, left.at_ns), (0, 15_000_000_000));
    assert!(left.since_ns < 1_000_000_000, "{left:?}");
    assert_eq!(saturation(5.0, 10e9, 40_000_000_000), None);
    // A client still sends: waiting requests prove nothing.
    assert_eq!(saturation(11.0, 1e18, 15_000_000_000), None);
}

#[test]
fn the_same_sources_give_the_same_outcome() {
    let run = || mean_response_ms(5, 12.5, |rng| exponential(10.0 * MS, rng));
    assert_eq!(run(), run());
}

#[test]
fn what_is_not_there_is_refused() {
    let source = ClosedLoop::new(1, 1, 0, 1, |_| Ask { offset_bytes: 512, ..ask() });
    let server = Server::new(vec![head(1, |_| MS)], vec![class(Box::new(source), 1)]).unwrap();
    let error = server.run(UNLIMITED, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("512 bytes from 512 of file 0: the file has 512 bytes"), "{error}");
    let source = ClosedLoop::new(1, 1, 0, 1, |_| ask());
    assert!(Server::new(vec![head(1, |_| MS)], vec![class(Box::new(source), 2)]).is_err());
}
