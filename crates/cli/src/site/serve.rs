//! `weir site serve`.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use serde_json::json;
use weir_web_site::Benchmark;
use weir_web_site::database::Address;
use weir_web_site::http::Site;

use super::classify;
use crate::exit::bad_input;
use crate::output::{self, Output};

/// Serve the pages of a site until SIGTERM; each page is a database transaction.
///
/// Pages are /BENCHMARK/PAGE and answer in JSON; /status says what has been answered. It keeps nothing in
/// memory: it may be
/// killed at any time. While the database is gone pages answer 503, and go on when it has returned.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmark: tpcw, rubis or rubbos
    #[arg(long)]
    benchmark: String,
    /// The database: postgresql:///NAME?user=U&socket=PATH or mariadb://U@HOST:PORT/NAME?password_file=FILE
    #[arg(long, value_name = "URL")]
    database: String,
    /// Address and port, of loopback or of a test network (private); port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: String,
    /// Connections to the database that all pages share
    #[arg(long, default_value_t = 16)]
    workers: usize,
}

pub fn run(args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    let benchmark: Benchmark = args.benchmark.parse().map_err(classify)?;
    let address: Address = args.database.parse().map_err(bad_input)?;
    if !(1..=1000).contains(&args.workers) {
        return Err(bad_input(format!("--workers is {}; it must be from 1 to 1000", args.workers)));
    }
    let listen = listen_address(&args.listen)?;
    let mut connection = address.connect().map_err(|error| classify(error.into()))?;
    let application = benchmark.application(&mut *connection).map_err(classify)?;
    drop(connection);
    let listener =
        TcpListener::bind(listen).map_err(|error| bad_input(format!("--listen {listen}: {error}")))?;
    let site = Site::new(application, address, args.workers).map_err(classify)?;
    let listening = listener.local_addr().context("the listening socket")?;
    let (name, pid) = (benchmark.name(), std::process::id());
    let url = format!("http://{listening}/{name}/");
    if output.is_json() {
        output::line(&json!({"benchmark": name, "url": url, "pid": pid}))?;
    } else {
        println!("{name}: {url}");
    }
    std::io::stdout().flush()?;
    site.serve(&listener, &AtomicBool::new(false)).map_err(classify)?;
    Ok(ExitCode::SUCCESS)
}

/// Where to listen: pages have no password, so strangers are not to reach them.
fn listen_address(text: &str) -> anyhow::Result<SocketAddr> {
    let address: SocketAddr = text.parse().map_err(|_| {
        bad_input(format!(
            "--listen {text}: expected an address in numbers and a port, such as 127.0.0.1:8080"
        ))
    })?;
    let is_test_network = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    if !is_test_network {
        return Err(bad_input(format!(
            "--listen {text}: {} is neither loopback nor of a private network: whoever reaches it could change the site's database. \
             Give 127.0.0.1:{}, or a private address (RFC 1918) of a test network",
            address.ip(),
            address.port()
        )));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_served_to_loopback_and_test_networks_only() {
        for text in
            ["127.0.0.1:0", "127.0.0.2:80", "10.77.0.1:8080", "192.168.1.1:1", "[::1]:80", "[fd00::1]:80"]
        {
            assert!(listen_address(text).is_ok(), "{text}");
        }
        for text in ["0.0.0.0:80", "[::]:80", "8.8.8.8:80", "224.0.0.1:80", "localhost:80", "127.0.0.1", ""] {
            let error = listen_address(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--listen {text}: ")), "{error}");
        }
    }
}
