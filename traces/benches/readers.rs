//! How fast readers read: a million requests of every format, made here, out of memory, on one core.
//!
//! `make bench-traces`. The aims are 5 million records a second for formats of records, and 2 million lines a second for
//! formats of lines; an element is a record or line of the file, so that a blktrace request counts as its three events.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod common;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const REQUESTS: usize = 1_000_000;

fn readers(criterion: &mut Criterion) {
    let requests = common::requests(REQUESTS, 3);
    let mut group = criterion.benchmark_group("readers");
    group.sample_size(10);
    for (number, codec) in common::codecs().into_iter().enumerate() {
        let bytes = (codec.encode)(&requests);
        let elements = match codec.format {
            "blktrace" => 3 * REQUESTS,
            "nfsdump" => 2 * REQUESTS,
            _ => REQUESTS,
        };
        group.throughput(Throughput::Elements(elements as u64));
        // A format may be there twice, in two layouts.
        group.bench_function(format!("{}/{number}", codec.format), |bencher| {
            bencher.iter_batched(
                || bytes.clone(),
                |bytes| {
                    let mut reader = codec.open(bytes, false).expect("a trace of the bench's own");
                    let mut count = 0;
                    while let Some(request) = reader.next_request().expect("a trace without damage") {
                        black_box(request);
                        count += 1;
                    }
                    assert_eq!(count, REQUESTS);
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, readers);
criterion_main!(benches);
