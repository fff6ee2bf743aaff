//! The Quantum Atlas-II against measurements of it: P. Bosch, "Mixed-media file systems", PhD thesis, University of
//! Twente, 1999. Sections and tables are its own.

use proptest::prelude::*;
use weir_simulator::profile::{self, DiskProfile, Profile};
use weir_simulator::{Device, Disk, DiskTimes, IoRequest, Op, TimesOptions};

const REVOLUTION_NS: u64 = 8_333_333;
const TRACK: u64 = 179;

fn drive(name: &str) -> DiskProfile {
    let Profile::Disk(disk) = profile::load(name).unwrap() else { panic!("no disk") };
    *disk
}

fn atlas() -> DiskProfile {
    drive("quantum-atlas-ii")
}

fn by_track() -> DiskProfile {
    drive("quantum-atlas-ii-tracks")
}

#[test]
fn the_two_profiles_of_the_drive_differ_by_their_habits_alone() {
    let plain = DiskProfile {
        description: atlas().description,
        seek_noise_ms: 0.0,
        reads_by_track_from_kib: None,
        writes_by_revolution: false,
        ..by_track()
    };
    assert_eq!(format!("{plain:?}"), format!("{:?}", atlas()));
}

fn whole(profile: &DiskProfile, seed: u64) -> Disk {
    profile.build_seeded(profile.full_bytes().unwrap(), seed).unwrap()
}

/// Service time of one request that arrives at an idle disk.
fn alone_ns(disk: &mut Disk, now_ns: u64, op: Op, sector: u64, sectors: u64) -> u64 {
    let request = IoRequest { tag: 0, op, offset_bytes: sector * 512, size_bytes: sectors as u32 * 512 };
    disk.arrive(now_ns, request).unwrap();
    let done_ns = disk.next_event_ns().unwrap();
    disk.advance(done_ns, &mut Vec::new());
    done_ns - now_ns
}

/// Requests of a zone, one behind the other, as the thesis's were measured (section 7.2.1).
fn times(zone: usize, size_bytes: u32, op: Op, aligned: bool) -> DiskTimes {
    times_of(&atlas(), zone, size_bytes, op, aligned)
}

fn times_of(profile: &DiskProfile, zone: usize, size_bytes: u32, op: Op, aligned: bool) -> DiskTimes {
    let options = TimesOptions { zone, size_bytes, op, aligned, sequential: true, requests: 4000, seed: 1 };
    DiskTimes::measure(profile, &options).unwrap()
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

#[test]
fn ranges_of_single_requests_are_those_measured() {
    for profile in [atlas(), by_track()] {
        ranges_are_those_measured(&profile);
    }
}

/// Ranges of section 4.3.3 in zone 0, in sectors and ms.
fn ranges_are_those_measured(profile: &DiskProfile) {
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
        let times = times_of(profile, 0, sectors * 512, op, sectors >= 179);
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

/// Section 4.3.4, by hand: the arm is on track 0. After 2 ms of overhead it is within sector 42 of 179; sector 43 begins at
/// 2.001862 ms. A revolution later the bus begins with the track (8.95 ms). The arm is on the next track, whose start is 1 ms later,
/// 0.6 ms later: within sector 34 of that; sector 35 begins at 10.962755 ms. That track is read at 19.296088 ms, when the bus is
/// free, and takes 8.95 ms.
#[test]
fn two_tracks_are_read_one_by_one_and_reach_the_host_one_by_one() {
    let mut disk = whole(&by_track(), 1);
    assert_eq!(alone_ns(&mut disk, 0, Op::Read, 0, 2 * TRACK), 28_246_088);
    assert_eq!(alone_ns(&mut disk, 200_000_000, Op::Read, 0, 2 * TRACK) / 1_000_000, 28);
}

#[test]
fn reads_below_the_limit_begin_anywhere_and_do_not_wait_for_a_track() {
    let (mut tracks, mut plain) = (whole(&by_track(), 1), whole(&atlas(), 1));
    for (at, sectors) in [(0u64, 1), (1, 179), (2, 180), (3, 255)] {
        let now_ns = at * 1_234_567_891;
        let took = [&mut tracks, &mut plain].map(|disk| alone_ns(disk, now_ns, Op::Read, 0, sectors));
        assert_eq!(took[0], took[1], "{sectors} sectors");
    }
    // 128 KiB.
    let took = [&mut tracks, &mut plain].map(|disk| alone_ns(disk, 9_876_543_210, Op::Read, 0, 256));
    assert_ne!(took[0], took[1]);
}

/// Section 7.2.3, by hand: 1 ms of overhead; the bus takes 6.166670 ms more for 10 tracks than the platter does, and sector 0 comes at
/// 8.333333 ms.
#[test]
fn ten_tracks_are_written_in_eleven_revolutions_and_a_sector_more_takes_one_more() {
    let write = |sector, sectors| alone_ns(&mut whole(&by_track(), 1), 0, Op::Write, sector, sectors);
    assert_eq!(write(0, 10 * TRACK), 10 * REVOLUTION_NS + REVOLUTION_NS);
    assert_eq!(write(0, 10 * TRACK + 1), 11 * REVOLUTION_NS + REVOLUTION_NS / TRACK + REVOLUTION_NS);
    assert_eq!(write(0, 11 * TRACK), 12 * REVOLUTION_NS);
    // A track or less is written as before.
    let before = |sector, sectors| alone_ns(&mut whole(&atlas(), 1), 0, Op::Write, sector, sectors);
    for sectors in [1, 2, 100, 179] {
        assert_eq!(write(5, sectors), before(5, sectors), "{sectors} sectors");
    }
}

#[test]
fn the_lost_revolution_is_that_of_a_write_that_is_not_whole_tracks() {
    let disk = whole(&by_track(), 1);
    let lost = |sector, sectors| disk.mechanism().revolutions_ns(sector..sector + sectors);
    assert_eq!(lost(0, TRACK), None);
    assert_eq!(lost(0, 2 * TRACK), Some([2 * REVOLUTION_NS, 0]));
    assert_eq!(lost(TRACK, 3 * TRACK), Some([3 * REVOLUTION_NS, 0]));
    assert_eq!(lost(0, 2 * TRACK - 1).map(|ns| ns[1]), Some(REVOLUTION_NS));
    // Whole tracks' worth of sectors from within a track.
    assert_eq!(lost(1, 2 * TRACK), Some([2 * REVOLUTION_NS, REVOLUTION_NS]));
}

/// Section 4.3.2: 0.9 ms either way. A read by track takes the same time from wherever the arm arrives, but for a part of a sector.
#[test]
fn seeks_over_one_distance_differ_by_the_noise_and_the_seed_decides() {
    let profile = DiskProfile { reads_by_track_from_kib: Some(1), ..by_track() };
    let far = 1_000 * 10 * TRACK;
    let seeks = |profile: &DiskProfile, seed| -> Vec<u64> {
        let mut disk = whole(profile, seed);
        let mut now_ns = 0;
        (0..=20_000u64)
            .map(|at| {
                now_ns += 100_000_000;
                alone_ns(&mut disk, now_ns, Op::Read, far * (at % 2), 2)
            })
            // The first begins where the arm is.
            .skip(1)
            .collect()
    };
    let spread_ms = |times: &[u64]| ms(times.iter().max().unwrap() - times.iter().min().unwrap());
    let noisy = seeks(&profile, 1);
    assert!((1.79..1.85).contains(&spread_ms(&noisy)), "{} ms", spread_ms(&noisy));
    let exact = seeks(&DiskProfile { seek_noise_ms: 0.0, ..profile.clone() }, 1);
    assert!(spread_ms(&exact) <= 0.05, "{} ms", spread_ms(&exact));
    let mean_ms = |times: &[u64]| ms(times.iter().sum()) / times.len() as f64;
    assert!((mean_ms(&noisy) - mean_ms(&exact)).abs() < 0.02);
    assert_eq!(noisy, seeks(&profile, 1));
    assert_ne!(noisy, seeks(&profile, 2));
}

#[test]
fn a_read_without_a_seek_has_no_noise() {
    let exact = DiskProfile { seek_noise_ms: 0.0, ..by_track() };
    let (mut noisy, mut exact) = (whole(&by_track(), 1), whole(&exact, 1));
    for at in 0..100 {
        let took = [&mut noisy, &mut exact]
            .map(|disk| alone_ns(disk, at * 123_456_789, Op::Read, at % 10 * TRACK, 1 + at));
        assert_eq!(took[0], took[1]);
    }
}

proptest! {
    /// A block of a partition that is not aligned reads a track more, or ends a track with fewer sectors (section 7.2.1).
    #[test]
    fn a_read_by_track_takes_a_revolution_for_each_track_that_it_touches(
        sector in 0..100 * TRACK, sectors in 256u64..3000, now_ns in 0u64..1_000_000_000,
    ) {
        let took_ns = alone_ns(&mut whole(&by_track(), 1), now_ns, Op::Read, sector, sectors);
        let tracks = (sector + sectors).div_ceil(TRACK) - sector / TRACK;
        let under_head_ns = tracks * REVOLUTION_NS;
        let bus_ns = sectors * 50_000;
        prop_assert!(took_ns >= under_head_ns && took_ns >= REVOLUTION_NS + bus_ns);
        // A seek, the changes of tracks, the waits for a sector, and the bus behind the last track.
        let rest_ns = 2_000_000 + 2_713_000 + 900_000 + tracks * (1_900_000 + 46_555) + TRACK * 50_000;
        prop_assert!(took_ns <= under_head_ns.max(bus_ns) + rest_ns);
    }
}

/// Section 7.2.3 through NCR53c810: most raw writes of 1 MB to zone 0 take 111 to 120 ms.
#[test]
fn a_megabyte_is_written_in_what_it_took() {
    let times = times_of(&by_track(), 0, 1 << 20, Op::Write, true);
    assert!((ms(times.min_ns) - 111.0).abs() < 1.5 && (ms(times.max_ns) - 120.0).abs() < 3.0, "{times:?}");
}
