//! Cost of a policy in a server: `cargo run --release -p weir-blockserver --example bench_live [SECONDS [POLICY ...]]`.
//!
//! Random 4 KiB reads by fio of a device without service time, through loop and FUSE, in interleaved pairs: the server
//! without a policy, and with each of some policies. Goal for each policy: at least 0.85 of the rate without. Needs root,
//! fio and an idle machine. A pair that CPU steal disturbed is measured again. The server's processor time for a request
//! depends less on that and is measured over all pairs.

#[allow(dead_code, reason = "bench_serve uses the rest")]
#[path = "bench_serve/bench.rs"]
mod bench;

use std::process::ExitCode;

use bench::{Bench, Jobs, median};
use weir_host::steal::{DISTURBING_SHARE, Ticks};

const POLICIES: [&str; 5] = ["fcfs", "scan-edf", "sfq", "hds root_kb_s=100000000", "deltal"];
const PAIRS: usize = 3;
/// Pairs that are measured of a policy at most, where some were disturbed.
const TRIED: usize = 4 * PAIRS;
const WANTED: f64 = 0.85;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (seconds, policies) = match words[..] {
        ["serve", spec, folder] => return bench::serve_child(spec, folder),
        [] => (Ok(5), &POLICIES[..]),
        [seconds] => (seconds.parse(), &POLICIES[..]),
        [seconds, ref policies @ ..] => (seconds.parse(), policies),
    };
    let Ok(seconds) = seconds else {
        eprintln!("usage: bench_live [SECONDS [POLICY ...]]");
        return ExitCode::from(2);
    };
    match measure(seconds, policies) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(seconds: u32, policies: &[&str]) -> Result<(), String> {
    if let Some(reason) = weir_blockserver::missing_capability() {
        return Err(reason);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {}", load.trim());
    println!(
        "{:<28}{:>14}{:>12}{:>9}{:>14}{:>11}   wanted of the rates' ratio: {WANTED}",
        "random 4 KiB reads, QD32", "without (/s)", "with (/s)", "ratio", "without (us)", "with (us)"
    );
    for policy in policies {
        let mut pairs = Vec::new();
        let mut undisturbed = 0;
        while undisturbed < PAIRS && pairs.len() < TRIED {
            let pair = pair(policy, seconds, pairs.len() % 2 == 0)?;
            undisturbed += usize::from(pair.is_undisturbed);
            pairs.push(pair);
        }
        let [without_us, with_us] = [0, 1].map(|place| median_of(&pairs, |pair| pair.used_us[place]));
        let used = format!("{without_us:>14.2}{with_us:>11.2}");
        let (tried, note) = (pairs.len(), "of pairs that the hypervisor left alone");
        pairs.retain(|pair| pair.is_undisturbed);
        if pairs.is_empty() {
            println!("{policy:<28}{:>14}{:>12}{:>9}{used}   rates: 0 of {tried}, {note}", "-", "-", "-");
            continue;
        }
        let ratio = median_of(&pairs, |pair| pair.rates[1] / pair.rates[0]);
        let missed = if ratio < WANTED { "  MISSED" } else { "" };
        let [without, with] = [0, 1].map(|place| median_of(&pairs, |pair| pair.rates[place]));
        println!(
            "{policy:<28}{without:>14.0}{with:>12.0}{ratio:>9.3}{used}{missed}   rates: {undisturbed} of {tried}, {note}"
        );
    }
    Ok(())
}

/// Two servers, one after the other: without a policy, and with one.
struct Pair {
    /// Requests in a second.
    rates: [f64; 2],
    /// Processor time of the server for a request.
    used_us: [f64; 2],
    /// Whether CPU steal was low enough.
    is_undisturbed: bool,
}

fn median_of(pairs: &[Pair], value: impl Fn(&Pair) -> f64) -> f64 {
    median(&mut pairs.iter().map(value).collect::<Vec<_>>())
}

/// The order alternates: other load on the machine affects both alike.
fn pair(policy: &str, seconds: u32, plain_first: bool) -> Result<Pair, String> {
    let plain = "{name: bench-plain, profile: \"null\", size_mib: 1024}";
    let live = format!(
        "{{name: bench-live, profile: \"null\", size_mib: 1024, live: {{policy: {policy}, classes: [{{name: a, range_mib: [0, 512]}}]}}}}"
    );
    let before = Ticks::now();
    let order = if plain_first { [plain, &live] } else { [&live, plain] };
    let mut found = [serve(order[0], seconds)?, serve(order[1], seconds)?];
    let steal = before.zip(Ticks::now()).map_or(0.0, |(before, after)| after.since(before).of_wanted);
    if !plain_first {
        found.reverse();
    }
    Ok(Pair {
        rates: found.map(|(rate, _)| rate),
        used_us: found.map(|(_, used_us)| used_us),
        is_undisturbed: steal < DISTURBING_SHARE,
    })
}

/// The rate, and the server's processor time for a request in us.
fn serve(yaml: &str, seconds: u32) -> Result<(f64, f64), String> {
    let server = Bench::start(yaml)?;
    server.queue("none", 128)?;
    let before_us = server.used_us()?;
    let before = server.stats()?.read.requests;
    let rate = server.fio(seconds, &[Jobs::new(32)])?[0];
    let requests = server.stats()?.read.requests - before;
    Ok((rate, (server.used_us()? - before_us) / requests.max(1) as f64))
}
