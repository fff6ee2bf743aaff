//! Time of a decision: adding and choosing a request, by queue length.
//!
//! `cargo run --release -p weir-scheduler --example bench_policies [POLICY...]` prints, for each policy, ns for one
//! `arrive`, one `next` and one `complete` while 4, 32 and 1,000 requests wait: the median of eleven passes. Requests are
//! of four classes of eight streams, a third of them writes, with pseudo-random offsets and deadlines.
//!
//! Timed by hand: criterion and divan print a report for each of 70 cases, not one table of schedulers by queue length.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use weir_scheduler::{
    Class, Decision, LinearModel, Op, POLICIES, Policy, Request, Settings, TrafficKind, build,
};

const WAITING: [u64; 3] = [4, 32, 1000];
const PASSES: usize = 11;
/// Requests of a pass, but no longer than the time.
const REQUESTS: u64 = 20_000;
const PASS_NS: u128 = 50_000_000;
const CAPACITY_BYTES: u64 = 100_000_000_000;
const SERVICE_NS: u64 = 1_000_000;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted.iter().find(|name| POLICIES.iter().all(|entry| entry.name != *name)) {
        eprintln!("there is no policy `{unknown}`");
        return ExitCode::from(2);
    }
    println!("ns per request (arrive + next + complete), median of {PASSES} passes");
    println!("{:<20}{:>12}{:>12}{:>12}", "waiting", WAITING[0], WAITING[1], WAITING[2]);
    for entry in
        POLICIES.iter().filter(|entry| wanted.is_empty() || wanted.iter().any(|name| name == entry.name))
    {
        print!("{:<20}", entry.name);
        for waiting in WAITING {
            match build(entry.name, &classes(), &Settings::default()) {
                Ok(policy) => print!("{:>12.0}", ns_per_request(policy, waiting)),
                Err(error) => print!("  {error}"),
            }
        }
        println!();
    }
    ExitCode::SUCCESS
}

fn classes() -> Vec<Class> {
    let services =
        [TrafficKind::RealTime, TrafficKind::Interactive, TrafficKind::BestEffort, TrafficKind::BestEffort];
    let class = |(weight, service)| Class {
        name: format!("class {weight}"),
        kind: service,
        weight: f64::from(weight),
        contract: None,
    };
    (1..).zip(services).map(class).collect()
}

/// A policy with a device that serves one request at a time, and clients in a closed loop.
struct Bench {
    policy: Box<dyn Policy>,
    model: LinearModel,
    now_ns: u64,
    requests: u64,
}

impl Bench {
    fn arrive(&mut self) {
        let random = scrambled(self.requests);
        let request = Request {
            tag: self.requests,
            class: (random % 4) as u16,
            stream: (random >> 8) as u32 % 8,
            op: if random.is_multiple_of(3) { Op::Write } else { Op::Read },
            offset_bytes: scrambled(random) % (CAPACITY_BYTES / 4096) * 4096,
            size_bytes: 4096,
            arrived_ns: self.now_ns,
            deadline_ns: Some(self.now_ns + random % 500_000_000),
        };
        self.requests += 1;
        self.policy.arrive(self.now_ns, request, &self.model);
    }

    /// Serves one request, after the policy's wait.
    fn serve(&mut self) {
        loop {
            match black_box(self.policy.next(self.now_ns, &self.model)) {
                Decision::Serve(request) => {
                    let begun_ns = self.now_ns;
                    self.now_ns += SERVICE_NS;
                    self.model.serve(&request);
                    self.policy.complete(self.now_ns, &request, begun_ns);
                    return;
                }
                Decision::WaitUntil(until_ns) if until_ns < u64::MAX => self.now_ns = until_ns,
                Decision::WaitUntil(_) | Decision::Idle => return,
            }
        }
    }
}

fn ns_per_request(policy: Box<dyn Policy>, waiting: u64) -> f64 {
    let model = LinearModel {
        capacity_bytes: CAPACITY_BYTES,
        cylinder_bytes: 1_000_000,
        seek_ns: 1_000_000,
        seek_ns_per_cylinder: 100,
        revolution_ns: 8_333_333,
        transfer_ns_per_byte: 10,
        head_bytes: 0,
    };
    let mut bench = Bench { policy, model, now_ns: 0, requests: 0 };
    for _ in 0..waiting {
        bench.arrive();
    }
    let mut passes: Vec<f64> = (0..PASSES)
        .map(|_| {
            let begun = Instant::now();
            let first = bench.requests;
            while bench.requests - first < REQUESTS && begun.elapsed().as_nanos() < PASS_NS {
                // The clock is read once for many requests.
                for _ in 0..100 {
                    bench.arrive();
                    bench.serve();
                }
            }
            begun.elapsed().as_nanos() as f64 / (bench.requests - first) as f64
        })
        .collect();
    passes.sort_by(f64::total_cmp);
    passes[PASSES / 2]
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): numbers that look random.
fn scrambled(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
