//! Speed of the readers: a million generated requests of each format, read from memory on one core.
//!
//! `make bench-traces`. The aims are 20 million requests a second for weir's own format, 5 million records a second for other
//! formats of records, and 2 million lines a second for formats of lines; the unit is a record or line of the file: a blktrace request counts as three events.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod common;

use std::hint::black_box;
use std::time::Instant;

use weir_trace::Devices;
use weir_trace::packed::{MOST_REQUESTS, Spool};

const REQUESTS: u32 = 1_000_000;
const PASSES: usize = 9;

fn main() -> Result<(), weir_trace::Error> {
    let requests = common::requests(REQUESTS as usize, 3);
    println!("format             M records/s: median of {PASSES} (range)");
    any_place(&requests)?;
    // A format may be there twice, in two layouts.
    for codec in common::codecs() {
        let bytes = (codec.encode)(&requests);
        let records_per_request = match codec.format {
            "blktrace" => 3.0,
            "nfsdump" => 2.0,
            _ => 1.0,
        };
        let mut rates = Vec::with_capacity(PASSES);
        for _ in 0..PASSES {
            let mut reader = codec.open(bytes.clone(), false)?;
            let begun = Instant::now();
            let mut count = 0;
            while let Some(request) = reader.next_request()? {
                black_box(request);
                count += 1;
            }
            let took_s = begun.elapsed().as_secs_f64();
            assert_eq!(count, REQUESTS, "{}", codec.format);
            rates.push(f64::from(count) * records_per_request / took_s / 1e6);
        }
        show(codec.format, rates);
    }
    Ok(())
}

/// Weir's own format by its index, as recorded workloads read it, from the page cache.
fn any_place(requests: &[weir_trace::TraceRequest]) -> Result<(), weir_trace::Error> {
    let mut spool = Spool::create(MOST_REQUESTS)?;
    for request in requests {
        spool.push(request, &Devices::default())?;
    }
    let file = spool.finish()?;
    let mut rates = Vec::with_capacity(PASSES);
    for _ in 0..PASSES {
        let begun = Instant::now();
        let mut count = 0;
        for request in file.rows() {
            black_box(request?);
            count += 1;
        }
        assert_eq!(count, REQUESTS);
        rates.push(f64::from(count) / begun.elapsed().as_secs_f64() / 1e6);
    }
    show("weir, by its index", rates);
    Ok(())
}

fn show(name: &str, mut rates: Vec<f64>) {
    rates.sort_by(f64::total_cmp);
    println!("{name:<18} {:>6.1} ({:.1}-{:.1})", rates[PASSES / 2], rates[0], rates[PASSES - 1]);
}
