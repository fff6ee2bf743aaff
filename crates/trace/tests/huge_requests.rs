//! Requests larger than any device: time and memory grow with how many there are, not with the sizes that they claim.

use std::time::{Duration, Instant};

use weir_cache::Policy;
use weir_trace::filter::{Absorb, Step, Writes};
use weir_trace::stat::Statistics;
use weir_trace::{Devices, Options, TraceOp, TraceRequest, Unit};

/// As many as a trace of 112 kB has.
const REQUESTS: u64 = 2_000;
/// Coarse: it took minutes.
const LONGEST: Duration = Duration::from_secs(20);

/// Requests of 2^63 bytes, each at a different address.
fn huge() -> impl Iterator<Item = TraceRequest> {
    (0..REQUESTS).map(|number| TraceRequest {
        arrival_ns: number as i64 * 1_000_000,
        offset_bytes: (number % 128) << 55,
        size_bytes: 1 << 63,
        op: if number % 2 == 0 { TraceOp::Read } else { TraceOp::Write },
        ..TraceRequest::default()
    })
}

#[test]
fn statistics_of_huge_requests_take_seconds() {
    let began = Instant::now();
    let mut statistics = Statistics::new(Unit::PAGE);
    huge().for_each(|request| statistics.add(&request));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.spc");
    std::fs::write(&path, "0,0,512,R,0\n").unwrap();
    let options = Options { format: Some("spc".to_owned()), ..Options::default() };
    let (_, reader) = weir_trace::open(&path, &options).unwrap();
    let report = statistics.finish(&*reader);
    assert!(report.working_set.cut_requests > REQUESTS / 2);
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
}

#[test]
fn caches_of_every_policy_let_huge_requests_through_in_seconds() {
    for policy in Policy::ALL {
        let began = Instant::now();
        let mut cache = Absorb::new(policy, 1 << 40, Unit::PAGE, Writes::Absorb);
        let mut on = Vec::new();
        for request in huge() {
            on.clear();
            cache.take(request, &Devices::default(), &mut on).unwrap();
            // The unexamined part remains.
            assert!(on.iter().map(|part| part.size_bytes).sum::<u64>() > 1 << 62);
        }
        assert!(began.elapsed() < LONGEST, "{}: {:?}", policy.name(), began.elapsed());
    }
}
