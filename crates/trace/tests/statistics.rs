//! Statistics of streams whose properties are known.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, Pareto};
use weir_trace::stat::{Report, Statistics};
use weir_trace::{Options, TraceOp, TraceRequest, Unit};

fn report(requests: &[TraceRequest]) -> Report {
    let mut statistics = Statistics::new(Unit::PAGE);
    requests.iter().for_each(|request| statistics.add(request));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.spc");
    std::fs::write(&path, "0,0,512,R,0\n").unwrap();
    let options = Options { format: Some("spc".to_owned()), ..Options::default() };
    let (_, reader) = weir_trace::open(&path, &options).unwrap();
    statistics.finish(&*reader)
}

fn at(times_ns: impl IntoIterator<Item = i64>) -> Vec<TraceRequest> {
    let request = |arrival_ns| TraceRequest { arrival_ns, size_bytes: 4096, ..TraceRequest::default() };
    times_ns.into_iter().map(request).collect()
}

fn hurst(report: &Report) -> Vec<f64> {
    report.burstiness.hurst.iter().map(|hurst| hurst.estimate).collect()
}

#[test]
fn poisson_arrivals_are_neither_bursty_nor_dependent() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let gap = Exp::new(100.0).unwrap();
    let mut now = 0.0;
    let times: Vec<i64> = (0..400_000)
        .map(|_| {
            now += gap.sample(&mut random) * 1e9;
            now as i64
        })
        .collect();
    let report = report(&at(times));
    let gaps = report.arrivals.gap_ns.unwrap();
    assert!((gaps.cov.unwrap() - 1.0).abs() < 0.01, "{gaps:?}");
    for scale in report.burstiness.scales.iter().filter(|scale| scale.windows > 500) {
        let within = 6.0 * (2.0 / scale.windows as f64).sqrt();
        assert!((scale.dispersion - 1.0).abs() < within, "{scale:?}");
    }
    let peak = &report.burstiness.peaks[0];
    assert!((1.2..1.7).contains(&peak.peak_to_mean_requests), "{peak:?}");
    assert_eq!(report.burstiness.hurst.len(), 2);
    for estimate in report.burstiness.hurst {
        assert!((estimate.estimate - 0.5).abs() < 0.06, "{estimate:?}");
    }
}

/// Many sources that are on and off for times with a Pareto tail of index 1.4: H = (3 - 1.4) / 2 = 0.8 (Taqqu,
/// Willinger and Sherman 1997).
#[test]
fn heavy_tailed_sources_are_long_range_dependent() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let pareto = Pareto::new(0.3, 1.4).unwrap();
    let mut times = Vec::new();
    for _ in 0..40 {
        let (mut now, mut on) = (0.0, false);
        while now < 4_000.0 {
            let end: f64 = now + pareto.sample(&mut random);
            while on && now < end.min(4_000.0) {
                times.push((now * 1e9) as i64);
                now += 0.1;
            }
            (now, on) = (end, !on);
        }
    }
    times.sort_unstable();
    for estimate in hurst(&report(&at(times))) {
        assert!((0.68..0.95).contains(&estimate), "{estimate}");
    }
}

#[test]
fn everything_is_counted() {
    let read = TraceRequest { arrival_ns: 1_000, size_bytes: 8192, ..TraceRequest::default() };
    let requests = [
        read,
        TraceRequest { arrival_ns: 2_000, offset_bytes: 8192, queue_length: Some(3), ..read },
        TraceRequest { arrival_ns: 4_000, op: TraceOp::Write, response_ns: Some(500), ..read },
        TraceRequest { arrival_ns: 3_000, op: TraceOp::Flush, size_bytes: 0, ..read },
        TraceRequest { arrival_ns: 9_000, queueing_ns: Some(-1), ..read },
    ];
    let report = report(&requests);
    assert_eq!((report.requests, report.duration_ns, report.first_arrival_ns), (5, 8_000, Some(1_000)));
    assert_eq!(report.read_share, Some(0.75));
    assert_eq!((report.arrivals.order.early, report.arrivals.order.most_early_ns), (1, 1_000));
    assert_eq!(report.arrivals.zero_gaps, 1);
    assert_eq!(report.sequentiality.unwrap().sequential, 1);
    let set = &report.working_set;
    assert_eq!((set.accesses, set.distinct, set.distinct_bytes), (8, 4, Some(16_384)));
    // Blocks 0 1, 2 3, 0 1, 0 1: distances 3, 3, then 1, 1.
    let distances = set.reuse_distance.as_ref().unwrap();
    assert_eq!((distances.count, distances.min, distances.max, distances.mean), (4, 1, 3, 2.0));
    assert_eq!(report.times.queue_length.unwrap().max, 3);
    assert_eq!(report.times.response_ns.unwrap().max, 500);
    assert_eq!((report.times.negative, report.times.queueing_ns), (1, None));
}

#[test]
fn nothing_breaks_it() {
    let extreme = |arrival_ns, value| TraceRequest {
        arrival_ns,
        offset_bytes: value,
        size_bytes: value / 2,
        queueing_ns: Some(i64::MIN),
        response_ns: Some(i64::MAX),
        object: Some(value),
        queue_length: Some(u32::MAX),
        ..TraceRequest::default()
    };
    let requests =
        [extreme(i64::MIN, 0), extreme(i64::MAX, u64::MAX), extreme(0, 1), extreme(i64::MIN, u64::MAX)];
    let report = report(&requests);
    assert_eq!(report.requests, 4);
    assert!(serde_json::to_string(&report).is_ok());
    let nothing = self::report(&[]);
    assert_eq!((nothing.requests, nothing.requests_per_s, nothing.read_share), (0, None, None));
}
