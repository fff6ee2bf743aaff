//! The scheduler's model of a disk against the behaviour of the disk.

use proptest::prelude::*;
use weir_scheduler::{Decision, Op, Request, ServiceModel, Settings};
use weir_simulator::profile::{self, DiskProfile, Profile};
use weir_simulator::{Device, Disk, IoRequest};

const MIB: u64 = 1 << 20;

fn profile(name: &str) -> DiskProfile {
    match profile::load(name).unwrap() {
        Profile::Disk(disk) => *disk,
        other => panic!("{name} is {other:?}"),
    }
}

/// Without caches, so that every request is positioned.
fn bare(name: &str) -> DiskProfile {
    DiskProfile { read_ahead_kib: 0, segment_kib: None, write_cache_kib: 0, ..profile(name) }
}

fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request {
        tag: 0,
        class: 0,
        stream: 0,
        op,
        offset_bytes: sector * 512,
        size_bytes: sectors * 512,
        arrived_ns: 0,
        deadline_ns: None,
    }
}

#[derive(Clone, Debug)]
struct Step {
    gap_ns: u64,
    op: Op,
    sector: u64,
    sectors: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Near the one before (overlaps, sequences, rereads), or anywhere.
    let near = (0..40_000_000u64, any::<bool>(), 0..3000u64, 1..600u32);
    let far = (0..3_000_000u64, any::<bool>(), 0..200 * MIB / 512, 1..3000u32);
    let step = prop_oneof![near, far].prop_map(|(gap_ns, write, sector, sectors)| Step {
        gap_ns,
        op: if write { Op::Write } else { Op::Read },
        sector,
        sectors,
    });
    prop::collection::vec(step, 1..60)
}

/// Serves the steps one at a time; `check` gets the disk's state before, the request, its arrival and its service time.
fn one_at_a_time(mut disk: Disk, steps: &[Step], mut check: impl FnMut(&Disk, &Request, u64, u64)) {
    let (mut now_ns, mut done) = (0, Vec::new());
    for step in steps {
        now_ns += step.gap_ns;
        let request = request(step.op, step.sector, step.sectors);
        let before = disk.clone();
        disk.arrive(now_ns, IoRequest::from(&request)).unwrap();
        let done_ns = disk.next_event_ns().unwrap();
        check(&before, &request, now_ns, done_ns - now_ns);
        disk.advance(done_ns, &mut done);
        now_ns = done_ns;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn positioning_and_transfer_are_the_service_time_where_nothing_is_cached(steps in steps(), slow in any::<bool>()) {
        let mut profile = bare("hdd-7200");
        profile.completion_overhead_us = 7.0;
        profile.write_overhead_us = slow.then_some(350.0);
        let disk = profile.build(256 * MIB).unwrap();
        one_at_a_time(disk, &steps, |disk, request, now_ns, service_ns| {
            let (first, sectors) = IoRequest::from(request).sectors();
            let transfer_ns = disk.mechanism().transfer_ns(first, sectors, request.op);
            assert_eq!(disk.positioning_ns(now_ns, request) + transfer_ns + 7_000, service_ns);
            assert!(disk.positioning_ns(now_ns, request) <= disk.bound_ns(disk.head_bytes(), request) - transfer_ns);
        });
    }

    #[test]
    fn no_request_takes_longer_than_its_bound(steps in steps(), options in 0..512u32, runs in 1..5u32) {
        let on = |bit: u32| options & (1 << bit) != 0;
        let mut profile = profile("hdd-7200");
        profile.read_ahead_kib = if on(0) { 256 } else { 0 };
        profile.read_segments = if on(1) { 3 } else { 1 };
        profile.write_cache_kib = if on(2) { 512 } else { 0 };
        profile.write_cache_runs = runs;
        profile.write_cache_destage = if on(3) { weir_simulator::Destage::Full } else { weir_simulator::Destage::Idle };
        profile.read_on_arrival = on(4);
        if on(5) {
            (profile.interface_mb_s, profile.watermark) = (40.0, 0.75);
        }
        profile.hit_overhead_us = on(1).then_some(20.0);
        profile.reads_by_track_from_kib = on(6).then_some(64);
        profile.writes_by_revolution = on(7);
        profile.seek_noise_ms = if on(8) { 0.5 } else { 0.0 };
        let disk = profile.build(256 * MIB).unwrap();
        one_at_a_time(disk, &steps, |disk, request, _, service_ns| {
            let bound_ns = disk.bound_ns(disk.head_bytes(), request);
            assert!(service_ns <= bound_ns, "{service_ns} > {bound_ns} for {request:?}");
            assert!(disk.expected_ns(disk.head_bytes(), request) <= bound_ns);
        });
    }

    #[test]
    fn anything_may_be_asked(offset_bytes in any::<u64>(), size_bytes in any::<u32>(), from in any::<u64>()) {
        let request = Request { offset_bytes, size_bytes, ..request(Op::Write, 0, 1) };
        for profile in [profile("hdd-7200"), bare("hdd-7200")] {
            let disk = profile.build(256 * MIB).unwrap();
            prop_assert!(disk.positioning_ns(5, &request) <= disk.bound_ns(0, &request));
            prop_assert!(disk.expected_ns(from, &request) <= disk.bound_ns(from, &request));
            prop_assert!(disk.cylinder(offset_bytes) < disk.mechanism().geometry.cylinders());
        }
    }
}

#[test]
fn the_expected_time_is_the_mean_over_all_angles() {
    let mut profile = bare("hdd-7200");
    profile.command_overhead_us = 0.0;
    let disk = profile.build(256 * MIB).unwrap();
    let request = request(Op::Read, 300_000, 64);
    let revolution_ns = disk.mechanism().rotation.revolution_ns();
    let count = 10_000;
    let sum: u64 = (0..count)
        .map(|i| {
            let mut disk = disk.clone();
            disk.arrive(i * revolution_ns / count, IoRequest::from(&request)).unwrap();
            disk.next_event_ns().unwrap() - i * revolution_ns / count
        })
        .sum();
    let (mean_ns, expected_ns) = (sum as f64 / count as f64, disk.expected_ns(0, &request) as f64);
    assert!((mean_ns - expected_ns).abs() < revolution_ns as f64 / count as f64, "{mean_ns} {expected_ns}");
}

#[test]
fn a_random_angle_waits_half_a_revolution_on_average_and_the_seed_decides() {
    let profile = DiskProfile { rotation: profile::RotationMode::Random, ..bare("hdd-7200") };
    let times = |seed| {
        let mut disk = profile.build_seeded(256 * MIB, seed).unwrap();
        let (mut now_ns, mut times, mut done) = (0, Vec::new(), Vec::new());
        for _ in 0..20_000 {
            // Always the same sector: the exact rotation would always wait a whole revolution less the overhead.
            disk.arrive(now_ns, IoRequest::from(&request(Op::Read, 5_000, 8))).unwrap();
            let done_ns = disk.next_event_ns().unwrap();
            disk.advance(done_ns, &mut done);
            times.push(done_ns - now_ns);
            now_ns = done_ns;
        }
        times
    };
    let first = times(1);
    assert_eq!(first, times(1));
    assert_ne!(first, times(2));
    let mean_ns = first[1..].iter().sum::<u64>() as f64 / (first.len() - 1) as f64;
    // 100 us overhead, half of 8.333 ms, 8 of 3144 sectors.
    let expected_ns = 100e3 + 8_333_333.0 / 2.0 + 8.0 / 3144.0 * 8_333_333.0;
    assert!((mean_ns / expected_ns - 1.0).abs() < 0.02, "{mean_ns} {expected_ns}");
}

/// Requests one at a time to a flash device: expected time, bound, and time taken.
fn flash_times<D: Device + ServiceModel>(device: &mut D, count: u64) -> Vec<(Request, u64, u64, u64)> {
    let (mut now_ns, mut done, mut state) = (0, Vec::new(), 1u64);
    let mut times = Vec::new();
    for i in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let op = if i % 3 == 0 { Op::Read } else { Op::Write };
        let request = request(op, (state >> 33) % (60 * MIB / 512), ((state >> 20) % 100 + 1) as u32);
        let (expected_ns, bound_ns) = (device.expected_ns(0, &request), device.bound_ns(0, &request));
        device.arrive(now_ns, IoRequest::from(&request)).unwrap();
        while done.is_empty() {
            let event_ns = device.next_event_ns().unwrap();
            device.advance(event_ns, &mut done);
        }
        let done_ns = done.pop().unwrap().done_ns;
        times.push((request, expected_ns, bound_ns, done_ns - now_ns));
        now_ns = done_ns;
    }
    times
}

#[test]
fn flash_devices_keep_their_bounds() {
    let Profile::Ssd(sata) = profile::load("ssd-sata").unwrap() else { panic!() };
    for (request, expected_ns, bound_ns, actual_ns) in flash_times(&mut sata.build(64 * MIB).unwrap(), 2_000)
    {
        assert_eq!((expected_ns, bound_ns), (actual_ns, actual_ns), "{request:?}");
    }
    let Profile::Ssd(nvme) = profile::load("ssd-nvme").unwrap() else { panic!() };
    let mut flash = nvme.build_flash(64 * MIB, 1).unwrap().unwrap();
    // Long enough to fill the buffer and to clean.
    let times = flash_times(&mut flash, 60_000);
    assert!(flash.counts().copied_units > 0);
    for (request, expected_ns, bound_ns, actual_ns) in times {
        assert!(actual_ns <= bound_ns && expected_ns <= bound_ns, "{actual_ns} > {bound_ns}: {request:?}");
    }
}

/// Disks for the search of the nearest request: with and without buffers of each kind.
fn kinds() -> Vec<Disk> {
    let with = |change: fn(&mut DiskProfile)| {
        let mut disk = profile("hdd-7200");
        change(&mut disk);
        disk.build(256 * MIB).unwrap()
    };
    let named = |name: &str| profile(name).build(256 * MIB).unwrap();
    vec![
        bare("hdd-7200").build(256 * MIB).unwrap(),
        with(|disk| disk.write_cache_kib = 0),
        with(|disk| disk.write_cache_kib = 512),
        named("hp-97560"),
        named("seagate-barracuda"),
        named("quantum-atlas-ii"),
        named("quantum-atlas-ii-tracks"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn satf_finds_what_is_reached_first_without_asking_about_all(
        before in steps(),
        waiting in prop::collection::vec((any::<bool>(), 0..256 * MIB / 512 - 64, 1..64u32), 1..80),
        idle_ns in 0..30_000_000u64,
    ) {
        for mut disk in kinds() {
            let (mut now_ns, mut done) = (0, Vec::new());
            for step in &before {
                now_ns += step.gap_ns;
                disk.arrive(now_ns, IoRequest::from(&request(step.op, step.sector, step.sectors))).unwrap();
                now_ns = disk.next_event_ns().unwrap();
                disk.advance(now_ns, &mut done);
            }
            now_ns += idle_ns;
            let mut left: Vec<Request> = Vec::new();
            let mut satf = weir_scheduler::build("satf", &[], &Settings::default()).unwrap();
            for (tag, (write, sector, sectors)) in (0..).zip(&waiting) {
                let op = if *write { Op::Write } else { Op::Read };
                // Some at the disk's last position, to be answered by buffers.
                let near = before.last().filter(|_| tag % 4 == 0).map(|last| last.sector + sector % 700);
                let one = Request { tag, ..request(op, near.unwrap_or(*sector), *sectors) };
                satf.arrive(now_ns, one, &disk);
                left.push(one);
            }
            while !left.is_empty() {
                let efforts = left.iter().map(|one| disk.positioning_ns(now_ns, one));
                // Of equals the first that came.
                let (nearest, _) = efforts.enumerate().min_by_key(|(_, effort)| *effort).unwrap();
                let Decision::Serve(chosen) = satf.next(now_ns, &disk) else { panic!("{} wait", left.len()) };
                prop_assert_eq!(chosen.tag, left.remove(nearest).tag);
                disk.arrive(now_ns, IoRequest::from(&chosen)).unwrap();
                now_ns = disk.next_event_ns().unwrap();
                disk.advance(now_ns, &mut done);
            }
        }
    }
}
