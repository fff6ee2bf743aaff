//! Best-effort requests: their order, their servers, and what of the slack they are charged.

use weir_scheduler::{Class, Op, Request, TrafficKind};

use crate::harness::{best_effort, lateness, misses, policy, read, run, stream};

fn exactly(request: &Request) -> u64 {
    u64::from(request.size_bytes)
}

fn at(offset_bytes: u64, op: Op) -> Request {
    Request { offset_bytes, op, ..read(0, 0, 10) }
}

/// Offsets in the order of service of requests that arrive at the same time.
fn order(classes: &[Class], settings: &[(&str, &str)], requests: &[Request]) -> Vec<u64> {
    let (served, waiting) = run(&mut *policy("deltal", classes, settings), requests, exactly);
    assert_eq!(waiting, 0);
    served.iter().map(|served| served.request.offset_bytes).collect()
}

#[test]
fn orders_of_best_effort() {
    let classes = [best_effort(None)];
    let requests =
        [at(500, Op::Write), at(300, Op::Read), at(100, Op::Write), at(700, Op::Read), at(200, Op::Read)];
    assert_eq!(order(&classes, &[], &requests), [500, 300, 100, 700, 200]);
    assert_eq!(order(&classes, &[("order", "scan")], &requests), [100, 200, 300, 500, 700]);
    assert_eq!(order(&classes, &[("order", "sync")], &requests), [300, 700, 200, 500, 100]);
    assert_eq!(order(&classes, &[("order", "sync-scan")], &requests), [200, 300, 700, 500, 100]);
}

#[test]
fn classes_can_say_what_is_synchronous() {
    let copy = Class { kind: TrafficKind::BestEffort, ..best_effort(None) };
    let classes = [copy, best_effort(None)];
    let requests = [at(500, Op::Read), Request { class: 1, ..at(300, Op::Write) }, at(100, Op::Read)];
    assert_eq!(order(&classes, &[("order", "sync"), ("sync", "class")], &requests), [300, 500, 100]);
    assert_eq!(order(&classes, &[("order", "sync"), ("sync", "op")], &requests), [500, 100, 300]);
}

/// Writes of a client, or of a class, are done in the order in which they came, whatever the order of the rest.
#[test]
fn writes_keep_their_order() {
    let classes = [best_effort(None)];
    let of = |stream, offset| Request { stream, ..at(offset, Op::Write) };
    let requests = [of(0, 500), of(0, 100), of(1, 400), of(1, 300), at(200, Op::Read)];
    let scan = ("order", "scan");
    assert_eq!(order(&classes, &[scan], &requests), [100, 200, 300, 400, 500]);
    // Up: 200, 400, 500; the withheld requests are behind the arm by then.
    assert_eq!(order(&classes, &[scan, ("writes", "stream")], &requests), [200, 400, 500, 300, 100]);
    assert_eq!(order(&classes, &[scan, ("writes", "class")], &requests), [200, 500, 100, 400, 300]);
}

/// A request that is too long for ΔL is passed over, one that has to wait until the account is full again is not.
#[test]
fn who_waits_for_slack_and_who_for_ever() {
    // ΔL is 20, the whole rest of a period.
    let classes = [stream((80, 100)), best_effort(None)];
    let arrivals = [read(0, 0, 80), read(0, 1, 21), read(0, 1, 15), read(0, 1, 6), read(0, 1, 5)];
    let (served, waiting) = run(&mut *policy("deltal", &classes, &[]), &arrivals, exactly);
    let begun: Vec<(u32, u64)> =
        served.iter().map(|served| (served.request.size_bytes, served.begun_ns)).collect();
    // 15 leave 5 of the account: 6 have to wait, and 5 behind them too.
    assert_eq!(begun, [(15, 0), (80, 15), (6, 95), (5, 101)]);
    assert_eq!((misses(&classes, &served), waiting), (0, 1));
}

/// A request served ahead is charged its estimate or its actual time.
#[test]
fn debit_of_what_was_shorter_than_its_bound() {
    let classes = [stream((80, 100)), best_effort(None)];
    let arrivals = [read(0, 0, 80), read(0, 1, 15), read(0, 1, 10)];
    let half = |request: &Request| if request.class == 1 { 5 } else { 80 };
    let begun = |settings: &[(&str, &str)]| -> Vec<u64> {
        let (served, _) = run(&mut *policy("deltal", &classes, settings), &arrivals, half);
        served.iter().map(|served| served.begun_ns).collect()
    };
    // 15 of 20 are charged: the next one waits for the stream.
    assert_eq!(begun(&[]), [0, 5, 85]);
    assert_eq!(begun(&[("debit", "actual")]), [0, 5, 10]);
}

/// A best-effort request that began before a release delays it from then on (unlike the thesis).
#[test]
fn the_overlap_of_service_and_release_is_charged() {
    let classes = [stream((80, 100)), best_effort(None)];
    let arrivals = [read(0, 1, 20), read(1, 0, 80), read(0, 1, 20)];
    let late_ns = |accounting: &str| {
        let mut deltal = policy("deltal", &classes, &[("accounting", accounting)]);
        let (served, waiting) = run(&mut *deltal, &arrivals, exactly);
        assert_eq!((served.len(), waiting), (3, 0));
        lateness(&classes, &served)[0].1
    };
    assert_eq!(late_ns("overlap"), -1);
    // 20 before it and 19 after it.
    assert_eq!(late_ns("free"), 19);
}

/// A contract of a best-effort class: so much of it in every period is served with a deadline, ahead of the rest.
#[test]
fn a_server_serves_best_effort_when_there_is_no_slack() {
    let server = |contract| {
        let classes = [stream((70, 100)), best_effort(contract), best_effort(None)];
        let mut arrivals: Vec<Request> = (0..10).map(|period| read(period * 100, 0, 70)).collect();
        // The rest uses up the slack as it comes.
        arrivals.extend((0..200).map(|_| read(0, 2, 10)));
        arrivals.extend((0..10).map(|_| read(5, 1, 10)));
        let (served, _) = run(&mut *policy("deltal", &classes, &[]), &arrivals, exactly);
        assert_eq!(misses(&classes, &served), 0);
        let last = served.iter().filter(|served| served.request.class == 1).map(|served| served.done_ns);
        last.max().unwrap()
    };
    // Two in every 200: the last of ten is due at 1005.
    assert!(server(Some((20, 200))) <= 1005);
    // Behind 200 others.
    assert!(server(None) > 2000);
}

/// A contract does not hold best effort back: while there is slack its requests go before those without one.
#[test]
fn a_server_s_requests_go_first_in_slack() {
    let classes = [stream((70, 100)), best_effort(Some((10, 100))), best_effort(None)];
    // ΔL is 20: two of 10 go ahead of the stream.
    let arrivals = [read(0, 0, 70), read(0, 2, 10), read(0, 2, 10), read(1, 1, 10)];
    for name in ["deltal", "lst"] {
        let (served, _) = run(&mut *policy(name, &classes, &[]), &arrivals, exactly);
        let order: Vec<u16> = served.iter().map(|served| served.request.class).collect();
        assert_eq!((order[0], order[1], misses(&classes, &served)), (2, 1, 0), "{name}");
    }
}

/// A request served before its release leaves its slot to the next one, or uses it.
#[test]
fn what_is_served_early_keeps_or_spends_its_slot() {
    let classes = [stream((10, 100)), best_effort(Some((10, 50)))];
    let arrivals = [read(0, 1, 10), read(0, 1, 10), read(0, 1, 10), read(55, 0, 10), read(55, 1, 10)];
    let order = |early: &str| -> Vec<u16> {
        let (served, _) =
            run(&mut *policy("edf-background", &classes, &[("early", early)]), &arrivals, exactly);
        assert_eq!(served[2].begun_ns, 20);
        served.iter().map(|served| served.request.class).collect()
    };
    // Due at 105, before the stream's 155; or released at 150 only.
    assert_eq!(order("keep"), [1, 1, 1, 1, 0]);
    assert_eq!(order("spend"), [1, 1, 1, 0, 1]);
}

/// Longer than the contract: trusted, or best effort.
#[test]
fn requests_that_are_longer_than_their_contract() {
    let classes = [stream((10, 100)), stream((10, 100))];
    let arrivals = [read(0, 0, 20), read(0, 1, 10)];
    let order = |long: &str| -> Vec<u64> {
        let (served, _) =
            run(&mut *policy("edf-background", &classes, &[("long", long)]), &arrivals, exactly);
        served.iter().map(|served| served.request.tag).collect()
    };
    assert_eq!(order("trust"), [0, 1]);
    assert_eq!(order("best-effort"), [1, 0]);
}
