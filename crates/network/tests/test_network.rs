//! A network is made, carries bytes, is counted, and goes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use weir_network::{Error, Network, Spec, Subnet, counters, down, status, up, within};

fn spec(name: &str, hosts: &[&str]) -> Spec {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    let subnet = Subnet::try_from("10.91.7.0/24".to_owned()).unwrap();
    Spec { name: name.to_owned(), subnet, hosts, rate_mbit: None }
}

/// A name of this test's own: others may run on this machine.
fn name(what: &str) -> String {
    format!("t{what}-{}", std::process::id())
}

fn possible() -> bool {
    let root = rustix::process::geteuid().is_root();
    let ip = Command::new("ip").arg("-V").output().is_ok();
    if !root || !ip {
        eprintln!("skipped: network namespaces need root and ip (package iproute2)");
    }
    root && ip
}

struct TestNetwork(tempfile::TempDir);

impl Drop for TestNetwork {
    fn drop(&mut self) {
        let _ = down(self.0.path());
    }
}

/// Sends so many bytes from host `two` to host `one`; how long that took.
fn send(bytes: usize, network: &Network) -> Duration {
    let (one, two) = (network.host("one").unwrap(), network.host("two").unwrap());
    let address = (one.address, 7000);
    let listener = within(&one.namespace.path(), || TcpListener::bind(address)).unwrap().unwrap();
    let received = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all.len()
    });
    let began = Instant::now();
    let mut stream = within(&two.namespace.path(), || TcpStream::connect(address)).unwrap().unwrap();
    stream.write_all(&vec![1; bytes]).unwrap();
    drop(stream);
    assert_eq!(received.join().unwrap(), bytes);
    began.elapsed()
}

#[test]
fn a_rate_is_kept_and_belongs_to_the_network() {
    if !possible() || Command::new("tc").arg("-V").output().is_err() {
        return;
    }
    let made = TestNetwork(tempfile::tempdir().unwrap());
    let slow = Spec { rate_mbit: Some(40), ..spec(&name("r"), &["one", "two"]) };
    let network = match up(&slow, made.0.path()) {
        Err(Error::Failed(text)) if text.contains("tbf") => {
            eprintln!("skipped: this kernel has no tbf: {text}");
            return;
        }
        made => made.unwrap(),
    };
    // 16 Mbit take 0.4 s, less what the bucket holds.
    let took = send(2_000_000, &network);
    assert!(took > Duration::from_millis(350), "{took:?}");
    assert_eq!(up(&slow, made.0.path()).unwrap(), network, "what is there is left as it is");
    let other = up(&Spec { rate_mbit: None, ..slow }, made.0.path());
    assert!(other.is_err_and(|error| error.is_refusal()), "another rate is another network");
}

#[test]
fn bytes_go_from_host_to_host_are_counted_and_find_no_way_out() {
    if !possible() {
        return;
    }
    let made = TestNetwork(tempfile::tempdir().unwrap());
    let state = made.0.path();
    let network = up(&spec(&name("a"), &["one", "two"]), state).unwrap();
    let again = up(&spec(&name("a"), &["one", "two"]), state).unwrap();
    assert_eq!(network, again, "what is there is left as it is");
    let (one, two) = (network.host("one").unwrap(), network.host("two").unwrap());
    let before = counters(&two.namespace.path()).unwrap();

    const BYTES: usize = 3_000_000;
    send(BYTES, &network);
    let address = (one.address, 7000);
    let moved = counters(&two.namespace.path()).unwrap() - before;
    assert!((BYTES as u64..BYTES as u64 * 12 / 10).contains(&moved.sent_bytes), "{moved:?}");
    assert!(moved.sent_packets > 0 && moved.received_packets > 0, "{moved:?}");

    let outside = within(&two.namespace.path(), || TcpStream::connect("192.0.2.1:80")).unwrap();
    assert_eq!(outside.unwrap_err().raw_os_error(), Some(rustix::io::Errno::NETUNREACH.raw_os_error()));

    // As after a crash in the middle: one host is missing.
    assert!(Command::new("ip").args(["netns", "delete", &two.namespace.name]).status().unwrap().success());
    assert_eq!(status(state).unwrap().unwrap().1.len(), 1);
    let network = up(&spec(&name("a"), &["one", "two"]), state).unwrap();
    let (one, two) = (network.host("one").unwrap(), network.host("two").unwrap());
    let listener = within(&one.namespace.path(), || TcpListener::bind(address)).unwrap().unwrap();
    within(&two.namespace.path(), || TcpStream::connect(listener.local_addr().unwrap())).unwrap().unwrap();

    assert_eq!(down(state).unwrap().len(), 3);
    assert_eq!(down(state).unwrap().len(), 0);
    assert!(!one.namespace.path().exists() && Network::load(state).unwrap().is_none());
}

#[test]
fn what_is_not_ours_is_left_alone() {
    if !possible() {
        return;
    }
    let made = TestNetwork(tempfile::tempdir().unwrap());
    let state = made.0.path();
    let foreign = format!("weir-{}-two", name("b"));
    assert!(Command::new("ip").args(["netns", "add", &foreign]).status().unwrap().success());
    let refused = up(&spec(&name("b"), &["one", "two"]), state);
    let there = Path::new("/run/netns").join(&foreign).exists();
    assert!(Command::new("ip").args(["netns", "delete", &foreign]).status().unwrap().success());
    assert!(matches!(refused, Err(Error::Refused(text)) if text.contains("weir did not make it")));
    assert!(there && Network::load(state).unwrap().is_none());

    up(&spec(&name("b"), &["one"]), state).unwrap();
    let other = up(&spec(&name("c"), &["one"]), state);
    assert!(other.is_err_and(|error| error.is_refusal()));
}
