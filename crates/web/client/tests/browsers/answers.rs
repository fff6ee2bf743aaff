//! Tests that every kind of response has its row and that no request is lost.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use crate::common::{Reply, TestServer, ask, documents};
use weir_web_client::Options;

fn errors(outcomes: &[weir_web_client::Outcome]) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    outcomes.iter().for_each(|outcome| *counts.entry(outcome.error).or_default() += 1);
    counts
}

#[test]
fn right_answers_in_any_shape_are_right() {
    let documents = documents(5, 12_288);
    let shapes = [
        Reply::Right,
        Reply::Pieces(1000),
        Reply::Chunked(4000),
        Reply::Chunked(1),
        Reply::Closing { said: true },
        Reply::UntilClose,
        Reply::Slow(Duration::from_millis(5)),
        Reply::Surplus,
    ];
    let server = TestServer::new(&documents, move |nth| shapes[nth as usize % shapes.len()]);
    let (outcomes, report) = ask(&server.url(), &documents, 3, 40, &Options::default());
    assert_eq!(errors(&outcomes), BTreeMap::from([(0, 120)]), "{report:?}");
    let class = &report.classes[0];
    assert_eq!((class.requests, class.answered, class.failed), (120, 120, 0));
    assert!(outcomes.iter().all(|row| row.body_bytes == 12_288 && row.http_status == 200));
    assert!(class.surplus >= 15, "each surplus answer costs its connection: {}", class.surplus);
    assert_eq!(class.connections, server.connections.load(std::sync::atomic::Ordering::Relaxed));
    for (index, row) in (0..).zip(&outcomes) {
        assert_eq!(row.request, index);
        let (submitted, completed) = (row.submitted_ns.unwrap(), row.completed_ns.unwrap());
        assert!(row.intended_ns <= submitted && submitted <= completed, "{row:?}");
    }
    assert!(outcomes.is_sorted_by_key(|row| row.intended_ns));
}

#[test]
fn every_failure_has_its_number() {
    let documents = documents(3, 65_536);
    // Longer than a busy machine stops for.
    let options = Options { timeout: Duration::from_secs(2), ..Options::default() };
    for (reply, errno) in [
        (Reply::Wrong, libc::EBADMSG),
        (Reply::Less, libc::EBADMSG),
        (Reply::Short, libc::EIO),
        (Reply::Nothing, libc::EIO),
        (Reply::Reset, libc::ECONNRESET),
        (Reply::Garbage, libc::EPROTO),
        (Reply::Status(204), libc::EPROTO),
        (Reply::Status(302), libc::EPROTO),
        (Reply::Status(404), libc::ENOENT),
        (Reply::Status(403), libc::EACCES),
        (Reply::Status(503), libc::EAGAIN),
        (Reply::Status(500), libc::EREMOTEIO),
        (Reply::Silent(Duration::from_secs(3)), libc::ETIMEDOUT),
    ] {
        // The second of four requests fails; those around it do not.
        let server = TestServer::new(&documents, move |nth| if nth == 1 { reply } else { Reply::Right });
        let (outcomes, report) = ask(&server.url(), &documents, 1, 4, &options);
        let found: Vec<i32> = outcomes.iter().map(|row| row.error).collect();
        // A kept connection that closes before anything came is made anew, and the request sent again.
        let expected = if reply == Reply::Nothing { [0; 4] } else { [0, errno, 0, 0] };
        assert_eq!(found, expected, "{reply:?}");
        assert_eq!(report.classes[0].resent, u64::from(reply == Reply::Nothing), "{reply:?}");
        assert_eq!(report.classes[0].requests, 4, "{reply:?}");
        assert_eq!(outcomes[1].completed_ns.is_none(), errno == libc::ETIMEDOUT, "{reply:?}");
        if let Reply::Status(status) = reply {
            assert_eq!(outcomes[1].http_status, status);
        }
        if expected[1] != 0 {
            let first = &report.classes[0].first_failures[&errno];
            assert!(first.starts_with("GET /000002.dat"), "{first}");
        }
    }
}

#[test]
fn a_server_that_always_closes_without_an_answer_is_asked_once_per_request() {
    let documents = documents(1, 4096);
    let server = TestServer::new(&documents, |_| Reply::Nothing);
    let (outcomes, report) = ask(&server.url(), &documents, 1, 5, &Options::default());
    assert_eq!(errors(&outcomes), BTreeMap::from([(libc::EIO, 5)]));
    assert_eq!(report.classes[0].resent, 0);
    assert_eq!(server.requests.load(std::sync::atomic::Ordering::Relaxed), 5);
}

#[test]
fn a_connection_that_closes_unasked_is_made_anew() {
    let documents = documents(1, 4096);
    let server = TestServer::new(&documents, |_| Reply::Closing { said: false });
    let (outcomes, report) = ask(&server.url(), &documents, 4, 50, &Options::default());
    assert_eq!(errors(&outcomes), BTreeMap::from([(0, 200)]), "{report:?}");
    assert!(report.classes[0].connections >= 200);
}

#[test]
fn a_refused_connection_is_a_row() {
    let documents = documents(1, 4096);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (outcomes, report) = ask(&format!("http://{address}"), &documents, 2, 3, &Options::default());
    assert_eq!(errors(&outcomes), BTreeMap::from([(libc::ECONNREFUSED, 6)]));
    assert_eq!((report.classes[0].answered, report.classes[0].failed), (0, 6));
    assert!(outcomes.iter().all(|row| row.submitted_ns.is_none() && row.completed_ns.is_some()));
}

#[test]
fn a_run_that_is_stopped_gives_up_what_is_outstanding() {
    let documents = documents(1, 4096);
    let server = TestServer::new(&documents, |_| Reply::Silent(Duration::from_secs(4)));
    let options = Options::default();
    let stop = std::sync::Arc::clone(&options.stop);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (outcomes, report) = ask(&server.url(), &documents, 3, 2, &options);
    stopper.join().unwrap();
    assert_eq!(errors(&outcomes), BTreeMap::from([(libc::ECANCELED, 3)]));
    assert!(report.stopped && report.measured_s < 4.0, "{}", report.measured_s);
}

#[test]
fn threads_share_the_clients_and_rows_are_still_in_order() {
    let documents = documents(10, 8192);
    let server = TestServer::new(&documents, |_| Reply::Right);
    let options = Options { threads: 3, ..Options::default() };
    let (outcomes, report) = ask(&server.url(), &documents, 10, 100, &options);
    assert_eq!(errors(&outcomes), BTreeMap::from([(0, 1000)]));
    assert_eq!(report.threads, 3);
    assert!(outcomes.is_sorted_by_key(|row| row.intended_ns));
    assert!((0..).zip(&outcomes).all(|(number, row)| row.request == number));
    for client in 0..10 {
        assert_eq!(outcomes.iter().filter(|row| row.client == client).count(), 100);
    }
}
