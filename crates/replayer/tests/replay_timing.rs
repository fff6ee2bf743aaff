//! Requests leave on time, whatever the device does. Bounds are coarse: the machine may be busy.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{patterned, poisson, read, send};
use weir_host::clock;
use weir_host::steal::{in_time, undisturbed};
use weir_records::Request;
use weir_replayer::{Options, Reordered};

const LENGTH: u64 = 16 << 20;

#[test]
fn a_poisson_stream_leaves_on_time() {
    undisturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        patterned(&path, LENGTH, None, 0);
        let stream = poisson(2000.0, 1.0, LENGTH, 1);
        let (rows, fidelity) = send(stream, &path, false, &Options::default());
        println!("{}", serde_json::to_string_pretty(&fidelity).unwrap());
        in_time(fidelity.lateness_median_ns < 2_000_000, format_args!("{fidelity:?}"));
        // Over 1 s: coarse, as one stall of the machine at either end is.
        in_time(fidelity.span_error.unwrap().abs() < 0.1, format_args!("{fidelity:?}"));
        assert!(rows.iter().all(|row| row.submitted_ns.unwrap() >= row.intended_ns), "one left early");
    });
}

#[test]
fn time_is_counted_from_the_epoch_and_scaled() {
    undisturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        patterned(&path, LENGTH, None, 0);
        let stream: Vec<Request> = (0..5)
            .map(|i| Request {
                deadline_ns: Some(i * 20_000_000 + 7_000_000),
                ..read(i as u64, i * 20_000_000, 0, 4096)
            })
            .collect();
        let epoch = clock::monotonic_ns() + 50_000_000;
        let options = Options { epoch_monotonic_ns: Some(epoch), timescale: 2.0, ..Options::default() };
        let (rows, fidelity) = send(stream, &path, false, &options);
        let took_ns = clock::monotonic_ns() - epoch;
        assert_eq!(fidelity.epoch_monotonic_ns, epoch);
        assert!(took_ns >= 160_000_000, "twice four times 20 ms, took {took_ns} ns");
        for (i, row) in (0..).zip(&rows) {
            assert_eq!(row.intended_ns, i * 40_000_000);
            assert_eq!(row.deadline_ns, Some(i * 40_000_000 + 7_000_000), "the time allowed is not scaled");
            let submitted = row.submitted_ns.unwrap();
            assert!(submitted >= row.intended_ns, "{row:?}");
            in_time(submitted < row.intended_ns + 30_000_000, format_args!("{row:?}"));
        }
    });
}

#[test]
fn a_stopped_replay_accounts_for_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    patterned(&path, LENGTH, None, 0);
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options { stop: Arc::clone(&stop), ..Options::default() };
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
    });
    let stream = poisson(1000.0, 60.0, LENGTH, 1);
    let planned = stream.len();
    let begin = clock::monotonic_ns();
    let (rows, fidelity) = send(stream, &path, false, &options);
    stopper.join().unwrap();
    assert!(clock::monotonic_ns() - begin < 20_000_000_000);
    assert_eq!((rows.len(), fidelity.planned), (planned, planned as u64));
    assert_eq!(fidelity.sent + fidelity.stopped, planned as u64);
    assert_eq!(rows.iter().filter(|row| row.submitted_ns.is_some()).count() as u64, fidelity.sent);
    assert!(fidelity.sent > 50 && fidelity.stopped > 50_000, "{fidelity:?}");
}

#[test]
fn memory_for_data_in_flight_is_bounded_and_waiting_for_it_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    patterned(&path, LENGTH, None, 0);
    // A burst of 64 MiB with room for one.
    let stream: Vec<Request> = (0..64).map(|i| read(i, 0, (i % 16) << 20, 1 << 20)).collect();
    let options = Options { max_buffer_bytes: 1 << 20, ..Options::default() };
    let (rows, fidelity) = send(stream, &path, false, &options);
    assert!(rows.iter().all(|row| row.status == 0 && row.completed_ns.is_some()));
    assert_eq!((fidelity.completed, fidelity.max_in_flight), (64, 1));
    assert!(fidelity.held_back > 0);
}

#[test]
fn bad_options_are_refused() {
    for options in [
        Options { timescale: 0.0, ..Options::default() },
        Options { timescale: f64::NAN, ..Options::default() },
        Options { fifo_priority: Some(100), ..Options::default() },
    ] {
        let targets = weir_replayer::Targets::open(&weir_replayer::Layout::default()).unwrap();
        let refused = weir_replayer::replay(std::iter::empty::<Request>(), &targets, &options, |_| ());
        assert!(refused.unwrap_err().to_string().contains("expected"));
    }
}

proptest::proptest! {
    #[test]
    fn a_disordered_stream_is_put_in_order(times in proptest::collection::vec(0_i64..50, 0..200)) {
        let stream: Vec<Request> = (0..).zip(&times).map(|(i, &at)| read(i, at, 0, 4096)).collect();
        let mut sorted = stream.clone();
        sorted.sort_by_key(|request| (request.intended_ns, request.request));
        let mut latest = i64::MIN;
        let mut disorder = 0;
        for &at in &times {
            latest = latest.max(at);
            disorder = disorder.max(latest - at);
        }
        let reordered: Vec<Request> = Reordered::new(stream.into_iter(), disorder).collect();
        proptest::prop_assert_eq!(reordered, sorted);
    }
}
