//! Who is not of the run: idle, slow, noisy, with another token or version, replaying, or on the way between two hosts.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{Between, TOKEN, address, config, connect, join};
use weir_coordination::{Coordination, Error, JoinConfig, Message, Record, Token, VERSION};

/// A whole part that asks for nothing.
fn part(me: &str, address: SocketAddr) -> Result<Record, Error> {
    let mut coordination = join(me, address, &Arc::default())?;
    coordination.begin()?;
    if me == "s" {
        coordination.wait_for_clients()?;
    }
    coordination.end()
}

fn start(me: &'static str, address: SocketAddr) -> JoinHandle<Result<Record, Error>> {
    thread::spawn(move || part(me, address))
}

/// All three hosts carry out their parts.
fn all_parts_succeed(address: SocketAddr, coordinator: JoinHandle<Result<Record, Error>>) {
    let others = [start("b", address), start("s", address)];
    for host in others.into_iter().chain([coordinator]) {
        assert!(host.join().unwrap().unwrap().clocks.is_some());
    }
}

/// What is said to a connection until it is closed.
fn heard(stream: &TcpStream) -> Vec<Message> {
    let mut text = Vec::new();
    // A reset is an end, too.
    let _ = (&mut &*stream).read_to_end(&mut text);
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| Message::parse(line).unwrap())
        .collect()
}

fn refusal(stream: &TcpStream) -> String {
    match heard(stream).pop() {
        Some(Message::Refused { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_hundred_idle_connections_delay_no_host() {
    let address = address();
    let a = start("a", address);
    drop(connect(address));
    let idle: Vec<TcpStream> = (0..300).map(|_| connect(address)).collect();
    let began = Instant::now();
    all_parts_succeed(address, a);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    drop(idle);
}

#[test]
fn unauthenticated_connections_time_out_however_slowly_they_send() {
    let address = address();
    let a = start("a", address);
    let idle = connect(address);
    let mut slow = connect(address);
    let began = Instant::now();
    let dribble = thread::spawn(move || {
        // A byte at a time, each well within any timeout between two bytes.
        while slow.write_all(b"x").is_ok() && began.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(40));
        }
        began.elapsed()
    });
    assert_eq!(refusal(&idle), "it did not prove the token within 0.5 s");
    assert!((400..3000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert!(dribble.join().unwrap() < Duration::from_secs(4));
    all_parts_succeed(address, a);
}

#[test]
fn what_is_no_hello_is_refused_with_its_reason() {
    let address = address();
    let a = start("a", address);
    drop(connect(address));
    let hello = |version: u32| {
        let text = || "0".repeat(64);
        Message::Hello { version, host: "b".into(), run: "run".into(), nonce: text(), proof: text() }.line()
    };
    let old = b"{\"say\":\"hello\",\"host\":\"b\",\"run\":\"run\",\"answer\":\"00\"}\n".to_vec();
    let extra = b"{\"say\":\"hello\",\"version\":3,\"host\":\"b\",\"something\":{\"new\":1}}\n".to_vec();
    for (sent, says) in [
        (hello(VERSION), "host `b` has another token"),
        (old, "it has another protocol version (found 1, expected 2). Install the same weir on both"),
        (extra, "it has another protocol version (found 3, expected 2)"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "it sent no valid hello message"),
        (Message::Ready {}.line(), "it sent no valid hello message"),
        (b"\n".to_vec(), "it sent no valid hello message"),
        (vec![b'['; 4095].into_iter().chain([b'\n']).collect(), "it sent no valid hello message"),
        (vec![b'x'; 4097], "a line of more than 4096 bytes"),
    ] {
        let mut stream = connect(address);
        stream.write_all(&sent).unwrap();
        assert!(refusal(&stream).starts_with(says), "{says}");
    }
    // Cut short.
    let mut stream = connect(address);
    stream.write_all(&hello(VERSION)[..40]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(matches!(heard(&stream)[..], [Message::Challenge { version: VERSION, .. }]));
    all_parts_succeed(address, a);
}

#[test]
fn a_recorded_hello_is_of_no_use() {
    let address = address();
    let a = start("a", address);
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&recorded);
    // The true host is held up on the way, so that its place is still free.
    let between = Between::start(address, move |line, _| {
        kept.lock().unwrap().extend_from_slice(line);
        false
    });
    let (to, stop) = (between.address, Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let held = thread::spawn(move || join("b", to, &stopped).map(drop));
    let began = Instant::now();
    while recorded.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(5));
        thread::sleep(Duration::from_millis(5));
    }
    let mut replayed = connect(address);
    replayed.write_all(&recorded.lock().unwrap()).unwrap();
    assert_eq!(refusal(&replayed), "host `b` has another token");
    drop(between);
    stop.store(true, Ordering::Relaxed);
    assert!(held.join().unwrap().is_err());
    all_parts_succeed(address, a);
}

#[test]
fn a_coordinator_that_does_not_know_the_token_is_found_out() {
    for (says, error) in [
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), "another program listens there"),
        (vec![b'x'; 9000], "a line of more than 4096 bytes"),
        (
            [
                Message::Challenge { version: VERSION, nonce: "1".into() }.line(),
                Message::Welcome { proof: "0".repeat(64) }.line(),
                Message::Joined {}.line(),
            ]
            .concat(),
            "it does not know the token",
        ),
        (
            Message::Challenge { version: 1, nonce: "1".into() }.line(),
            "has another protocol version (found 1, expected 2). Install the same weir on both",
        ),
        (Vec::new(), "no answer: another program listens there"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let other = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let _ = stream.write_all(&says);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let Err(found) = join("b", at, &Arc::default()) else { panic!("joined: {error}") };
        assert!(found.to_string().contains(error), "{found}");
        other.join().unwrap();
    }
}

/// A proof is of one side: what a host says cannot be sent back to it.
#[test]
fn a_reflected_proof_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let other = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(&Message::Challenge { version: VERSION, nonce: "1".into() }.line()).unwrap();
        let mut line = Vec::new();
        BufReader::new(&stream).read_until(b'\n', &mut line).unwrap();
        let Ok(Message::Hello { proof, .. }) = Message::parse(line.trim_ascii_end()) else { panic!() };
        stream.write_all(&Message::Welcome { proof }.line()).unwrap();
    });
    let Err(found) = join("b", at, &Arc::default()) else { panic!("joined") };
    assert!(found.to_string().contains("it does not know the token"), "{found}");
    other.join().unwrap();
}

/// What the coordinator says ended the run when the lines of `b`, from its third on, are passed on as `pass` does.
fn ended_by(mut pass: impl FnMut(usize, &[u8], &mut Vec<Vec<u8>>) -> bool + Send + 'static) -> String {
    let address = address();
    let s = start("s", address);
    let mut number = 0;
    let between = Between::start(address, move |line, passed| {
        number += 1;
        match number {
            1 | 2 => {
                passed.push(line.to_vec());
                true
            }
            _ => pass(number, line, passed),
        }
    });
    let b = start("b", between.address);
    let error = part("a", address).unwrap_err();
    drop(between);
    let of_b = b.join().unwrap().unwrap_err().to_string();
    assert!(of_b == error.to_string() || of_b.starts_with("host a was lost"), "{of_b}");
    assert_eq!(s.join().unwrap().unwrap_err().to_string(), error.to_string());
    error.to_string()
}

#[test]
fn lines_that_somebody_on_the_way_touches_end_the_run_with_a_reason() {
    let changed = ended_by(|_, line, passed| {
        let mut line = line.to_vec();
        let at = line.len() - 3;
        line[at] ^= 1;
        passed.push(line);
        true
    });
    assert!(changed.starts_with("host b failed: message 1 has a wrong HMAC"), "{changed}");
    let repeated = ended_by(|_, line, passed| {
        passed.extend([line.to_vec(), line.to_vec()]);
        true
    });
    assert!(repeated.starts_with("host b failed: wrong message number (found 1, expected 2)"), "{repeated}");
    // A heartbeat comes in the end, too, if the question's answer is waited for.
    let left_out = ended_by(|number, line, passed| {
        if number > 3 {
            passed.push(line.to_vec());
        }
        true
    });
    assert!(left_out.starts_with("host b failed: wrong message number (found 2, expected 1)"), "{left_out}");
    let injected = ended_by(|_, line, passed| {
        passed.extend([Message::Done {}.line(), line.to_vec()]);
        true
    });
    assert!(injected.starts_with("host b failed: message 1 is not sealed"), "{injected}");
    let cut = ended_by(|_, line, passed| {
        passed.push([&line[..line.len() - 5], b"\n"].concat());
        true
    });
    assert!(cut.starts_with("host b failed: message 1 has a wrong HMAC"), "{cut}");
    let long = ended_by(|_, _, passed| {
        passed.push(vec![b'1'; 5000]);
        true
    });
    assert!(long.starts_with("host b failed: a line of more than 4096 bytes"), "{long}");
    // Held back for good: silence.
    let held = ended_by(|_, _, _| true);
    assert!(held.starts_with("host b was lost"), "{held}");
}

#[test]
fn what_the_coordinator_says_cannot_be_changed_on_the_way_either() {
    let address = address();
    let a = start("a", address);
    let s = start("s", address);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let between = thread::spawn(move || {
        let host = listener.accept().unwrap().0;
        let to = connect(address);
        let (mut from_host, mut to_coordinator) = (host.try_clone().unwrap(), to.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from_host, &mut to_coordinator));
        let mut to_host = host.try_clone().unwrap();
        for line in BufReader::new(&to).split(b'\n') {
            let Ok(line) = line else { break };
            let text = String::from_utf8(line).unwrap();
            // The run is to begin an hour later.
            let text = if text.contains("\"begin\"") {
                text.replace(":1", ":2").replace(":3", ":4") + " "
            } else {
                text
            };
            if to_host.write_all(format!("{text}\n").as_bytes()).is_err() {
                break;
            }
        }
        let _ = host.shutdown(std::net::Shutdown::Both);
    });
    let error = part("b", at).unwrap_err();
    assert!(
        error.to_string().starts_with("host a failed: message ") && error.to_string().contains("wrong HMAC"),
        "{error}"
    );
    // The others lose `b`.
    assert!(a.join().unwrap().unwrap_err().to_string().starts_with("host b was lost"));
    assert!(s.join().unwrap().is_err());
    between.join().unwrap();
}

#[test]
fn noise_and_wrong_tokens_by_the_hundred_hold_up_nobody() {
    let address = address();
    let a = start("a", address);
    drop(connect(address));
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let noise: Vec<_> = (0..4_u8)
        .map(|kind| {
            let (stop, made) = (Arc::clone(&stop), Arc::clone(&made));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) && made.fetch_add(1, Ordering::Relaxed) < 2000 {
                    // The coordinator may be gone by now.
                    let Ok(mut stream) = TcpStream::connect(address) else { break };
                    let _ = stream.write_all(&vec![kind * 50; 700]);
                    thread::sleep(Duration::from_millis(2));
                }
            })
        })
        .collect();
    let pending = thread::spawn(move || {
        for _ in 0..10 {
            let token = Token::new(&TOKEN.replace('0', "1")).unwrap();
            match Coordination::join(JoinConfig { token, ..config("b", address) }) {
                Err(Error::Refused(why)) => assert!(why.contains("another token"), "{why}"),
                Err(error) => panic!("{error}"),
                Ok(_) => panic!("accepted"),
            }
        }
    });
    pending.join().unwrap();
    let began = Instant::now();
    while made.load(Ordering::Relaxed) < 100 {
        assert!(began.elapsed() < Duration::from_secs(4));
        thread::sleep(Duration::from_millis(2));
    }
    all_parts_succeed(address, a);
    stop.store(true, Ordering::Relaxed);
    noise.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Allows a program few processes and threads: by a control group of its own, which goes when this is dropped, or, where there is
/// none, by a limit of another user.
enum FewTasks {
    Group(PathBuf),
    OtherUser,
}

const MOST_TASKS: &str = "8";

impl FewTasks {
    fn new() -> Result<Self, &'static str> {
        let folder = PathBuf::from(format!("/sys/fs/cgroup/pids/weir-test-{}", std::process::id()));
        if std::fs::create_dir(&folder).is_ok() {
            let group = FewTasks::Group(folder.clone());
            std::fs::write(folder.join("pids.max"), MOST_TASKS).map_err(|_| "pids.max cannot be set")?;
            return Ok(group);
        }
        if !rustix::process::geteuid().is_root() {
            return Err("no pids controller of version 1, and not root");
        }
        Ok(FewTasks::OtherUser)
    }

    /// A command that runs this program with few tasks.
    fn command(&self) -> Command {
        let program = std::env::current_exe().unwrap();
        let mut command;
        match self {
            FewTasks::Group(folder) => {
                // It enters the group before it is a program with threads.
                let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", folder.display());
                command = Command::new("sh");
                command.args(["-c", &enter, "sh"]).arg(program);
            }
            FewTasks::OtherUser => {
                command = Command::new("prlimit");
                command.args([&format!("--nproc={MOST_TASKS}"), "--"]).arg(program).uid(65_532).gid(65_532);
            }
        }
        command
    }
}

impl Drop for FewTasks {
    fn drop(&mut self) {
        if let FewTasks::Group(folder) = self {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The environment variable that makes the next test a coordinator.
const CHILD: &str = "WEIR_TEST_COORDINATOR";

#[test]
#[ignore = "a part of `a_coordinator_that_may_have_few_threads_serves_on`"]
fn coordinator_of_another_test() {
    let Ok(address) = std::env::var(CHILD) else { return };
    part("a", address.parse().unwrap()).unwrap();
}

/// Runs a coordinator by a command whose words end with this program; 300 idle unauthenticated connections come before the other hosts.
fn serves_on(mut command: Command) {
    let address = address();
    let mut child = command
        .args(["--exact", "coordinator_of_another_test", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, address.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let idle: Vec<TcpStream> = (0..300).map(|_| connect(address)).collect();
    let others = [start("b", address), start("s", address)];
    let done: Vec<_> = others.into_iter().map(|host| host.join().unwrap()).collect();
    if done.iter().any(Result::is_err) {
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    for record in done {
        assert!(record.unwrap().clocks.is_some());
    }
    assert!(status.success(), "{status}");
    drop(idle);
}

#[test]
fn a_coordinator_that_may_have_few_threads_serves_on() {
    match FewTasks::new() {
        Ok(few) => serves_on(few.command()),
        Err(why) => eprintln!("skipped: {why}"),
    }
}

#[test]
fn a_coordinator_that_may_have_few_descriptors_serves_on() {
    let mut command = Command::new("prlimit");
    command.args(["--nofile=24", "--"]).arg(std::env::current_exe().unwrap());
    serves_on(command);
}
