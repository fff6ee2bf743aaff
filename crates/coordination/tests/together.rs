//! Hosts as threads of this process, over loopback.

mod common;

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{TOKEN, address, config, join, timeouts};
use weir_coordination::{Coordination, Error, JoinConfig, Record, Role, Roster, Timeouts, Token};
use weir_host::clock::monotonic_ns;

/// A whole part, which asks for so long.
fn part(me: &str, address: SocketAddr, asks: Duration) -> Result<(Record, i64), Error> {
    let mut coordination = join(me, address, &Arc::default())?;
    let epoch_ns = coordination.begin()?;
    let left_ns = epoch_ns - monotonic_ns();
    if coordination.record().role == Role::Server {
        coordination.wait_for_clients()?;
    } else {
        thread::sleep(asks + Duration::from_nanos(u64::try_from(left_ns).unwrap()));
    }
    let record = coordination.end()?;
    Ok((record, monotonic_ns()))
}

#[test]
fn all_begin_at_once_and_end_together() {
    let address = address();
    let started = Instant::now();
    let hosts = [("s", 0), ("b", 700), ("a", 50)]
        .map(|(me, asks)| thread::spawn(move || part(me, address, Duration::from_millis(asks)).unwrap()));
    let done = hosts.map(|host| host.join().unwrap());
    assert!(started.elapsed() < Duration::from_secs(4));
    let epoch_ns = done[2].0.epoch_ns.unwrap();
    for (record, ended_ns) in &done {
        assert_eq!((record.epoch_ns, &record.ended), (Some(epoch_ns), &None));
        // One machine, one clock: the true offset is 0.
        let clocks = record.clocks.unwrap();
        assert!(clocks.start.offset_ns.abs() <= clocks.start.bound_ns, "{clocks:?}");
        assert!(clocks.end.is_none_or(|end| end.offset_ns.abs() <= end.bound_ns), "{clocks:?}");
        assert_eq!(clocks.end.is_some(), record.host != "a");
        assert!((record.local_epoch_ns.unwrap() - epoch_ns).abs() <= clocks.bound_ns());
        // Nobody ends before the client that asks longest.
        assert!(*ended_ns >= epoch_ns + 700_000_000);
    }
    assert_eq!(done[1].0.client, Some(1));
    assert_eq!((done[0].0.client, done[0].0.role), (None, Role::Server));
}

#[test]
fn a_host_that_goes_ends_the_run_for_all() {
    for (lost, others) in [("b", ["a", "s"]), ("a", ["b", "s"]), ("s", ["a", "b"])] {
        let address = address();
        let waiting = others.map(|me| {
            thread::spawn(move || {
                let stop = Arc::new(AtomicBool::new(false));
                let mut coordination = join(me, address, &stop).unwrap();
                coordination.begin().unwrap();
                let error = coordination.end().unwrap_err();
                assert!(stop.load(Ordering::Relaxed));
                (error, coordination.record())
            })
        });
        let mut coordination = join(lost, address, &Arc::default()).unwrap();
        coordination.begin().unwrap();
        thread::sleep(Duration::from_millis(400));
        drop(coordination);
        for host in waiting {
            let (error, record) = host.join().unwrap();
            let Error::Ended(ended) = error else { panic!("{error}") };
            assert_eq!((ended.host.as_str(), record.ended.as_ref()), (lost, Some(&ended)));
            let after_ns = ended.after_ns.unwrap();
            // It began 0.1 s after all were ready.
            assert!((250_000_000..2_000_000_000).contains(&after_ns), "{after_ns}");
            assert!(
                ended.is_lost() && ended.to_string().starts_with(&format!("host {lost} was lost after ")),
                "{ended}"
            );
        }
    }
}

#[test]
fn a_host_that_cannot_go_on_says_why() {
    let address = address();
    let a = thread::spawn(move || {
        join("a", address, &Arc::default()).and_then(|mut coordination| coordination.begin())
    });
    let s = thread::spawn(move || {
        join("s", address, &Arc::default()).and_then(|mut coordination| coordination.begin())
    });
    join("b", address, &Arc::default()).unwrap().fail("/mnt/x: nothing is mounted there");
    for host in [a, s] {
        let error = host.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "host b failed: /mnt/x: nothing is mounted there");
    }
}

#[test]
fn a_host_that_falls_silent_is_lost() {
    let address = address();
    let s = thread::spawn(move || part("s", address, Duration::ZERO));
    // What `b` says is passed on until it is ready; then nothing is.
    let between = common::Between::start(address, |line, sent| {
        sent.push(line.to_vec());
        !line.windows(7).any(|word| word == b"\"ready\"")
    });
    let to = between.address;
    let held = thread::spawn(move || {
        join("b", to, &Arc::default()).and_then(|mut coordination| coordination.begin())
    });
    let mut a = join("a", address, &Arc::default()).unwrap();
    a.begin().unwrap();
    let began = Instant::now();
    let error = a.end().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(error.to_string().starts_with("host b was lost after "), "{error}");
    assert!(s.join().unwrap().unwrap_err().to_string().starts_with("host b was lost after "));
    drop(between);
    let _ = held.join().unwrap();
}

#[test]
fn who_does_not_come_is_not_waited_for_for_ever() {
    let few = Timeouts { patience: Duration::from_millis(300), ..timeouts() };
    let address = address();
    for (me, lost) in [("a", "b"), ("b", "a")] {
        let came = Coordination::join(JoinConfig { timeouts: few, ..config(me, address) });
        let error = came.and_then(|mut coordination| coordination.begin()).unwrap_err();
        assert_eq!(error.to_string(), format!("host {lost} was lost before the run began"));
    }
}

#[test]
fn hosts_that_may_not_join_are_refused_with_the_reason() {
    let address = address();
    let a = thread::spawn(move || part("a", address, Duration::from_millis(10)));
    let come = |me: &str, token: &str, run: &str| {
        let servers = ["s".to_owned(), "candidate".to_owned()];
        let roster = Roster::new(me, &["a".to_owned(), "b".to_owned()], &servers).unwrap();
        let (token, run) = (Token::new(token).unwrap(), run.to_owned());
        Coordination::join(JoinConfig { roster, token, run, ..config("b", address) })
    };
    let refused = |met: Result<Coordination, Error>, says: &str| match met {
        Err(Error::Refused(why)) => assert!(why.contains(says), "{why}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{says}: accepted"),
    };
    refused(come("b", &TOKEN.replace('0', "1"), "run"), "host `b` has another token");
    refused(come("b", TOKEN, "another"), "asks for run another, this is run");
    refused(come("candidate", TOKEN, "run"), "does not take part");
    let b = join("b", address, &Arc::default()).unwrap();
    refused(join("b", address, &Arc::default()), "has already joined");
    // Invalid connections do not disturb hosts that have joined.
    TcpStream::connect(address).unwrap().write_all(&[0xff; 9000]).unwrap();
    let b = thread::spawn(move || {
        let mut coordination = b;
        coordination.begin()?;
        coordination.end()
    });
    let s = thread::spawn(move || part("s", address, Duration::ZERO));
    assert!(a.join().unwrap().is_ok() && b.join().unwrap().is_ok() && s.join().unwrap().is_ok());
}

#[test]
fn a_roster_has_two_clients_with_names_of_their_own() {
    let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (me, clients, servers, says) in [
        ("a", "a", "s", "2 or more"),
        ("a", "a b", "b", "twice"),
        ("x", "a b", "s", "neither"),
        ("a", "a ../b", "", "letters"),
        ("a", "a .b", "", "letters"),
    ] {
        let error = Roster::new(me, &names(clients), &names(servers)).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn servers_are_told_once_that_all_clients_are_done() {
    let address = address();
    let roster = |me: &str| {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        Roster::new(me, &names("a b"), &names("s t")).unwrap()
    };
    let part = move |me: &str, rests_ms: u64| {
        let mut coordination = Coordination::join(JoinConfig { roster: roster(me), ..config("b", address) })?;
        coordination.begin()?;
        if me == "s" || me == "t" {
            coordination.wait_for_clients()?;
        }
        // Meanwhile the other server is done.
        thread::sleep(Duration::from_millis(rests_ms));
        coordination.end()
    };
    let hosts =
        [("a", 0), ("b", 0), ("s", 0), ("t", 300)].map(|(me, ms)| thread::spawn(move || part(me, ms)));
    for host in hosts {
        host.join().unwrap().unwrap();
    }
}
