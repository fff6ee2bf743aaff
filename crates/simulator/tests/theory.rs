//! The models against theory and data sheets.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_simulator::profile::{self, Profile};
use weir_simulator::{Arm, Device, IoRequest, Op};

const GIB: u64 = 1 << 30;

fn disk_profile(name: &str) -> profile::DiskProfile {
    match profile::load(name).unwrap() {
        Profile::Disk(disk) => *disk,
        other => panic!("{name} is {other:?}"),
    }
}

/// Serves requests one at a time, each arriving when the one before is done, and returns each one's service time in ns.
fn one_at_a_time(device: &mut dyn Device, requests: impl Iterator<Item = (Op, u64, u32)>) -> Vec<u64> {
    let (mut now_ns, mut done) = (0, Vec::new());
    let mut times = Vec::new();
    for (op, offset_bytes, size_bytes) in requests {
        device.arrive(now_ns, IoRequest { tag: 0, op, offset_bytes, size_bytes }).unwrap();
        let next_ns = device.next_event_ns().unwrap();
        device.advance(next_ns, &mut done);
        times.push(next_ns - now_ns);
        now_ns = next_ns;
    }
    times
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

#[test]
fn mean_rotational_latency_is_half_a_revolution() {
    let disk = disk_profile("hdd-7200").build(4 * GIB).unwrap();
    let mechanism = disk.mechanism();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let arm = Arm { cylinder: 0, head: 0 };
    let waits: Vec<u64> = (0..100_000)
        .map(|_| {
            let sector = rng.random_range(0..mechanism.geometry.sectors());
            let at = mechanism.geometry.locate(sector);
            let to = Arm { cylinder: at.cylinder, head: at.head };
            let now_ns = rng.random_range(0..1_000_000_000_000);
            mechanism.positioning_ns(now_ns, arm, sector, Op::Read) - mechanism.move_ns(arm, to, Op::Read)
        })
        .collect();
    let half_ns = mechanism.rotation.revolution_ns() as f64 / 2.0;
    assert!(
        (mean(&waits) / half_ns - 1.0).abs() < 0.01,
        "{} ns, half a revolution is {half_ns}",
        mean(&waits)
    );
}

#[test]
fn mean_seek_over_random_cylinders_is_the_profiles_average() {
    for name in ["hdd-7200", "hdd-15k"] {
        let profile = disk_profile(name);
        for size in [GIB, 16 * GIB] {
            let disk = profile.build(size).unwrap();
            let mechanism = disk.mechanism();
            let cylinders = mechanism.geometry.cylinders();
            let mut rng = ChaCha8Rng::seed_from_u64(2);
            let mut arm = || Arm { cylinder: rng.random_range(0..cylinders), head: 0 };
            let seeks: Vec<u64> = (0..100_000).map(|_| mechanism.move_ns(arm(), arm(), Op::Read)).collect();
            let ratio = mean(&seeks) / 1e6 / profile.seek_avg_ms.unwrap();
            assert!((ratio - 1.0).abs() < 0.02, "{name} at {size} bytes: {ratio}");
        }
    }
}

#[test]
fn random_reads_of_the_whole_disk_have_the_classs_iops_at_any_size() {
    for (name, iops) in [("hdd-7200", 70.0..100.0), ("hdd-15k", 150.0..200.0)] {
        for size in [GIB, 4 * GIB, 64 * GIB] {
            let mut disk = disk_profile(name).build(size).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(3);
            let requests = (0..20_000).map(|_| (Op::Read, rng.random_range(0..size / 4096) * 4096, 4096));
            let rate = 1e9 / mean(&one_at_a_time(&mut disk, requests));
            assert!(iops.contains(&rate), "{name} at {size} bytes: {rate} IOPS");
        }
    }
}

#[test]
fn sequential_streams_run_at_the_published_rate() {
    // Outer and inner edge, from the profiles' sources.
    for (name, outer, inner) in [("hdd-7200", 175e6, 83e6), ("hdd-15k", 204e6, 122e6)] {
        let size = 8 * GIB;
        for (first, expected) in [(0, outer), (size - (64 << 20), inner)] {
            for op in [Op::Read, Op::Write] {
                let mut disk = disk_profile(name).build(size).unwrap();
                // All queued at the same time, so writes stream too.
                let (pieces, piece) = (256u64, 256 << 10);
                for tag in 0..pieces {
                    let offset_bytes = first + tag * u64::from(piece);
                    disk.arrive(0, IoRequest { tag, op, offset_bytes, size_bytes: piece }).unwrap();
                }
                let mut done = Vec::new();
                disk.advance(u64::MAX, &mut done);
                let elapsed_ns = done[255].done_ns - done[0].done_ns;
                let rate = 255.0 * f64::from(piece) / (elapsed_ns as f64 / 1e9);
                assert!(
                    (rate / expected - 1.0).abs() < 0.01,
                    "{name} {op:?} at byte {first}: {rate} bytes/s"
                );
            }
        }
    }
}

#[test]
fn a_reader_that_asks_one_by_one_still_streams() {
    let mut disk = disk_profile("hdd-7200").build(8 * GIB).unwrap();
    let times = one_at_a_time(&mut disk, (0..1000).map(|i| (Op::Read, i * 65_536, 65_536)));
    let rate = 65_536.0 * 999.0 / (times[1..].iter().sum::<u64>() as f64 / 1e9);
    assert!((rate / 175e6 - 1.0).abs() < 0.01, "{rate} bytes/s");
}

#[test]
fn the_ssd_has_its_data_sheets_figures() {
    let Profile::Ssd(profile) = profile::load("ssd-sata").unwrap() else { panic!() };
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut random =
        |count: u64| -> Vec<u64> { (0..count).map(|_| rng.random_range(0..(GIB / 4096)) * 4096).collect() };
    // Queue depth 1.
    let mut ssd = profile.build(GIB).unwrap();
    let times = one_at_a_time(&mut ssd, random(1000).into_iter().map(|offset| (Op::Read, offset, 4096)));
    assert!((9_000.0..11_000.0).contains(&(1e9 / mean(&times))), "{}", mean(&times));
    // All at the same time: all channels are busy, apart from random differences in their load.
    for (op, expected) in [(Op::Read, 98e3), (Op::Write, 90e3)] {
        let mut ssd = profile.build(GIB).unwrap();
        for (tag, offset_bytes) in random(100_000).into_iter().enumerate() {
            ssd.arrive(0, IoRequest { tag: tag as u64, op, offset_bytes, size_bytes: 4096 }).unwrap();
        }
        let mut done = Vec::new();
        ssd.advance(u64::MAX, &mut done);
        let rate = 100_000.0 / (done.last().unwrap().done_ns as f64 / 1e9);
        assert!((rate / expected - 1.0).abs() < 0.05, "{op:?}: {rate} IOPS");
    }
}
