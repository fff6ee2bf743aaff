//! Requests per second of 4 KB documents, compared with wrk: interleaved pairs, medians, and their ratio.
//!
//! nginx serves from tmpfs; both use one thread and the same number of connections. wrk requests one document and neither
//! compares nor records; `browse` requests 1000, compares every byte and writes a row for each request. The arguments are
//! `--pairs 5`, `--seconds 5`, `--clients 64`, `--workers 2` (of nginx) and `--threads 1`.

#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../tests/browsers/common/nginx.rs"]
mod nginx;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use weir_host::clock::monotonic_ns;
use weir_records::TableWriter;
use weir_web_client::{Folders, Options, Report, Server, Visit, Visitors, browse, tree};
use weir_workload::{Access, Arrivals, Distribution, Files, Popularity, Sizes, Workload};

/// The goals: either is enough.
const GOAL_PER_S: f64 = 30_000.0;
const GOAL_RATIO: f64 = 0.8;

struct Settings {
    pairs: u64,
    seconds: u64,
    clients: u64,
    workers: u64,
    threads: u64,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let settings = settings()?;
    let folder = tempfile::Builder::new().prefix("bench-web").tempdir_in("/dev/shm")?;
    let root = folder.path().join("www");
    let (workload, visitors) = (workload(), visitors(&settings));
    tree::lay_out(&visitors.documents(&workload)?, &root, |_| {})?;
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let Some(nginx) = nginx::Nginx::start(&root, settings.workers as usize, false)? else {
        return Ok(ExitCode::FAILURE);
    };
    let url = format!("http://127.0.0.1:{}", nginx.port);
    println!(
        "nginx with {} workers, {} connections, {} thread(s), {} pairs of {} s",
        settings.workers, settings.clients, settings.threads, settings.pairs, settings.seconds
    );
    let (mut ours, mut wrks) = (Vec::new(), Vec::new());
    for pair in 0..settings.pairs {
        // The order of the two alternates from pair to pair.
        for turn in 0..2 {
            if (pair + turn) % 2 == 0 {
                let report = browse_once(
                    &settings,
                    &workload,
                    &visitors,
                    &url,
                    &folder.path().join("requests.parquet"),
                )?;
                let class = &report.classes[0];
                println!(
                    "  browse  {:>8.0} /s   p50 {:.3} ms  p99 {:.3} ms  {} failed, {:.2} s of CPU, turn p99 {:.3} ms",
                    class.requests_per_s,
                    class.response.p50_ns as f64 / 1e6,
                    class.response.p99_ns as f64 / 1e6,
                    class.failed,
                    report.cpu_seconds,
                    report.turn.p99_ns as f64 / 1e6
                );
                ours.push(class.requests_per_s);
            } else if let Some(rate) = wrk(&settings, &url)? {
                println!("  wrk     {rate:>8.0} /s");
                wrks.push(rate);
            }
        }
    }
    let rate = median(&mut ours);
    if wrks.is_empty() {
        println!(
            "browse: median {rate:.0} /s; wrk is not installed (apt-get install --no-install-recommends wrk)"
        );
        return Ok(if rate >= GOAL_PER_S { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let ratio = rate / median(&mut wrks);
    let met = rate >= GOAL_PER_S || ratio >= GOAL_RATIO;
    println!(
        "browse: median {rate:.0} /s, wrk {:.0} /s, ratio {ratio:.3}; goal {GOAL_PER_S} /s or ratio {GOAL_RATIO}: {}",
        median(&mut wrks),
        if met { "met" } else { "missed" }
    );
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings() -> Result<Settings, Box<dyn Error>> {
    let mut settings = Settings { pairs: 5, seconds: 5, clients: 64, workers: 2, threads: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name}: a number is missing"))?;
        let value = value.parse().map_err(|_| format!("{name} {value}: write a whole number"))?;
        match name.as_str() {
            "--pairs" => settings.pairs = value,
            "--seconds" => settings.seconds = value,
            "--clients" => settings.clients = value,
            "--workers" => settings.workers = value,
            "--threads" => settings.threads = value,
            _ => return Err(format!("{name}: one of --pairs --seconds --clients --workers --threads").into()),
        }
    }
    Ok(settings)
}

fn workload() -> Workload {
    Workload {
        name: "bench".to_owned(),
        description: "documents of 4 KB".to_owned(),
        source: "this benchmark".to_owned(),
        arrivals: Arrivals::Closed { depth: 1, think_us: 0, start_s: 0.0, rate_per_s: None },
        time_scale: 1.0,
        files: Files {
            count: 1000,
            size: Distribution::Fixed { bytes: 4096 },
            stratified: false,
            popularity: Popularity::Zipf { alpha: 0.9 },
        },
        sizes: Sizes::WholeFile,
        access: Access::Random,
        read_share: 1.0,
        deadline: None,
        block_bytes: None,
        alignment_bytes: 4096,
        targets: None,
    }
}

fn visitors(settings: &Settings) -> Visitors {
    Visitors {
        class: "bench".to_owned(),
        seed: 1,
        folders: Some(Folders::One),
        visit: Visit::Closed { clients: settings.clients as u32, think_ns: 0.0 },
        warmup_ns: 0,
        duration_ns: 0,
        folder: PathBuf::from("/"),
        threads: settings.threads as usize,
    }
}

fn browse_once(
    settings: &Settings,
    workload: &Workload,
    visitors: &Visitors,
    url: &str,
    out: &Path,
) -> Result<Report, Box<dyn Error>> {
    let class = visitors.class(workload, Server::new(url)?)?;
    let (name, server) = (class.name.clone(), class.server.url.clone());
    let epoch_ns = monotonic_ns() + 20_000_000;
    let options = Options {
        epoch_monotonic_ns: Some(epoch_ns),
        duration: Duration::from_secs(settings.seconds),
        threads: settings.threads as usize,
        ..Options::default()
    };
    let mut writer = TableWriter::create(out, epoch_ns)?;
    let mut failed = None;
    let report = browse(vec![class], &options, |outcome| {
        if let Err(error) = writer.write(&outcome.to_request(&name, &server)) {
            failed.get_or_insert(error);
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    writer.close()?;
    Ok(report)
}

/// wrk's requests per second; `None` where it is not installed.
fn wrk(settings: &Settings, url: &str) -> Result<Option<f64>, Box<dyn Error>> {
    let mut command = Command::new("wrk");
    command.args(["-t", &settings.threads.to_string(), "-c", &settings.clients.to_string()]);
    command.args(["-d", &format!("{}s", settings.seconds), &format!("{url}/000000.dat")]);
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        output => output?,
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    let rate = rate.ok_or_else(|| format!("wrk says no rate: {text}"))?;
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("wrk had failures: {text}").into());
    }
    Ok(Some(rate.trim().parse()?))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}
