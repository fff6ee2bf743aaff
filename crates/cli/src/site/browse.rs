//! `weir site browse`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use weir_records::{Page, Request, TableWriter};
use weir_study::limits::MOST_CONNECTIONS;
use weir_web_client::{Options, Report, Server, browse};
use weir_web_site::browse::{Browsers, OrderLog, PageReport, Pages, read_status};
use weir_workload::sessions::{AnyWorkload, SessionModel, SessionWorkload};

use super::classify;
use crate::exit::bad_input;
use crate::output::{self, Output};
use crate::project::Project;

/// Load a site with emulated browsers: pages, think times and sessions of a mix.
///
/// A page that gets no answer, or one of 5xx, is asked for again after half a second with the same token, so
/// that an order
/// whose answer was lost is not made twice. Each attempt is a row. WIPS are the pages that were answered per
/// second of the
/// measured interval.
#[derive(clap::Args)]
pub struct Args {
    /// Where the site is served: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    site: String,
    /// The mix: a workload of sessions (`weir list workloads`), with or without the benchmark's name
    #[arg(long)]
    mix: String,
    /// Emulated browsers
    #[arg(long, default_value_t = 10)]
    clients: u32,
    /// Length of the run, in seconds
    #[arg(long, default_value_t = 60.0)]
    duration_s: f64,
    /// Part of it, at the beginning, that is not measured, in seconds
    #[arg(long, default_value_t = 0.0)]
    warmup_s: f64,
    /// Seed; the same seed gives the same walks
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Think times are multiplied by this
    #[arg(long, default_value_t = 1.0)]
    think_scale: f64,
    /// Seconds after which an answer is given up
    #[arg(long, default_value_t = 30.0)]
    timeout_s: f64,
    /// Name of the class; the mix if absent
    #[arg(long)]
    class: Option<String>,
    /// File to add to what the site acknowledges, for `weir site check --orders`
    #[arg(long, value_name = "FILE")]
    orders: Option<PathBuf>,
    /// File to write: one row per request, without the page (requests.parquet)
    #[arg(long, value_name = "F")]
    out: Option<PathBuf>,
    /// File to write: one row per request, with the page (pages.parquet)
    #[arg(long, value_name = "F")]
    pages: Option<PathBuf>,
}

pub fn run(args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    let seconds = |name: &str, value: f64, least: f64| {
        if (least..1e7).contains(&value) {
            Ok(Duration::from_secs_f64(value))
        } else {
            Err(bad_input(format!("--{name} is {value}; it must be from {least} to 1e7")))
        }
    };
    let options = Options {
        duration: seconds("duration-s", args.duration_s, 0.001)?,
        warmup: seconds("warmup-s", args.warmup_s, 0.0)?,
        timeout: seconds("timeout-s", args.timeout_s, 0.001)?,
        ..Options::default()
    };
    if !(0.0..=1e6).contains(&args.think_scale) || args.clients == 0 {
        return Err(bad_input("--think-scale must be from 0 to 1e6 and --clients at least 1"));
    }
    if args.clients > MOST_CONNECTIONS {
        return Err(bad_input(format!(
            "--clients {}: each has a connection, of which a host has {MOST_CONNECTIONS}; use fewer",
            args.clients
        )));
    }
    let server = Server::new(&args.site).map_err(bad_input)?;
    let status = read_status(&server).map_err(classify)?;
    let catalog = Project::find()?.workloads()?;
    let workload = mix(&catalog, &status.site, &args.mix)?;
    let model = SessionModel::open(&workload, catalog.folder_of(&workload.name)).map_err(bad_input)?;
    let log = args.orders.as_deref().map(OrderLog::open).transpose().map_err(bad_input)?.map(Arc::new);
    let repeated = Arc::default();
    let class: Arc<str> = args.class.as_deref().unwrap_or(&workload.name).into();
    let browsers = Browsers {
        class: class.to_string(),
        model,
        clients: args.clients,
        seed: args.seed,
        think_scale: args.think_scale,
        log: log.clone(),
        stop: Arc::clone(&options.stop),
        repeated: Arc::clone(&repeated),
    };
    let url = Arc::clone(&server.url);
    let visitors = browsers.class(server, &status).map_err(classify)?;
    let epoch_ns = weir_host::clock::monotonic_ns() + 20_000_000;
    let options = Options { epoch_monotonic_ns: Some(epoch_ns), ..options };
    let mut requests =
        args.out.as_deref().map(|path| TableWriter::create(path, epoch_ns)).transpose().map_err(bad_input)?;
    let mut rows = args
        .pages
        .as_deref()
        .map(|path| TableWriter::create(path, epoch_ns))
        .transpose()
        .map_err(bad_input)?;
    let (mut pages, mut failed) = (Pages::default(), Ok(()));
    let report = browse(vec![visitors], &options, |outcome| {
        pages.add(outcome);
        if failed.is_ok() {
            let request = requests
                .as_mut()
                .map(|writer: &mut TableWriter<Request>| writer.write(&outcome.to_request(&class, &url)));
            let row =
                rows.as_mut().map(|writer: &mut TableWriter<Page>| writer.write(&outcome.to_page(&class)));
            failed = [request, row].into_iter().flatten().collect();
            if failed.is_err() {
                options.stop.store(true, Ordering::Relaxed);
            }
        }
    })?;
    failed?;
    requests.map(TableWriter::close).transpose()?;
    rows.map(TableWriter::close).transpose()?;
    if let Some(log) = &log {
        log.sync()?;
    }
    let acknowledged = log.map(|log| log.written());
    show(output, &report, &pages.finish(), acknowledged, repeated.load(Ordering::Relaxed))
}

/// The workload of a mix, by its name or the part behind the site's.
fn mix(catalog: &weir_workload::Catalog, site: &str, name: &str) -> anyhow::Result<SessionWorkload> {
    let long = format!("{site}-{name}");
    let name = if catalog.session_names().any(|known| known == long) { &long } else { name };
    match catalog.load_any(name).map_err(bad_input)? {
        AnyWorkload::Sessions(workload) => Ok(workload),
        AnyWorkload::Requests(_) => Err(bad_input(format!(
            "--mix {name}: a workload of requests; a site is visited by one of sessions, such as {site}-..."
        ))),
    }
}

fn show(
    output: Output,
    report: &Report,
    pages: &[PageReport],
    acknowledged: Option<u64>,
    repeated: u64,
) -> anyhow::Result<ExitCode> {
    let class = &report.classes[0];
    let wips = class.requests_per_s;
    if output.is_json() {
        let all = json!({
            "wips": wips, "acknowledged": acknowledged, "repeated": repeated, "pages": pages, "report": report,
        });
        output::document(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{:<26} {:>8} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "page", "answered", "failed", "share %", "mean ms", "p50 ms", "p90 ms", "max ms"
    );
    for page in pages {
        println!(
            "{:<26} {:>8} {:>7} {:>7.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
            page.page,
            page.answered,
            page.failed,
            100.0 * page.share,
            page.mean_ms,
            page.p50_ms,
            page.p90_ms,
            page.max_ms
        );
    }
    println!(
        "{wips:.2} WIPS: {} pages answered, {} failed, {repeated} repeated, in {:.1} s",
        class.answered, class.failed, report.measured_s
    );
    if let Some(acknowledged) = acknowledged {
        println!("{acknowledged} acknowledged");
    }
    Ok(ExitCode::SUCCESS)
}
