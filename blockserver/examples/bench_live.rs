//! What a policy costs a server: `cargo run --release -p weir-blockserver --example bench_live [SECONDS]`.
//!
//! Random 4 KiB reads by fio of a device without service time, through loop and FUSE, in interleaved pairs: the server as it is
//! without a policy, and with each of some policies. Wanted of each policy: at least 0.85 of the rate without. Needs root and fio, and a
//! machine that does nothing else.

#[allow(dead_code, reason = "bench_serve uses the rest")]
#[path = "bench_serve/bench.rs"]
mod bench;

use std::process::ExitCode;

use bench::{Bench, Jobs, median};

const POLICIES: [&str; 5] = ["fcfs", "scan-edf", "sfq", "hds root_kb_s=100000000", "deltal"];
const PAIRS: usize = 3;
const WANTED: f64 = 0.85;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let seconds = match words[..] {
        ["serve", spec, folder] => return bench::serve_child(spec, folder),
        [] => Ok(5),
        [seconds] => seconds.parse(),
        _ => "".parse(),
    };
    let Ok(seconds) = seconds else {
        eprintln!("usage: bench_live [SECONDS]");
        return ExitCode::from(2);
    };
    match measure(seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(seconds: u32) -> Result<(), String> {
    if let Some(reason) = weir_blockserver::missing_capability() {
        return Err(reason);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {}", load.trim());
    println!(
        "{:<28}{:>12}{:>12}{:>9}   wanted: {WANTED}",
        "random 4 KiB reads, QD32", "without", "with", "ratio"
    );
    for policy in POLICIES {
        let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            let plain = "{name: bench-plain, profile: \"null\", size_mib: 1024}".to_owned();
            let live = format!(
                "{{name: bench-live, profile: \"null\", size_mib: 1024, live: {{policy: {policy}, classes: [{{name: a, range_mib: [0, 512]}}]}}}}"
            );
            // The order alternates: what the machine does meanwhile falls on both alike.
            let order = if pair % 2 == 0 { [&plain, &live] } else { [&live, &plain] };
            let rates = [rate(order[0], seconds)?, rate(order[1], seconds)?];
            let (plain, live) = if pair % 2 == 0 { (rates[0], rates[1]) } else { (rates[1], rates[0]) };
            without.push(plain);
            with.push(live);
            ratios.push(live / plain);
        }
        let ratio = median(&mut ratios);
        let missed = if ratio < WANTED { "  MISSED" } else { "" };
        println!("{policy:<28}{:>12.0}{:>12.0}{ratio:>9.3}{missed}", median(&mut without), median(&mut with));
    }
    Ok(())
}

fn rate(yaml: &str, seconds: u32) -> Result<f64, String> {
    let server = Bench::start(yaml)?;
    server.queue("none", 128)?;
    Ok(server.fio(seconds, &[Jobs::new(32)])?[0])
}
