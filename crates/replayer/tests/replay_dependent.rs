//! Requests that wait for others, against a device whose speed is known.

mod common;

use std::time::Duration;

use common::{patterned, read, send};
use weir_host::steal::{in_time, undisturbed};
use weir_records::Request;
use weir_replayer::{Dependent, Inference, Layout, Options, Route, Targets, replay};

const MS: i64 = 1_000_000;
const INFERENCE: Inference = Inference { window_ns: 20 * MS, within_client: false, think_scale: 1.0 };

/// A recorded closed loop of one client: 10 ms of service and 2 ms of thought for each request.
fn recorded(count: u64) -> Vec<Request> {
    (0..count)
        .map(|number| {
            let at_ns = number as i64 * 12 * MS;
            Request {
                submitted_ns: Some(at_ns),
                completed_ns: Some(at_ns + 10 * MS),
                deadline_ns: Some(at_ns + 30 * MS),
                ..read(number, at_ns, number % 16 * 4096, 4096)
            }
        })
        .collect()
}

#[test]
fn a_faster_device_is_asked_sooner_and_thoughts_take_as_long() {
    undisturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        patterned(&path, 1 << 20, None, 0);
        let layout = Layout { default: Some(Route::to(&path)), ..Layout::default() };
        let targets = Targets::open(&layout).unwrap();
        let options = Options { dependencies: true, ..Options::default() };
        let mut rows = Vec::new();
        let stream = Dependent::new(recorded(100).into_iter(), INFERENCE);
        let fidelity = replay(stream, &targets, &options, |row| rows.push(row)).unwrap();
        rows.sort_by_key(|row| row.request);
        assert_eq!((rows.len(), fidelity.completed, fidelity.max_in_flight), (100, 100, 1));
        for pair in rows.windows(2) {
            let completed_ns = pair[0].completed_ns.unwrap();
            assert_eq!(pair[1].intended_ns, completed_ns + 2 * MS, "a think time after the one before");
            assert_eq!(pair[1].deadline_ns, Some(pair[1].intended_ns + 30 * MS));
            assert!(pair[1].submitted_ns.unwrap() >= pair[1].intended_ns);
        }
        // 1.2 s with the recorded service, 0.2 s of thoughts alone.
        let took_ns = rows[99].completed_ns.unwrap();
        in_time((198 * MS..600 * MS).contains(&took_ns), format_args!("{took_ns}"));
        // Without dependencies the recorded times are kept.
        let (rows, _) = send(recorded(20), &path, false, &Options::default());
        assert_eq!(rows[19].intended_ns, 19 * 12 * MS);
    });
}

#[test]
fn who_waits_for_one_that_is_refused_or_stopped_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    patterned(&path, 1 << 20, None, 0);
    let targets = Targets::open(&Layout { default: Some(Route::to(&path)), ..Layout::default() }).unwrap();
    let mut stream = recorded(50);
    stream[10].offset = 1 << 30;
    let options = Options { dependencies: true, grace: Duration::from_secs(1), ..Options::default() };
    let mut rows = Vec::new();
    let fidelity =
        replay(Dependent::new(stream.into_iter(), INFERENCE), &targets, &options, |row| rows.push(row))
            .unwrap();
    assert_eq!((rows.len(), fidelity.planned, fidelity.refused, fidelity.sent), (50, 50, 1, 49));
    options.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    rows.clear();
    let stream = Dependent::new(recorded(50).into_iter(), INFERENCE);
    let fidelity = replay(stream, &targets, &options, |row| rows.push(row)).unwrap();
    assert_eq!((rows.len(), fidelity.planned, fidelity.stopped, fidelity.sent), (50, 50, 50, 0));
    let two = Options { dependencies: true, rings: Some(2), ..Options::default() };
    let refused = replay(Dependent::new(recorded(1).into_iter(), INFERENCE), &targets, &two, |_| ());
    assert!(refused.unwrap_err().to_string().contains("1 where requests depend"));
}
