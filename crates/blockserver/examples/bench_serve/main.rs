//! Measures the block server on this machine: `cargo run --release -p weir-blockserver --example bench_serve`.
//!
//! Prints each figure and its goal on a quiet machine. With `--check` it exits with 1 if one is missed. Needs root and
//! fio.

#[allow(dead_code, reason = "bench_live uses the rest")]
mod bench;

use std::process::ExitCode;

use bench::{Bench, Jobs, coefficient_of_variation, median};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", spec, folder] => bench::serve_child(spec, folder),
        [] | ["--check"] => match measure() {
            Ok(missed) if missed > 0 && !arguments.is_empty() => ExitCode::FAILURE,
            Ok(_) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: bench_serve [--check]");
            ExitCode::from(2)
        }
    }
}

/// Runs everything and returns how many figures were missed.
fn measure() -> Result<u32, String> {
    if let Some(reason) = weir_blockserver::missing_capability() {
        return Err(reason);
    }
    let mut report = Report::default();
    overhead(&mut report)?;
    exactness(&mut report)?;
    schedulers(&mut report)?;
    priorities(&mut report)?;
    println!("{} figures missed", report.missed);
    Ok(report.missed)
}

#[derive(Default)]
struct Report {
    missed: u32,
}

impl Report {
    fn line(&mut self, what: &str, value: String, reached: Option<(bool, &str)>) {
        let note = reached.map_or(String::new(), |(reached, target)| {
            self.missed += u32::from(!reached);
            format!("   to reach: {target}{}", if reached { "" } else { "  MISSED" })
        });
        println!("{what:<52} {value:>22}{note}");
    }
}

/// Cost of the path itself: a device without service time.
fn overhead(report: &mut Report) -> Result<(), String> {
    let server = Bench::start("{name: bench-null, profile: \"null\", size_mib: 1024}")?;
    server.queue("none", 128)?;
    for depth in [1, 32] {
        let mut rates = Vec::new();
        for _ in 0..3 {
            rates.push(server.fio(5, &[Jobs::new(depth)])?[0]);
        }
        let rate = median(&mut rates);
        let target = (depth == 32).then_some((rate >= 60_000.0, "60,000"));
        report.line(&format!("null, random 4 KiB reads, QD{depth}"), format!("{rate:.0} IOPS"), target);
    }
    Ok(())
}

/// How exactly the model's times are kept, and how alike repeated runs are.
fn exactness(report: &mut Report) -> Result<(), String> {
    let server = Bench::start("{name: bench-hdd, profile: hdd-7200, size_mib: 4096}")?;
    server.queue("none", 128)?;
    let (mut rates, mut medians, mut p99s) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        server.reset()?;
        rates.push(server.fio(8, &[Jobs::new(1)])?[0]);
        let error = server.stats()?.service_error;
        medians.push(error.median_ns as f64 / 1e3);
        p99s.push(error.p99_ns as f64 / 1e3);
    }
    let cv = coefficient_of_variation(&rates) * 100.0;
    let (rate, error, p99) = (median(&mut rates), median(&mut medians), median(&mut p99s));
    report.line("hdd-7200, random 4 KiB reads, QD1", format!("{rate:.1} IOPS"), None);
    report.line(
        "  service-time error, median (of 5 runs)",
        format!("{error:.1} us"),
        Some((error < 60.0, "< 60 us")),
    );
    report.line(
        "  service-time error, p99 (median of 5 runs)",
        format!("{p99:.1} us"),
        Some((p99 < 1000.0, "< 1 ms")),
    );
    let value = format!("{cv:.2} %");
    report.line("  coefficient of variation of 5 runs of 8 s", value, Some((cv < 1.0, "< 1 %")));
    Ok(())
}

/// With a short device queue the kernel's scheduler decides.
fn schedulers(report: &mut Report) -> Result<(), String> {
    let server = Bench::start("{name: bench-sched, profile: hdd-7200, size_mib: 4096}")?;
    let mut none = 0.0;
    for scheduler in ["none", "kyber", "mq-deadline", "bfq"] {
        server.queue(scheduler, 4)?;
        server.reset()?;
        let rate = server.fio(8, &[Jobs::new(32)])?[0];
        if scheduler == "none" {
            none = rate;
        }
        let sorts = matches!(scheduler, "mq-deadline" | "bfq");
        let target = sorts.then_some((rate > 1.3 * none, "1.3 x none"));
        report.line(&format!("hdd-7200, QD32, depth 4, {scheduler}"), format!("{rate:.1} IOPS"), target);
    }
    Ok(())
}

/// Two jobs with different I/O priorities. Classes: 1 real time, 2 best effort, 3 idle.
fn priorities(report: &mut Report) -> Result<(), String> {
    let server = Bench::start("{name: bench-prio, profile: hdd-7200, size_mib: 4096}")?;
    let pairs = [
        ("RT against BE7", (1, 0), (2, 7)),
        ("BE0 against BE7", (2, 0), (2, 7)),
        ("BE0 against idle", (2, 0), (3, 7)),
    ];
    for scheduler in ["none", "mq-deadline", "bfq"] {
        server.queue(scheduler, 4)?;
        for (name, high, low) in pairs {
            server.reset()?;
            let rates = server.fio(8, &[Jobs::new(8).priority(high), Jobs::new(8).priority(low)])?;
            let target = match (scheduler, name) {
                ("mq-deadline" | "bfq", "RT against BE7") => Some((rates[0] > 10.0 * rates[1], "10 : 1")),
                ("bfq", "BE0 against BE7") => Some((rates[0] > 3.0 * rates[1], "3 : 1")),
                _ => None,
            };
            let value = format!("{:.1} : {:.1} IOPS", rates[0], rates[1]);
            report.line(&format!("hdd-7200, 2 x QD8, depth 4, {scheduler}, {name}"), value, target);
        }
    }
    Ok(())
}
