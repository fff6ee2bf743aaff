//! Steps and pipelines.

use crate::made::{Made, all, here, ordered, request};
use proptest::prelude::*;
use weir_cache::{Cache, Lru, Policy};
use weir_trace::filter::{
    Absorb, OfDevices, Pipeline, Rebase, ScaleAddress, ScaleTime, SinceFirst, Sorted, Step, TimeRange, Writes,
};
use weir_trace::{Reader, TraceOp, TraceRequest, Unit};

fn through(requests: &[TraceRequest], steps: Vec<Box<dyn Step>>) -> (Vec<TraceRequest>, Pipeline) {
    let mut pipeline = Pipeline::new(here(), Made::reader(requests), steps);
    let left = all(&mut pipeline).unwrap();
    (left, pipeline)
}

fn read(arrival_ns: i64, offset_bytes: u64, size_bytes: u64) -> TraceRequest {
    TraceRequest { arrival_ns, offset_bytes, size_bytes, ..TraceRequest::default() }
}

#[test]
fn a_range_is_half_open_and_times_begin_anew() {
    let requests = [read(0, 0, 1), read(10, 0, 1), read(19, 0, 1), read(20, 0, 1)];
    let steps: Vec<Box<dyn Step>> =
        vec![Box::new(TimeRange { from_ns: 10, to_ns: 20 }), Box::new(Rebase::default())];
    let (left, pipeline) = through(&requests, steps);
    assert_eq!(left.iter().map(|request| request.arrival_ns).collect::<Vec<_>>(), [0, 9]);
    let counts = pipeline.counts();
    assert_eq!((counts[0].taken, counts[0].given, pipeline.read()), (4, 2, 4));
}

#[test]
fn devices_are_selected_by_name_and_missed_ones_are_told() {
    let requests = [read(0, 0, 1), TraceRequest { device: 1, ..read(1, 0, 1) }];
    let names = ["disk 1".to_owned(), "disk 9".to_owned()];
    let (left, pipeline) = through(&requests, vec![Box::new(OfDevices::new(names))]);
    assert_eq!(left, requests[1..]);
    assert_eq!(pipeline.counts()[0].notes, ["the trace has no device disk 9"]);
}

#[test]
fn scaling_stretches_the_times_between_requests() {
    let requests =
        [read(100, 0, 1), read(200, 0, 1), TraceRequest { response_ns: Some(5), ..read(400, 0, 1) }];
    let (left, _) = through(&requests, vec![Box::new(ScaleTime::new("0.5".parse().unwrap()))]);
    assert_eq!(left.iter().map(|request| request.arrival_ns).collect::<Vec<_>>(), [100, 150, 250]);
    assert_eq!(left[2].response_ns, None);
}

#[test]
fn addresses_shrink_and_runs_stay_runs() {
    let requests = [read(0, 1 << 20, 4096), read(1, (1 << 20) + 4096, 8192), read(2, 3 << 20, 512)];
    let (left, _) = through(&requests, vec![Box::new(ScaleAddress::by("1/3".parse().unwrap()))]);
    let first = (1 << 20) / 3 / 512 * 512;
    assert_eq!(
        left.iter().map(|request| request.offset_bytes).collect::<Vec<_>>(),
        [first, first + 4096, 1 << 20]
    );
}

/// 4 blocks of LRU: the first block stays, the second is missed again, and the middle of a request is absorbed.
#[test]
fn what_the_cache_holds_is_absorbed() {
    let requests = [read(0, 4096, 4096), read(1, 0, 3 * 4096), read(2, 5000, 100), read(3, 100, 300)];
    let absorb = Absorb::new(Policy::Lru, 4 * 4096, Unit::PAGE, Writes::Absorb);
    let (left, pipeline) = through(&requests, vec![Box::new(absorb)]);
    assert_eq!(left, [read(0, 4096, 4096), read(1, 0, 4096), read(1, 8192, 4096)]);
    let notes = pipeline.counts()[0].notes.join("; ");
    assert!(
        notes.contains("6 blocks accessed, 3 missed") && notes.contains("1 requests were absorbed in part"),
        "{notes}"
    );
}

#[test]
fn writes_go_through_where_they_are_to() {
    let write = TraceRequest { op: TraceOp::Write, ..read(0, 0, 4096) };
    let requests = [write, write, TraceRequest { op: TraceOp::Read, ..write }];
    for (writes, left) in [(Writes::Absorb, 1), (Writes::Through, 2)] {
        let absorb = Absorb::new(Policy::Lru, 1 << 20, Unit::PAGE, writes);
        assert_eq!(through(&requests, vec![Box::new(absorb)]).0.len(), left);
    }
}

#[test]
fn objects_have_sizes() {
    let object = |object, size_bytes| TraceRequest { object: Some(object), ..read(0, 0, size_bytes) };
    let requests = [object(1, 600), object(2, 300), object(1, 600), object(3, 200), object(2, 300)];
    let absorb = Absorb::new(Policy::Lru, 1000, Unit::Object, Writes::Absorb);
    assert_eq!(
        through(&requests, vec![Box::new(absorb)]).0,
        [requests[0], requests[1], requests[3], requests[4]]
    );
}

#[test]
fn disorder_is_an_error_that_names_the_remedy() {
    let mut reader = SinceFirst::new(here(), Made::reader(&[read(5, 0, 1), read(7, 0, 1), read(6, 0, 1)]));
    let error = all(&mut reader).unwrap_err().to_string();
    assert_eq!(
        error,
        "made: request 2 (from 0) is 1 ns earlier than the one before it; sort the trace with --sort"
    );
    let mut reader = SinceFirst::new(here(), Made::reader(&[read(i64::MIN, 0, 1), read(i64::MAX, 0, 1)]));
    assert!(all(&mut reader).unwrap_err().to_string().contains("out of range"));
}

/// Over 70,000 requests in parts of about 9,500: eight parts, all but one on disk.
#[test]
fn a_long_trace_is_sorted_in_parts() {
    let requests: Vec<_> = (0..70_000_u64)
        .map(|n| TraceRequest { object: Some(n), ..read((n * 7919 % 10_007) as i64, n, 1) })
        .collect();
    let sorted = all(&mut Sorted::new(here(), Made::reader(&requests), 1)).unwrap();
    let mut expected = requests;
    expected.sort_by_key(|request| request.arrival_ns);
    assert!(sorted == expected);
}

proptest! {
    #[test]
    fn sorting_is_stable_and_keeps_everything(requests in prop::collection::vec(request(), 0..200)) {
        let sorted = all(&mut Sorted::new(here(), Made::reader(&requests), 1)).unwrap();
        let mut expected = requests;
        expected.sort_by_key(|request| request.arrival_ns);
        prop_assert_eq!(sorted, expected);
    }

    #[test]
    fn what_is_fitted_fits(requests in ordered(), to_bytes in 1_000_000_u64..1 << 30) {
        let extent = requests.iter().map(|r| r.offset_bytes + r.size_bytes).max().unwrap_or(0);
        let (left, _) = through(&requests, vec![Box::new(ScaleAddress::fit(extent, to_bytes))]);
        prop_assert_eq!(left.len(), requests.len());
        for (new, old) in left.iter().zip(&requests) {
            prop_assert!(new.offset_bytes + new.size_bytes <= to_bytes);
            prop_assert_eq!(new.size_bytes, old.size_bytes.min(to_bytes));
            prop_assert!(old.offset_bytes % 512 != 0 || new.offset_bytes % 512 == 0);
        }
    }

    /// The remaining bytes are those of the blocks that a separate cache misses.
    #[test]
    fn the_filter_agrees_with_its_cache(requests in ordered(), blocks in 1_u64..3000) {
        let requests: Vec<_> = requests
            .into_iter()
            .map(|r| TraceRequest { offset_bytes: r.offset_bytes % (1 << 23), device: 0, ..r })
            .collect();
        let absorb = Absorb::new(Policy::Lru, blocks * 4096, Unit::PAGE, Writes::Absorb);
        let (left, _) = through(&requests, vec![Box::new(absorb)]);
        let mut cache = Lru::new(blocks);
        let mut expected = 0;
        for request in &requests {
            let end = request.offset_bytes + request.size_bytes;
            if !request.op.has_data() {
                expected += request.size_bytes;
                continue;
            }
            for block in request.offset_bytes / 4096..=(end - 1) / 4096 {
                if !cache.request(block, 1) {
                    expected += ((block + 1) * 4096).min(end) - (block * 4096).max(request.offset_bytes);
                }
            }
        }
        prop_assert_eq!(left.iter().map(|request| request.size_bytes).sum::<u64>(), expected);
    }

    #[test]
    fn no_request_breaks_a_step(
        arrival_ns: i64, offset_bytes: u64, object: Option<u64>, device in 0_u32..4,
        size_bytes in prop_oneof![30 => 0_u64..1 << 22, 1 => any::<u64>()],
    ) {
        let odd = TraceRequest { arrival_ns, offset_bytes, size_bytes, object, device, ..TraceRequest::default() };
        let steps: Vec<Box<dyn Step>> = vec![
            Box::new(Absorb::new(Policy::Arc, 1 << 20, Unit::PAGE, Writes::Absorb)),
            Box::new(ScaleAddress::fit(u64::MAX, 1 << 20)),
            Box::new(ScaleAddress::by("999999999".parse().unwrap())),
            Box::new(ScaleTime::new("99999".parse().unwrap())),
            Box::new(Rebase::default()),
        ];
        let mut pipeline = Pipeline::new(here(), Made::reader(&[read(0, 0, 1), odd, odd]), steps);
        while let Ok(Some(_)) = pipeline.next_request() {}
    }
}
