//! Time to admit one more stream to many, by how many there are and how much their periods differ.
//!
//! `cargo run --release -p weir-scheduler --example bench_admission`
//!
//! Timed by hand: each line has the utilisation and the slack of the measured set, which criterion and divan cannot print.

use std::time::Instant;

use weir_scheduler::guarantee::{Mode, Slack, Task, TaskSet};

/// Streams of different periods from a second to `spread` seconds that use `percent` of the device.
fn streams(count: u64, spread: u64, percent: u64) -> Result<TaskSet, Box<dyn std::error::Error>> {
    let mut set = TaskSet::new(Mode::Exact);
    for number in 0..count {
        let period_ns = 1_000_000_000 + (spread - 1) * 1_000_000_000 * number / count + number;
        set.admit(Task::new(period_ns / count * percent / 100, period_ns)?)?;
    }
    Ok(set)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const REPETITIONS: usize = 201;
    println!("streams  periods  utilisation  median of {REPETITIONS} admissions  slack");
    for (count, spread, percent) in [
        (100, 10, 90),
        (1000, 1, 90),
        (1000, 10, 50),
        (1000, 10, 90),
        (1000, 10, 98),
        (1000, 100, 90),
        (5000, 10, 90),
    ] {
        let mut set = streams(count, spread, percent)?;
        let more = Task::new(1_000_000_000 / count, 1_700_000_011)?;
        let mut took_us: Vec<f64> = Vec::with_capacity(REPETITIONS);
        let mut slack = None;
        for _ in 0..REPETITIONS {
            let begun = Instant::now();
            let id = set.admit(more)?;
            took_us.push(begun.elapsed().as_secs_f64() * 1e6);
            slack = set.slack().map(Slack::slack_ns);
            set.remove(id);
        }
        took_us.sort_by(f64::total_cmp);
        let utilisation = set.utilisation().share();
        let slack_ms = slack.map_or(f64::NAN, |ns| ns as f64 / 1e6);
        println!(
            "{count:7}  1-{spread:<3} s  {utilisation:11.3}  {:26.1} us  {slack_ms:.1} ms",
            took_us[REPETITIONS / 2]
        );
    }
    Ok(())
}
