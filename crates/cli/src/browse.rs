//! `weir browse`: HTTP requests for the documents of a workload.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_host::clock::monotonic_ns;
use weir_records::TableWriter;
use weir_study::limits::MOST_CONNECTIONS;
use weir_web_client::{ClassReport, Folders, Options, Report, Server, Visit, Visitors, browse, status};

use crate::exit::bad_input;
use crate::interrupts::Watcher;
use crate::output::{self, Output};
use crate::project::Project;
use crate::with::WithArgs;

/// Time between the checks and the first request, in which the threads get ready.
const LEAD_NS: i64 = 50_000_000;
/// Threads that send at most: more than any host has processors.
const MOST_THREADS: u64 = 1024;

/// Request the documents of a workload from a web server and compare every byte.
///
/// The server at URL serves the tree of `weir documents WORKLOAD` with the same --seed, --class and --with:
///
///   weir documents zipf-class0 --out /srv/www
///   weir browse http://127.0.0.1:8080/ --workload zipf-class0 --clients 32 --out requests.parquet
///   weir browse http://127.0.0.1:8080/ --workload zipf-class0 --clients 500 --open --out requests.parquet
///
/// Closed loop: each client has a connection and requests the next document after an answer and a think time. A slow
/// server gets fewer requests. Open loop (--open): requests are sent at the arrival times of the workload, whether or
/// not earlier ones were answered.
///
/// Response times count from the instant at which a request was intended, not sent. Every request is a row of
/// requests.parquet: file is the document's number, size_bytes the body's length, status 0 or an errno: EBADMSG wrong
/// bytes, EIO closed before the answer was whole, EPROTO malformed, ETIMEDOUT no answer in time, ENOENT status 404,
/// EACCES 401 and 403, EAGAIN 429 and 503, EINVAL other 4xx, EREMOTEIO other 5xx, else the system's error of the
/// connection.
///
/// Exit codes: 0 done, 1 a request failed (with --keep-going: all of them), 2 bad input.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The folder of the documents, as http://HOST:PORT/PATH
    url: String,
    /// Name of a workload that reads whole files, such as zipf-class0
    #[arg(long, value_name = "NAME")]
    workload: String,
    #[command(flatten)]
    with: WithArgs,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: u32,
    /// Open loop, at the times of the workload's arrivals
    #[arg(long)]
    open: bool,
    /// Mean of the exponential think time of a closed loop, in ms
    #[arg(long, value_name = "MS", default_value_t = 0.0, conflicts_with = "open")]
    think_ms: f64,
    /// Maximum connections of an open loop; a request waits if all are in use
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "open")]
    connections: usize,
    /// Seconds in which requests are sent, the warm-up among them
    #[arg(long, alias = "duration", value_name = "SECONDS", default_value_t = 10.0)]
    duration_s: f64,
    /// Seconds at the beginning that are marked as warm-up and left out of the figures
    #[arg(long, alias = "warmup", value_name = "SECONDS", default_value_t = 0.0)]
    warmup_s: f64,
    /// Timeout of an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    timeout_s: f64,
    /// Seed of documents and requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name of the class, on which the documents depend; the workload's own if absent
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// The tree was laid out with --flat, or by `weir run`
    #[arg(long)]
    flat: bool,
    /// Number of sending threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// File for a row of every request
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Go on after a failed request
    #[arg(long)]
    keep_going: bool,
}

pub fn run(args: Args, output: Output) -> anyhow::Result<ExitCode> {
    let catalog = Project::find()?.workloads()?;
    let workload = args.with.load(&catalog, &args.workload)?;
    let stop = Arc::new(AtomicBool::new(false));
    let options = options(&args, &stop)?;
    let server = Server::new(&args.url).map_err(bad_input)?;
    let visitors = visitors(&args, catalog.folder_of(&args.workload).to_owned())?;
    let class = visitors.class(&workload, server).map_err(bad_input)?;
    let (name, url) = (Arc::clone(&class.name), Arc::clone(&class.server.url));
    let epoch_ns = monotonic_ns() + LEAD_NS;
    let options = Options { epoch_monotonic_ns: Some(epoch_ns), ..options };
    let mut writer = TableWriter::create(&args.out, epoch_ns).map_err(bad_input)?;
    let mut unwritable = None;
    let watcher = Watcher::start(Arc::clone(&stop))?;
    let report = browse(vec![class], &options, |outcome| {
        if outcome.error != 0 && !args.keep_going {
            stop.store(true, Ordering::Relaxed);
        }
        if unwritable.is_none()
            && let Err(error) = writer.write(&outcome.to_request(&name, &url))
        {
            unwritable = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    });
    watcher.end();
    let report = report.map_err(|error| match error {
        weir_web_client::Error::Option { .. } => bad_input(error),
        other => anyhow::Error::new(other),
    })?;
    if let Some(error) = unwritable {
        return Err(error.into());
    }
    writer.close()?;
    if output.is_json() {
        output::document(&report)?;
    } else {
        print(&report);
    }
    conclude(&args, &report)
}

/// Whether the work was done.
fn conclude(args: &Args, report: &Report) -> anyhow::Result<ExitCode> {
    let class = &report.classes[0];
    let first = class.first_failures.iter().next();
    if let Some((errno, what)) = first
        && (!args.keep_going || class.answered == 0 && class.failed > 0)
    {
        let hint = if args.keep_going {
            "no request was answered right"
        } else {
            "--keep-going counts failures and goes on"
        };
        anyhow::bail!("{what}: {}; {hint}", status::describe(*errno));
    }
    if report.stopped {
        anyhow::bail!("stopped after {:.1} of {} s", report.measured_s + args.warmup_s, args.duration_s);
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Args, stop: &Arc<AtomicBool>) -> anyhow::Result<Options> {
    let seconds = |option, value: f64| {
        Duration::try_from_secs_f64(value)
            .map_err(|_| bad_input(format!("{option} {value}: it must be a number of seconds, 0 or more")))
    };
    if args.clients == 0 {
        return Err(bad_input("--clients 0: at least one client"));
    }
    // In an open loop a client is a few hundred bytes, in a closed one a connection.
    let most_clients = if args.open { 10_000_000 } else { MOST_CONNECTIONS };
    for (option, found, most) in [
        ("clients", u64::from(args.clients), u64::from(most_clients)),
        ("connections", args.connections as u64, u64::from(MOST_CONNECTIONS)),
        ("threads", args.threads as u64, MOST_THREADS),
    ] {
        if found > most {
            return Err(bad_input(format!("--{option} {found}: at most {most} are possible; use fewer")));
        }
    }
    if !(0.0..=1e9).contains(&args.think_ms) {
        return Err(bad_input(format!("--think-ms {}: it must be from 0 to 1e9", args.think_ms)));
    }
    if args.connections == 0 {
        return Err(bad_input("--connections 0: at least one connection"));
    }
    Ok(Options {
        duration: seconds("--duration-s", args.duration_s)?,
        warmup: seconds("--warmup-s", args.warmup_s)?,
        timeout: seconds("--timeout-s", args.timeout_s)?,
        threads: args.threads,
        // As the replayer: requests of an open loop leave on time while other programs use the processor.
        fifo_priority: args.open.then_some(1),
        stop: Arc::clone(stop),
        ..Options::default()
    })
}

fn visitors(args: &Args, folder: PathBuf) -> anyhow::Result<Visitors> {
    let visit = if args.open {
        Visit::Open { clients: args.clients, connections: args.connections }
    } else {
        Visit::Closed { clients: args.clients, think_ns: args.think_ms * 1e6 }
    };
    Ok(Visitors {
        class: args.class.clone().unwrap_or_else(|| args.workload.clone()),
        seed: args.seed,
        folders: args.flat.then_some(Folders::One),
        visit,
        warmup_ns: (args.warmup_s * 1e9) as i64,
        duration_ns: (args.duration_s * 1e9) as i64,
        folder,
        threads: args.threads,
    })
}

fn print(report: &Report) {
    let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    let header =
        ["class", "requests", "failed", "req/s", "MB/s", "mean ms", "p50 ms", "p95 ms", "p99 ms", "max ms"];
    let mut rows = vec![header.map(str::to_owned)];
    for class in &report.classes {
        let response = &class.response;
        rows.push([
            class.class.clone(),
            class.requests.to_string(),
            class.failed.to_string(),
            format!("{:.1}", class.requests_per_s),
            format!("{:.2}", class.bytes_per_s / 1e6),
            format!("{:.3}", response.mean_ns / 1e6),
            ms(response.p50_ns),
            ms(response.p95_ns),
            ms(response.p99_ns),
            ms(response.max_ns),
        ]);
    }
    let widths: Vec<usize> =
        (0..header.len()).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (text, width))| {
            if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
        });
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
    report.classes.iter().for_each(print_notes);
    let (late, turn) = (&report.lateness, &report.turn);
    println!(
        "driver: lateness median {} ms, p99 {} ms, max {} ms; answers dealt with in p99 {} ms; {:.2} s of CPU in {:.1} s",
        ms(late.p50_ns),
        ms(late.p99_ns),
        ms(late.max_ns),
        ms(turn.p99_ns),
        report.cpu_seconds,
        report.measured_s
    );
    if report.writer_waits > 0 {
        println!("warning: sending waited {} times for rows to be written", report.writer_waits);
    }
}

fn print_notes(class: &ClassReport) {
    for (errno, count) in &class.errors {
        let first = class.first_failures.get(errno).map_or("", String::as_str);
        println!("{}: {count} failed: {}, first {first}", class.class, status::describe(*errno));
    }
    for (count, what) in [
        (class.resent, "requests sent again, since the server had closed the connection"),
        (class.held_back, "requests waited for a connection"),
        (class.surplus, "connections had more on them than was asked for"),
    ] {
        if count > 0 {
            println!("{}: {count} {what}", class.class);
        }
    }
}
