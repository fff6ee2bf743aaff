//! `weir site serve`.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use weir_sites::Benchmark;
use weir_sites::database::Address;
use weir_sites::http::Site;

use super::classify;
use crate::exit::bad_input;

/// Answer a site's pages, each a transaction in its database, until SIGTERM.
///
/// Pages are /BENCHMARK/PAGE and answer in JSON; /status says what has been answered. It keeps nothing in memory: it may be
/// killed at any time. While the database is gone pages answer 503, and go on when it has returned.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmark: tpcw, rubis or rubbos
    #[arg(long)]
    benchmark: String,
    /// The database: postgresql:///NAME?user=U&socket=PATH or mariadb://U@HOST:PORT/NAME?password_file=FILE
    #[arg(long, value_name = "URL")]
    database: String,
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: String,
    /// Connections to the database that all pages share
    #[arg(long, default_value_t = 16)]
    workers: usize,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let benchmark: Benchmark = args.benchmark.parse().map_err(classify)?;
    let address: Address = args.database.parse().map_err(bad_input)?;
    if !(1..=1000).contains(&args.workers) {
        return Err(bad_input(format!("--workers is {}; it must be from 1 to 1000", args.workers)));
    }
    let mut connection = address.connect().map_err(|error| classify(error.into()))?;
    let application = benchmark.application(&mut *connection).map_err(classify)?;
    drop(connection);
    let listener = TcpListener::bind(&args.listen)
        .map_err(|error| bad_input(format!("--listen {}: {error}", args.listen)))?;
    let site = Site::new(application, address, args.workers).map_err(classify)?;
    let listening = listener.local_addr().context("the listening socket")?;
    println!("{}: http://{listening}/{}/", benchmark.name(), benchmark.name());
    std::io::stdout().flush()?;
    site.serve(&listener, &AtomicBool::new(false)).map_err(classify)?;
    Ok(ExitCode::SUCCESS)
}
