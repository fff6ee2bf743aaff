//! The Quantum Atlas-II against measurements of it: P. Bosch, "Mixed-media file systems", PhD thesis, University of
//! Twente, 1999. Sections and tables are its own.

use weir_simulator::profile::{self, DiskProfile, Profile};
use weir_simulator::{DiskTimes, Op, TimesOptions};

fn atlas() -> DiskProfile {
    let Profile::Disk(disk) = profile::load("quantum-atlas-ii").unwrap() else { panic!("no disk") };
    *disk
}

/// Requests of a zone, one behind the other, as the thesis's were measured (section 7.2.1).
fn times(zone: usize, size_bytes: u32, op: Op, aligned: bool) -> DiskTimes {
    let options = TimesOptions { zone, size_bytes, op, aligned, sequential: true, requests: 4000, seed: 1 };
    DiskTimes::measure(&atlas(), &options).unwrap()
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Table 6.4: 95th percentile and longest seek, by zone, of 128, 256 and 512 KB and 1 MB.
const WORST_CASE_MS: [[f64; 4]; 12] = [
    [42.0, 55.0, 81.0, 134.0],
    [42.0, 55.0, 83.0, 140.0],
    [42.0, 58.0, 85.0, 143.0],
    [42.0, 57.0, 86.0, 146.0],
    [42.0, 62.0, 89.0, 145.0],
    [42.0, 63.0, 89.0, 152.0],
    [42.0, 63.0, 89.0, 154.0],
    [43.0, 63.0, 95.0, 163.0],
    [44.0, 63.0, 99.0, 173.0],
    [50.0, 65.0, 102.0, 178.0],
    [50.0, 67.0, 107.0, 189.0],
    [50.0, 69.0, 114.0, 204.0],
];

#[test]
fn worst_case_service_times_are_those_of_table_6_4() {
    let mut worst = (0.0, 0, 0);
    for (zone, row) in WORST_CASE_MS.iter().enumerate() {
        for (kib, expected) in [128, 256, 512, 1024].into_iter().zip(row) {
            let times = times(zone, kib << 10, Op::Read, false);
            let off = ms(times.p95_ns + times.longest_seek_ns) / expected - 1.0;
            if off.abs() > worst.0 {
                worst = (off.abs(), zone, kib);
            }
            assert!(off.abs() < 0.08, "zone {zone}, {kib} KiB: {:+.1} % of {expected} ms", off * 100.0);
        }
    }
    println!("farthest off: {:.1} % in zone {} at {} KiB", worst.0 * 100.0, worst.1, worst.2);
}

/// Sections 4.4 and 6.5: 116 ms in the outermost zone and 184 ms in the innermost.
#[test]
fn a_megabyte_takes_what_it_took() {
    for (zone, expected) in [(0, 116.0), (11, 184.0)] {
        let mean = ms(times(zone, 1 << 20, Op::Read, false).mean_ns);
        println!("zone {zone}: {mean:.1} ms for {expected}");
        assert!((mean / expected - 1.0).abs() < 0.05, "zone {zone}: {mean} ms for {expected}");
    }
}

/// Ranges of section 4.3.3 in zone 0, in sectors and ms.
#[test]
fn ranges_of_single_requests_are_those_measured() {
    let mut wrong = Vec::new();
    for (op, sectors, least, most) in [
        (Op::Read, 2, 2.0, 11.1),
        (Op::Read, 179, 15.0, 20.9),
        (Op::Read, 180, 15.1, 21.0),
        (Op::Read, 358, 27.4, 29.5),
        (Op::Write, 2, 1.0, 10.8),
        (Op::Write, 179, 10.3, 18.7),
    ] {
        // Whole tracks from their start; smaller requests anywhere.
        let times = times(0, sectors * 512, op, sectors >= 179);
        let found = (ms(times.min_ns), ms(times.max_ns));
        println!("{op:?} {sectors} sectors: {:.1} to {:.1} ms for {least} to {most}", found.0, found.1);
        for (found, expected) in [(found.0, least), (found.1, most)] {
            if (found / expected - 1.0f64).abs() >= 0.15 {
                wrong.push(format!("{op:?} {sectors} sectors: {found} ms for {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
