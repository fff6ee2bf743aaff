//! Each daemon starts, answers, and is stopped.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use common::State;
use weir_daemons::{
    Daemon, DataFolder, Error, Group, Hot, Instance, Scope, Start, process, restore, snapshot, start, stop,
    version,
};
use weir_specs::template::Values;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wanted(state: &Path, name: &str) -> Start {
    Start {
        name: name.to_owned(),
        scope: Scope::Run,
        run: state.join(format!("{name}.run")),
        root: Some(state.join("root")),
        data: Some(state.join("data")),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: free_port(),
        namespace: None,
        group: Group::of_state(state).within(name),
        memory_mib: 0,
        set: BTreeMap::new(),
        own: Values::new(),
        log: state.join(format!("{name}.log")),
        tier: weir_daemons::Tier::default(),
    }
}

/// `None`, with the reason printed, where it is not installed.
fn installed(name: &str) -> Option<Daemon> {
    let daemon = Daemon::load(name).unwrap();
    match version(&daemon) {
        Ok(_) => Some(daemon),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn get(instance: &Instance, path: &str) -> String {
    let mut stream = TcpStream::connect(instance.address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn serves_files(name: &str) {
    let (Some(daemon), Some(state)) = (installed(name), State::new()) else { return };
    let wanted = wanted(state.path(), name);
    fs::create_dir(state.path().join("root")).unwrap();
    fs::write(state.path().join("root/page.txt"), "a document").unwrap();
    let instance = start(&daemon, state.path(), &wanted).unwrap();
    assert!(instance.version.to_lowercase().contains(name), "{}", instance.version);
    let answer = get(&instance, "/page.txt");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("a document"), "{answer}");
    assert!(get(&instance, "/absent").starts_with("HTTP/1.1 404"));
    let members = wanted.group.processes();
    assert!(members.len() >= 2, "a master and its workers: {members:?}");
    let ended = stop(state.path(), name).unwrap().unwrap();
    assert!(!ended.killed, "it ends when it is asked to");
    assert!(members.iter().all(|pid| !Path::new(&format!("/proc/{pid}/exe")).exists()));
    assert!(TcpStream::connect(instance.address).is_err());
    assert_eq!(fs::read_dir(state.path().join("processes")).into_iter().flatten().count(), 0);
}

#[test]
fn nginx_serves_files() {
    serves_files("nginx");
}

#[test]
fn apache_serves_files() {
    serves_files("apache");
}

#[test]
fn hot_documents_come_from_memory_and_a_proxy_passes_them_on() {
    let (Some(daemon), Some(state)) = (installed("nginx"), State::new()) else { return };
    let mut web = wanted(state.path(), "web");
    // What lies where tells from where it came.
    let hot = state.path().join("hot");
    for folder in [web.root.as_ref().unwrap(), &hot] {
        fs::create_dir_all(folder.join("c")).unwrap();
        fs::write(folder.join("c/both"), folder.file_name().unwrap().to_str().unwrap()).unwrap();
    }
    fs::write(state.path().join("root/c/cold"), "cold").unwrap();
    fs::write(hot.join("c/unlisted"), "unlisted").unwrap();
    web.tier.hot = Some(Hot { folder: hot, uris: vec!["/c/both".to_owned()] });
    let behind = start(&daemon, state.path(), &web).unwrap();
    assert!(get(&behind, "/c/both").ends_with("\r\n\r\nhot"));
    assert!(get(&behind, "/c/cold").ends_with("\r\n\r\ncold"));
    assert!(get(&behind, "/c/unlisted").starts_with("HTTP/1.1 404"), "only what is listed");

    let proxy = Daemon::load("nginx-proxy").unwrap();
    let mut before = Start { root: None, data: None, ..wanted(state.path(), "proxy") };
    let alone = start(&proxy, state.path(), &before).unwrap_err();
    assert!(alone.is_refusal() && alone.to_string().contains("Name the daemon that it is before"), "{alone}");
    before.tier.upstream = Some(behind.address);
    let front = start(&proxy, state.path(), &before).unwrap();
    assert!(get(&front, "/c/both").ends_with("\r\n\r\nhot"));
    stop(state.path(), "web").unwrap();
    assert!(get(&front, "/c/both").starts_with("HTTP/1.1 502"), "nothing is kept unless it is told to");
    let apache = Daemon::load("apache").unwrap();
    assert!(apache.hot.is_none() && !apache.passes_on());
}

/// Starts a database, carries out statements, kills it, and puts back what was kept before.
fn keeps_rows(name: &str, ask: impl Fn(&Instance, &Path, &str) -> Command) {
    let (Some(daemon), Some(state)) = (installed(name), State::new()) else { return };
    let mut wanted = wanted(state.path(), name);
    wanted.root = None;
    wanted.set = [("buffer_mib".to_owned(), "16".to_owned())].into();
    let folder = state.path().join("database");
    let found = DataFolder::look(state.path(), &folder).unwrap();
    found.check_start(&daemon).unwrap();
    found.prepare(state.path()).unwrap();
    wanted.data = Some(found.data());
    let run = wanted.run.clone();
    let said = |instance: &Instance, statement: &str| {
        let output = ask(instance, &run, statement).output().unwrap();
        assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let instance = start(&daemon, state.path(), &wanted).unwrap();
    said(&instance, "CREATE TABLE t (n INT)");
    said(&instance, "INSERT INTO t VALUES (1), (2)");
    assert!(!stop(state.path(), name).unwrap().unwrap().killed);
    let kept = state.path().join("kept");
    snapshot(state.path(), &folder, &kept).unwrap();

    let instance = start(&daemon, state.path(), &wanted).unwrap();
    said(&instance, "INSERT INTO t VALUES (3)");
    assert_eq!(said(&instance, "SELECT COUNT(*) FROM t"), "3");
    // As somebody else finds it who only has the state folder.
    let lines = weir_daemons::stop_all(state.path(), |scope| scope == Scope::Run).unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    restore(state.path(), &kept, &folder).unwrap();
    let instance = start(&daemon, state.path(), &wanted).unwrap();
    assert_eq!(said(&instance, "SELECT COUNT(*) FROM t"), "2");
    stop(state.path(), name).unwrap();

    // A database that weir has not made: it is started on, and nothing is put in its place.
    let theirs = state.path().join("theirs");
    fs::rename(found.data(), &theirs).unwrap();
    let found = DataFolder::look(state.path(), &theirs).unwrap();
    found.check_start(&daemon).unwrap();
    found.prepare(state.path()).unwrap();
    wanted.data = Some(found.data());
    let instance = start(&daemon, state.path(), &wanted).unwrap();
    assert_eq!(said(&instance, "SELECT COUNT(*) FROM t"), "2");
    stop(state.path(), name).unwrap();
    assert!(restore(state.path(), &kept, &theirs).unwrap_err().is_refusal());
    assert!(!theirs.join(weir_host::owned::MARKER).exists());
    let instance = start(&daemon, state.path(), &wanted).unwrap();
    assert_eq!(said(&instance, "SELECT COUNT(*) FROM t"), "2");
    stop(state.path(), name).unwrap();
    // Nor is it given to another user.
    std::os::unix::fs::chown(&theirs, Some(0), Some(0)).unwrap();
    let refused = found.check_start(&daemon).unwrap_err();
    assert!(refused.is_refusal() && refused.to_string().contains("found uid 0"), "{refused}");
}

#[test]
fn postgresql_keeps_rows() {
    keeps_rows("postgresql", |instance, run, statement| {
        let mut command = Command::new("psql");
        command.args(["-X", "-A", "-t", "-q", "-U", "postgres", "-d", "postgres", "-c", statement]);
        command.arg("-h").arg(run).arg("-p").arg(instance.address.port().to_string());
        command
    });
}

#[test]
fn mariadb_keeps_rows() {
    keeps_rows("mariadb", |_, run, statement| {
        let mut command = Command::new("mariadb");
        let socket = format!("--socket={}", run.join("mariadb.sock").display());
        command.args(["--no-defaults", &socket, "--skip-column-names", "--batch", "mysql", "-e", statement]);
        command
    });
}

#[test]
fn what_cannot_be_is_refused_and_what_does_not_come_up_says_why() {
    let (Some(daemon), Some(state)) = (installed("nginx"), State::new()) else { return };
    let state = state.path();
    let refused = |change: &dyn Fn(&mut Start)| {
        let mut start_it = wanted(state, "nginx");
        change(&mut start_it);
        match start(&daemon, state, &start_it) {
            Err(Error::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&|start| start.address = "192.0.2.1".parse().unwrap()).contains("loopback"));
    assert!(
        refused(&|start| drop(start.set.insert("wrokers".to_owned(), "1".to_owned())))
            .contains("unknown setting `wrokers`; did you mean `workers`?")
    );
    assert!(
        refused(&|start| drop(start.set.insert("workers".to_owned(), "1;\nuser root".to_owned())))
            .contains("setting `workers`: is `1;\\nuser root`; it must be a whole number from 1 to 512")
    );

    let mut absent = daemon.clone();
    absent.programs = vec!["no-such-server".to_owned()];
    assert!(
        matches!(start(&absent, state, &wanted(state, "nginx")), Err(Error::Refused(text)) if text.contains("nginx-light"))
    );

    let wrong = wanted(state, "nginx");
    let mut daemon = daemon;
    for text in daemon.files.values_mut() {
        *text = text.replace("\"{workers}\"", "many");
    }
    let Err(Error::Failed(text)) = start(&daemon, state, &wrong) else { panic!("it came up") };
    assert!(text.contains("exited before it was ready") && text.contains("worker_processes"), "{text}");
    assert_eq!(process::all(state).unwrap(), []);
}
