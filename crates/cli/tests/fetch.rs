//! `weir trace fetch` against a server on loopback that does what servers do.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

/// What the server does with the n-th request.
#[derive(Clone, Copy)]
enum Act {
    /// The whole file, or the part that is asked for.
    Serve,
    /// As `Serve`, but the connection is cut after this many bytes.
    Cut(usize),
    /// The whole file whatever part is asked for, as servers without ranges do.
    WholeOnly,
    /// No such file.
    NotFound,
}

struct Server {
    address: String,
    /// The `Range` header of each request, or nothing.
    ranges: Arc<Mutex<Vec<String>>>,
}

/// Serves `content` under any path; acts are taken in turn, the last again and again.
fn serve(content: Vec<u8>, version: &'static str, acts: &'static [Act]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let ranges = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ranges);
    std::thread::spawn(move || {
        for (stream, number) in listener.incoming().zip(0..) {
            let act = acts[usize::min(number, acts.len() - 1)];
            let range = answer(stream.unwrap(), &content, version, act);
            seen.lock().unwrap().push(range);
        }
    });
    Server { address, ranges }
}

fn answer(mut stream: TcpStream, content: &[u8], version: &str, act: Act) -> String {
    let mut range = String::new();
    let mut wanted = version.to_owned();
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line = line.unwrap();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "range" => range = value.to_owned(),
            "if-range" => wanted = value.to_owned(),
            _ => {}
        }
    }
    let from: usize = match range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-')) {
        Some(from) if wanted == version && !matches!(act, Act::WholeOnly) => from.parse().unwrap(),
        _ => 0,
    };
    let (head, body) = match act {
        Act::NotFound => ("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n".to_owned(), &b"gone"[..]),
        _ if from > 0 && from >= content.len() => (
            format!(
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n",
                content.len()
            ),
            &b""[..],
        ),
        _ if from > 0 => (
            format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\n",
                content.len() - 1,
                content.len(),
                content.len() - from
            ),
            &content[from..],
        ),
        _ => (format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", content.len()), content),
    };
    let body = match act {
        Act::Cut(bytes) => &body[..bytes.min(body.len())],
        _ => body,
    };
    // A client that has gone away is its own affair.
    let _ = write!(stream, "{head}ETag: {version}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(body);
    range
}

fn content() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn sum(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn weir(folder: &Path, address: &str, extra: &str) -> Output {
    let list = folder.join("list.yml");
    let text = format!(
        "- name: sample\n  about: for a test\n  home: here\n  licence: none\n  citation: none\n  stand_in: zipf-web\n  \
         get:\n    fetch:\n      url: {address}/files/sample.spc\n{extra}"
    );
    std::fs::write(&list, text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["trace", "fetch", "sample", "--catalog"])
        .arg(&list)
        .arg("--to")
        .arg(folder.join("got"))
        // A proxy of the host has no business on loopback.
        .env("NO_PROXY", "127.0.0.1")
        .envs(["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].map(|name| (name, "")))
        .output()
        .unwrap()
}

fn with_sum(content: &[u8]) -> String {
    format!("      sha256: {}\n", sum(content))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("got")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_whole_file_arrives_and_is_not_fetched_twice() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(content(), "\"1\"", &[Act::Serve]);
    let first = weir(folder.path(), &server.address, &with_sum(&content()));
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    assert!(text(&first).contains("downloaded, 3000000 bytes, checksum right"), "{}", text(&first));
    assert_eq!(names(folder.path()), ["sample.spc"]);
    assert!(std::fs::read(folder.path().join("got/sample.spc")).unwrap() == content());
    let again = weir(folder.path(), &server.address, &with_sum(&content()));
    assert!(text(&again).contains("is there already"), "{}", text(&again));
    assert_eq!(server.ranges.lock().unwrap().len(), 1);
}

#[test]
fn a_connection_that_is_cut_is_taken_up_where_it_broke() {
    for acts in [&[Act::Cut(1_000_000), Act::Serve], &[Act::Cut(1_000_000), Act::WholeOnly]] {
        let folder = tempfile::tempdir().unwrap();
        let server = serve(content(), "\"1\"", acts);
        let done = weir(folder.path(), &server.address, &with_sum(&content()));
        assert_eq!(done.status.code(), Some(0), "{}", text(&done));
        assert!(text(&done).contains("broke off after 1000000 bytes"), "{}", text(&done));
        assert_eq!(*server.ranges.lock().unwrap(), ["", "bytes=1000000-"]);
        assert!(std::fs::read(folder.path().join("got/sample.spc")).unwrap() == content());
        assert_eq!(names(folder.path()), ["sample.spc"]);
    }
}

#[test]
fn a_server_that_brings_nothing_more_ends_the_try_and_the_next_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let broken = serve(content(), "\"1\"", &[Act::Cut(500_000), Act::Cut(0)]);
    let first = weir(folder.path(), &broken.address, "");
    assert_eq!(first.status.code(), Some(1));
    assert!(text(&first).contains("give the same command to go on from there"), "{}", text(&first));
    assert_eq!(names(folder.path()), ["sample.spc.partial", "sample.spc.partial.version"]);
    let sound = serve(content(), "\"1\"", &[Act::Serve]);
    let second = weir(folder.path(), &sound.address, "");
    assert_eq!(second.status.code(), Some(0), "{}", text(&second));
    assert!(text(&second).contains("no checksum known"), "{}", text(&second));
    assert_eq!(*sound.ranges.lock().unwrap(), ["bytes=500000-"]);
    assert!(std::fs::read(folder.path().join("got/sample.spc")).unwrap() == content());
    assert_eq!(names(folder.path()), ["sample.spc"]);
}

#[test]
fn a_file_that_has_changed_meanwhile_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let old = serve(vec![7; 3_000_000], "\"old\"", &[Act::Cut(500_000), Act::Cut(0)]);
    assert_eq!(weir(folder.path(), &old.address, "").status.code(), Some(1));
    let new = serve(content(), "\"new\"", &[Act::Serve]);
    let done = weir(folder.path(), &new.address, "");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    assert!(std::fs::read(folder.path().join("got/sample.spc")).unwrap() == content());
}

#[test]
fn a_partial_file_that_is_whole_already_is_only_checked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("got")).unwrap();
    std::fs::write(folder.path().join("got/sample.spc.partial"), content()).unwrap();
    let server = serve(content(), "\"1\"", &[Act::Serve]);
    let done = weir(folder.path(), &server.address, &with_sum(&content()));
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    assert_eq!(names(folder.path()), ["sample.spc"]);
}

#[test]
fn a_wrong_checksum_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(content(), "\"1\"", &[Act::Serve]);
    let done = weir(folder.path(), &server.address, &with_sum(b"something else"));
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done).contains("sha256 is") && text(&done).contains("removed"), "{}", text(&done));
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

#[test]
fn a_file_of_that_name_with_other_content_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("got")).unwrap();
    std::fs::write(folder.path().join("got/sample.spc"), "mine").unwrap();
    let server = serve(content(), "\"1\"", &[Act::Serve]);
    let done = weir(folder.path(), &server.address, &with_sum(&content()));
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done).contains("move it away"), "{}", text(&done));
    assert_eq!(std::fs::read_to_string(folder.path().join("got/sample.spc")).unwrap(), "mine");
}

#[test]
fn an_address_without_the_file_is_said_with_its_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(content(), "\"1\"", &[Act::NotFound]);
    let done = weir(folder.path(), &server.address, "");
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done).contains("answers 404"), "{}", text(&done));
    assert!(text(&done).contains("weir generate zipf-web"), "{}", text(&done));
}

#[test]
fn a_server_out_of_reach_is_said_with_its_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    // Bound and dropped: nothing listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = weir(folder.path(), &format!("http://{address}"), "");
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done).contains("cannot be reached from here"), "{}", text(&done));
    assert!(text(&done).contains("weir generate zipf-web"), "{}", text(&done));
    assert_eq!(names(folder.path()), [""; 0], "nothing came, so nothing is left");
}

#[test]
fn what_has_to_be_requested_is_said_and_unknown_names_are_bad_input() {
    let fetch = |name: &str| {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("got");
        let done = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["trace", "fetch", name, "--to"])
            .arg(&to)
            .output()
            .unwrap();
        assert!(!to.exists(), "{name} left something");
        done
    };
    let cello = fetch("hp-cello-1992");
    assert_eq!(cello.status.code(), Some(1));
    assert!(text(&cello).contains("has to be requested by hand"), "{}", text(&cello));
    let msr = fetch("msr-cambridge");
    assert!(text(&msr).contains("accept its terms"), "{}", text(&msr));
    let unknown = fetch("hp-celo-1992");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown).contains("did you mean `hp-cello-1992`?"), "{}", text(&unknown));
}

#[test]
fn every_stand_in_of_the_list_is_a_workload() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let catalog = weir_trace::catalog::Catalog::built_in().unwrap();
    for entry in catalog.entries() {
        if let Some(workload) = &entry.stand_in {
            let spec = root.join("workloads").join(format!("{workload}.yml"));
            assert!(spec.is_file(), "{}: stand_in {workload} does not exist", entry.name);
        }
    }
}
