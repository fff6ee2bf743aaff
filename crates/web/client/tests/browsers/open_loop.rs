//! Tests of the open loop: a server that stalls delays responses, not requests, and response times include the wait.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::common::{Reply, TestServer};
use weir_host::steal::{in_time, undisturbed};
use weir_web_client::{Folders, Options, Outcome, Report, Server, Visit, Visitors, browse};
use weir_workload::{
    Access, Arrivals, Distribution, Files, Popularity, Sizes, Stream, StreamOptions, Workload,
};

fn workload(arrivals: Arrivals) -> Workload {
    Workload {
        name: "site".to_owned(),
        description: "documents of 8 KiB".to_owned(),
        source: "a test".to_owned(),
        arrivals,
        time_scale: 1.0,
        files: Files {
            count: 20,
            size: Distribution::Fixed { bytes: 8192 },
            stratified: false,
            popularity: Popularity::Zipf { alpha: 0.9 },
        },
        sizes: Sizes::WholeFile,
        access: Access::Random,
        read_share: 1.0,
        deadline: None,
        // Documents are requested whole nevertheless.
        block_bytes: Some(4096),
        alignment_bytes: 4096,
        targets: None,
    }
}

fn visitors(visit: Visit, duration: Duration, threads: usize) -> Visitors {
    Visitors {
        class: "site".to_owned(),
        seed: 5,
        folders: Some(Folders::One),
        visit,
        warmup_ns: 0,
        duration_ns: duration.as_nanos() as i64,
        folder: PathBuf::from("/"),
        threads,
    }
}

fn run(workload: &Workload, visitors: &Visitors, url: &str, options: &Options) -> (Vec<Outcome>, Report) {
    let class = visitors.class(workload, Server::new(url).unwrap()).unwrap();
    let mut outcomes = Vec::new();
    let report = browse(vec![class], options, |outcome| outcomes.push(outcome.clone())).unwrap();
    (outcomes, report)
}

#[test]
fn a_stall_shows_in_response_times_and_not_in_times_from_sending() {
    undisturbed(|| {
        let duration = Duration::from_secs(2);
        let workload = workload(Arrivals::Periodic { interval_ms: 5.0, in_step: false });
        // Few connections, as a browser has: most requests of the stall cannot be sent before it is over.
        let visit = Visit::Open { clients: 1, connections: 4 };
        let visitors = visitors(visit, duration, 1);
        let documents = Arc::new(visitors.documents(&workload).unwrap());
        let first = OnceLock::new();
        let server = TestServer::new(&documents, move |_| {
            // From 0.7 to 1.2 s after the first request the server does nothing.
            let since = first.get_or_init(Instant::now).elapsed();
            let (from, to) = (Duration::from_millis(700), Duration::from_millis(1200));
            if since >= from && since < to { Reply::Slow(to - since) } else { Reply::Right }
        });
        let options = Options { duration, ..Options::default() };
        let (outcomes, report) = run(&workload, &visitors, &server.url(), &options);
        assert_eq!(outcomes.len(), 400, "200 a second, stall or not");
        assert!(outcomes.iter().all(|row| row.error == 0 && row.body_bytes == 8192));
        // They were requested at the times of the workload.
        let stream = Stream::new(
            &Workload { block_bytes: None, ..workload.clone() },
            StreamOptions {
                class: "site".to_owned(),
                clients: 1,
                seed: 5,
                duration_ns: visitors.duration_ns,
                warmup_ns: 0,
                folder: PathBuf::from("/"),
            },
        );
        for (row, request) in outcomes.iter().zip(stream.unwrap()) {
            assert_eq!((row.intended_ns, row.document), (request.intended_ns, request.file));
        }
        let class = &report.classes[0];
        // 100 requests fall into the stall; they wait 250 ms in the mean, of 400 in all.
        assert!(class.response.p95_ns > 300_000_000, "{class:?}");
        assert!(class.response.mean_ns > 40e6, "{class:?}");
        // Only those on the four connections were sent before its end.
        in_time(class.service.p95_ns < 100_000_000, format_args!("{class:?}"));
        assert!(class.held_back >= 80, "{class:?}");
        assert!(class.connections <= 4);
        // The wait is the server's, not the driver's.
        in_time(report.lateness.p50_ns < 5_000_000, format_args!("{report:?}"));
    });
}

#[test]
fn connections_are_made_as_they_are_needed() {
    undisturbed(|| {
        let duration = Duration::from_millis(600);
        let workload = workload(Arrivals::Poisson { rate_per_s: 10.0 });
        let visitors = visitors(Visit::Open { clients: 30, connections: 500 }, duration, 2);
        let documents = Arc::new(visitors.documents(&workload).unwrap());
        let server = TestServer::new(&documents, |_| Reply::Slow(Duration::from_millis(50)));
        let options = Options { duration, threads: 2, ..Options::default() };
        let (outcomes, report) = run(&workload, &visitors, &server.url(), &options);
        let class = &report.classes[0];
        assert!((120..240).contains(&outcomes.len()), "{}", outcomes.len());
        assert_eq!((class.failed, class.held_back), (0, 0), "{class:?}");
        // 300 a second for 50 ms each: 15 at a time in the mean.
        assert!(class.connections >= 8, "{class:?}");
        in_time(class.connections < 150, format_args!("{class:?}"));
        let clients: std::collections::BTreeSet<u32> = outcomes.iter().map(|row| row.client).collect();
        assert!(clients.len() >= 25, "{clients:?}");
    });
}

#[test]
fn a_request_that_waits_too_long_for_a_connection_is_given_up() {
    let duration = Duration::from_millis(500);
    let workload = workload(Arrivals::Periodic { interval_ms: 10.0, in_step: true });
    let visitors = visitors(Visit::Open { clients: 1, connections: 1 }, duration, 1);
    let documents = Arc::new(visitors.documents(&workload).unwrap());
    let server = TestServer::new(&documents, |_| Reply::Silent(Duration::from_secs(1)));
    let options = Options { duration, timeout: Duration::from_millis(200), ..Options::default() };
    let (outcomes, report) = run(&workload, &visitors, &server.url(), &options);
    assert!((49..=50).contains(&outcomes.len()), "{}", outcomes.len());
    assert!(outcomes.iter().all(|row| row.error == libc::ETIMEDOUT && row.completed_ns.is_none()));
    let sent = outcomes.iter().filter(|row| row.submitted_ns.is_some()).count();
    assert!((1..outcomes.len()).contains(&sent), "{sent} of them had the connection");
    assert_eq!(report.classes[0].failed, outcomes.len() as u64);
}

#[test]
fn a_closed_loop_thinks_between_answers() {
    undisturbed(|| {
        let duration = Duration::from_millis(800);
        let workload = workload(Arrivals::Closed { depth: 1, think_us: 0, start_s: 0.0, rate_per_s: None });
        let visitors = visitors(Visit::Closed { clients: 20, think_ns: 40e6 }, duration, 1);
        let documents = Arc::new(visitors.documents(&workload).unwrap());
        let server = TestServer::new(&documents, |_| Reply::Right);
        let options = Options { duration, warmup: Duration::from_millis(100), ..Options::default() };
        let (outcomes, report) = run(&workload, &visitors, &server.url(), &options);
        // 20 clients that think for 40 ms: at most 500 a second; fewer where the machine is slow.
        assert!(outcomes.len() < 500, "{}", outcomes.len());
        in_time(outcomes.len() >= 100, outcomes.len());
        assert!(outcomes.iter().all(|row| row.error == 0));
        for client in 0..20 {
            let rows: Vec<_> = outcomes.iter().filter(|row| row.client == client).collect();
            let thought = |pair: &[&Outcome]| pair[1].intended_ns > pair[0].completed_ns.unwrap();
            assert!(rows.windows(2).all(thought), "{rows:?}");
        }
        let class = &report.classes[0];
        let warmup = outcomes.iter().filter(|row| row.warmup).count() as u64;
        assert!(warmup > 0 && class.warmup_requests == warmup);
        assert_eq!(class.requests + warmup, outcomes.len() as u64);
        assert!((class.requests_per_s - class.answered as f64 / 0.7).abs() < 1e-6);
    });
}

#[test]
fn workloads_that_are_no_documents_are_refused() {
    let visitors = visitors(Visit::Open { clients: 1, connections: 1 }, Duration::from_secs(1), 1);
    let server = || Server::new("http://127.0.0.1:9/").unwrap();
    let refused = |workload: &Workload| visitors.class(workload, server()).err().unwrap().to_string();
    let pieces = Workload {
        sizes: Sizes::Drawn(Distribution::Fixed { bytes: 4096 }),
        ..workload(Arrivals::Poisson { rate_per_s: 1.0 })
    };
    assert!(refused(&pieces).contains("whole_file"));
    let writes = Workload { read_share: 0.5, ..workload(Arrivals::Poisson { rate_per_s: 1.0 }) };
    assert!(refused(&writes).contains("read_share"));
    let closed = workload(Arrivals::Closed { depth: 1, think_us: 0, start_s: 0.0, rate_per_s: None });
    assert!(refused(&closed).contains("closed-loop"));
}
