//! How many disk requests a second of one core the simulator serves.
//!
//! `cargo run --release -p weir-simulator --example bench_simulator [PROFILE [POLICY [REQUESTS]]]`
//!
//! Poisson reads of 4 KiB to random places of one disk at 70 % utilisation, through the whole server: source, layout,
//! calendar, policy, disk model, records. The rate is found first, from a short run that is never idle.

use std::time::Instant;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;
use weir_scheduler::{Class, Settings, TrafficKind};
use weir_simulator::machine::Model;
use weir_simulator::server::{
    Ask, ClassLayout, ClosedLoop, Head, Limits, Placement, Server, ServerClass, Source, Volume,
};
use weir_simulator::{Op, profile};

const DISK_BYTES: u64 = 2 << 30;
const READ_BYTES: u64 = 4096;
const UTILISATION: f64 = 0.7;
const ROUNDS: usize = 5;

/// Random reads at exponential gaps.
struct Poisson {
    rng: Xoshiro256PlusPlus,
    mean_gap_ns: f64,
    next_ns: f64,
    /// Of `next_ns` the whole part.
    due_ns: u64,
    left: u64,
}

impl Source for Poisson {
    fn next_ns(&self) -> Option<u64> {
        (self.left > 0).then_some(self.due_ns)
    }

    fn take(&mut self) -> Option<Ask> {
        let intended_ns = self.next_ns()?;
        self.left -= 1;
        let gap: f64 = self.rng.sample(Exp1);
        self.next_ns += self.mean_gap_ns * gap;
        self.due_ns = self.next_ns as u64;
        Some(read(intended_ns, &mut self.rng))
    }
}

fn read(intended_ns: u64, rng: &mut Xoshiro256PlusPlus) -> Ask {
    let offset_bytes = rng.random_range(0..DISK_BYTES / READ_BYTES) * READ_BYTES;
    Ask {
        intended_ns,
        deadline_ns: None,
        client: 0,
        file: 0,
        op: Op::Read,
        offset_bytes,
        size_bytes: READ_BYTES,
    }
}

fn simulate(profile: &str, policy: &str, source: Box<dyn Source>) -> Result<Run, Box<dyn std::error::Error>> {
    let classes =
        [Class { name: "reads".into(), kind: TrafficKind::Interactive, weight: 1.0, contract: None }];
    let model = Model::new(&profile::load(profile)?, DISK_BYTES, 1)?;
    let head = Head::new(model, weir_scheduler::build(policy, &classes, &Settings::default())?, 1);
    let volume = Volume { first_head: 0, heads: 1 };
    let layout =
        ClassLayout::new(volume, 65536, DISK_BYTES, &[DISK_BYTES], Placement::Packed { from_bytes: 0 })?;
    let server =
        Server::new(vec![head], vec![ServerClass { source, layout, cache_bytes: 0, cache_hit_ns: 0 }])?;
    let limits = Limits { end_ns: u64::MAX - 1, most_outstanding: 1_000_000 };
    let (mut sum_ns, mut count) = (0u64, 0u64);
    let began = Instant::now();
    let outcome = server.simulate(limits, &mut |served| {
        if let Some(done_ns) = served.completed_ns {
            sum_ns += done_ns - served.ask.intended_ns;
            count += 1;
        }
    })?;
    let elapsed_s = began.elapsed().as_secs_f64();
    assert_eq!(count, outcome.asked, "every request is answered");
    let utilisation = outcome.heads[0].busy_ns as f64 / outcome.now_ns as f64;
    let service_ns = outcome.heads[0].busy_ns as f64 / count as f64;
    Ok(Run { elapsed_s, utilisation, service_ns, mean_response_ms: sum_ns as f64 / count as f64 / 1e6 })
}

/// Outcome of a run.
struct Run {
    elapsed_s: f64,
    utilisation: f64,
    service_ns: f64,
    mean_response_ms: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let profile = arguments.next().unwrap_or_else(|| "seagate-elite3".to_owned());
    let policy = arguments.next().unwrap_or_else(|| "scan".to_owned());
    let requests: u64 = arguments.next().map_or(Ok(2_000_000), |text| text.parse())?;

    let poisson = |mean_gap_ns: f64, left| {
        Box::new(Poisson {
            rng: Xoshiro256PlusPlus::seed_from_u64(7),
            mean_gap_ns,
            next_ns: 0.0,
            due_ns: 0,
            left,
        })
    };
    // At this utilisation a sweep is longer than one request: the service time depends on the rate a little.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let closed = ClosedLoop::new(3, 1, 0, 200_000_000_000, move |_| read(0, &mut rng));
    let always_busy = simulate(&profile, &policy, Box::new(closed))?;
    let mut gap_ns = always_busy.service_ns / UTILISATION;
    for _ in 0..3 {
        gap_ns *= simulate(&profile, &policy, poisson(gap_ns, 50_000))?.utilisation / UTILISATION;
    }
    let runs = (0..ROUNDS)
        .map(|_| simulate(&profile, &policy, poisson(gap_ns, requests)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rates: Vec<f64> = runs.iter().map(|run| requests as f64 / run.elapsed_s).collect();
    rates.sort_by(f64::total_cmp);
    println!(
        "{{\"profile\": \"{profile}\", \"policy\": \"{policy}\", \"gap_ms\": {:.6}, \"utilisation\": {:.3}, \
         \"mean_response_ms\": {:.3}, \"requests_per_s\": {:.0}, \"least\": {:.0}, \"most\": {:.0}}}",
        gap_ns / 1e6,
        runs[0].utilisation,
        runs[0].mean_response_ms,
        rates[ROUNDS / 2],
        rates[0],
        rates[ROUNDS - 1]
    );
    Ok(())
}
