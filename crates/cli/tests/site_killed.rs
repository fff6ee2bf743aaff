//! A bookshop whose database, application server and driver are killed in turn: nothing that was acknowledged is lost, and
//! nothing is ordered twice.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_web_site::database::Engine;

#[path = "../../web/site/tests/common/server.rs"]
mod server;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// How long something that was killed stays away.
const GONE: Duration = Duration::from_millis(300);

struct Killed(Child);

impl Killed {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(WEIR);
    command.arg("site").args(arguments).env("WEIR_ROOT", root());
    command
}

/// Starts the application server; returns it and where it listens.
fn serve(database: &str, listen: &str) -> (Killed, String) {
    let mut command = weir(&["serve", "--benchmark", "tpcw", "--database", database, "--listen", listen]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("tpcw: http://").and_then(|rest| rest.strip_suffix("/tpcw/"));
    let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
    (Killed(child), address)
}

fn browse(site: &str, orders: &Path, seconds: &str, seed: &str) -> Killed {
    let orders = orders.display().to_string();
    let mut command = weir(&[
        "browse",
        "--site",
        site,
        "--mix",
        "ordering",
        "--clients",
        "12",
        "--think-scale",
        "0.005",
        "--duration-s",
        seconds,
        "--seed",
        seed,
        "--orders",
        &orders,
        "--json",
    ]);
    Killed(command.stdout(Stdio::piped()).spawn().unwrap())
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Waits until so many orders more are acknowledged than there were.
fn more_orders(path: &Path, count: usize) {
    let (from, until) = (lines(path), Instant::now() + Duration::from_secs(20));
    while lines(path) < from + count {
        assert!(Instant::now() < until, "{} orders after {from}, {count} more were expected", lines(path));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How often each is killed, and how long all is left alone in between: once and not at all, or as many times as fit into
/// WEIR_DURABILITY_S seconds (`make durability`).
fn length() -> (u32, Duration) {
    let seconds: Option<u32> = std::env::var("WEIR_DURABILITY_S").ok().map(|text| text.parse().unwrap());
    match seconds {
        Some(seconds) => ((seconds / 60).max(1), Duration::from_secs(18)),
        None => (1, Duration::ZERO),
    }
}

fn killed(engine: Engine) {
    let Some(server) = server::server(engine) else { return };
    let folder = &server.folder;
    let database = server.create_database("shop").to_string();
    let load = ["load", "--benchmark", "tpcw", "--database", &database, "--items", "100", "--browsers", "1"];
    assert!(weir(&load).stdout(Stdio::null()).status().unwrap().success());
    let orders = folder.path().join("orders.log");

    let (mut application, address) = serve(&database, "127.0.0.1:0");
    let site = format!("http://{address}");
    let (rounds, pause) = length();
    let mut driver = browse(&site, &orders, "3600", "0");
    for round in 1..=rounds {
        more_orders(&orders, 20);
        std::thread::sleep(pause);

        // The database: pages fail while it is gone, and are asked for again.
        server.kill();
        std::thread::sleep(GONE);
        server.start();
        more_orders(&orders, 20);
        std::thread::sleep(pause);

        // The application server: its port is taken again by the next.
        application.kill();
        std::thread::sleep(GONE);
        assert!(TcpStream::connect(&address).is_err());
        let (next, again) = serve(&database, &address);
        application = next;
        assert_eq!(again, address);
        more_orders(&orders, 20);
        std::thread::sleep(pause);

        // The driver: the next adds to the same log.
        driver.kill();
        let before = lines(&orders);
        driver = browse(&site, &orders, "3600", &round.to_string());
        more_orders(&orders, 20);
        assert!(lines(&orders) > before);
    }
    driver.kill();
    // The last one ends by itself.
    assert!(browse(&site, &orders, "1.5", &(rounds + 1).to_string()).0.wait().unwrap().success());
    eprintln!("{engine:?}: {rounds} times each of three was killed, {} orders acknowledged", lines(&orders));

    let log = orders.display().to_string();
    let check =
        weir(&["check", "--benchmark", "tpcw", "--database", &database, "--orders", &log]).output().unwrap();
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "{said}");
    assert!(said.contains(&format!("of {:>9}  every acknowledged order", lines(&orders))), "{said}");
    // An order that is not there is missed.
    std::fs::write(&orders, "order never-1 1 1\n").unwrap();
    let check =
        weir(&["check", "--benchmark", "tpcw", "--database", &database, "--orders", &log]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
}

#[test]
fn postgresql_loses_no_order() {
    killed(Engine::PostgreSql);
}

#[test]
fn mariadb_loses_no_order() {
    killed(Engine::MariaDb);
}
