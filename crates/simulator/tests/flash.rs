//! The flash device with a translation layer, from outside.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_simulator::flash_fit::{CELLS, CellTimes, errors, fit, halves, predict};
use weir_simulator::profile::{self, FlashStart, Profile, SsdProfile};
use weir_simulator::{Completion, Device, FlashSsd, IoRequest, Op, is_steady};

const MIB: u64 = 1 << 20;

fn nvme() -> SsdProfile {
    match profile::load("ssd-nvme").unwrap() {
        Profile::Ssd(ssd) => ssd,
        other => panic!("{other:?}"),
    }
}

fn build(profile: &SsdProfile, capacity_bytes: u64) -> FlashSsd {
    profile.build_flash(capacity_bytes, 1).unwrap().unwrap()
}

/// Keeps `depth` requests at the device until `count` are done; returns each one's operation and response time.
fn closed_loop(
    ssd: &mut FlashSsd,
    depth: u64,
    count: u64,
    mut next: impl FnMut(u64) -> (Op, u64, u32),
) -> (Vec<(Op, u64)>, u64) {
    let (mut asked, mut done): (Vec<Op>, Vec<Completion>) = (Vec::new(), Vec::new());
    let mut now_ns = 0;
    let mut times = Vec::new();
    while (times.len() as u64) < count {
        while asked.len() as u64 - times.len() as u64 != depth && (asked.len() as u64) < count {
            let tag = asked.len() as u64;
            let (op, offset_bytes, size_bytes) = next(tag);
            ssd.arrive(now_ns, IoRequest { tag, op, offset_bytes, size_bytes }).unwrap();
            asked.push(op);
        }
        now_ns = ssd.next_event_ns().unwrap();
        ssd.advance(now_ns, &mut done);
        times.extend(done.drain(..).map(|c| (asked[c.tag as usize], c.done_ns - c.start_ns)));
    }
    (times, now_ns)
}

fn percentile(times: &[(Op, u64)], op: Op, share: f64) -> u64 {
    let mut times: Vec<u64> = times.iter().filter(|(o, _)| *o == op).map(|(_, ns)| *ns).collect();
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

#[test]
fn it_has_its_data_sheets_figures() {
    let size = 1024 * MIB;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut random = |_| (Op::Read, rng.random_range(0..size / 4096) * 4096, 4096);
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 1, 5_000, &mut random);
    let rate = 5_000.0 / (elapsed_ns as f64 / 1e9);
    assert!((17_000.0..21_000.0).contains(&rate), "{rate} reads a second at depth 1");
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 128, 100_000, &mut random);
    let rate = 100_000.0 / (elapsed_ns as f64 / 1e9);
    assert!((500_000.0..820_000.0).contains(&rate), "{rate} reads a second at depth 128");
    let in_order = |op| move |i: u64| (op, i * 131_072 % (1024 * MIB), 131_072);
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 64, 40_000, in_order(Op::Write));
    let rate = 40_000.0 * 131_072.0 / (elapsed_ns as f64 / 1e9);
    assert!((rate / 1.7e9 - 1.0).abs() < 0.1, "{rate} bytes a second written in order");
    let (_, elapsed_ns) = closed_loop(&mut build(&nvme(), size), 64, 40_000, in_order(Op::Read));
    let rate = 40_000.0 * 131_072.0 / (elapsed_ns as f64 / 1e9);
    assert!((rate / 3.5e9 - 1.0).abs() < 0.02, "{rate} bytes a second read in order");
}

#[test]
fn data_are_not_programmed_before_they_come() {
    // 1 MiB over 1 GB/s takes 1.05 ms; a write of another die's page behind it waits for the link.
    let flash = nvme().flash.map(|flash| profile::FlashProfile { interface_mb_s: 1000.0, ..flash });
    let mut ssd = build(&SsdProfile { flash, ..nvme() }, 256 * MIB);
    let mut done = Vec::new();
    ssd.arrive(0, IoRequest { tag: 1, op: Op::Write, offset_bytes: 0, size_bytes: 1 << 20 }).unwrap();
    ssd.arrive(0, IoRequest { tag: 2, op: Op::Write, offset_bytes: 64 * MIB, size_bytes: 4096 }).unwrap();
    ssd.advance(u64::MAX, &mut done);
    let done: Vec<_> = done.iter().map(|c| (c.tag, c.done_ns)).collect();
    assert_eq!(done, [(1, 10_000 + 1_048_576), (2, 10_000 + 1_048_576 + 4_096)]);
    // Meanwhile the dies read: none waits for more than the page that its die programs, and its channel.
    let flash = nvme().flash.map(|flash| profile::FlashProfile { interface_mb_s: 100.0, ..flash });
    let mut ssd = build(&SsdProfile { flash, ..nvme() }, 256 * MIB);
    done_after(&mut ssd, 0, IoRequest { tag: 0, op: Op::Write, offset_bytes: 0, size_bytes: 4 << 20 }, 0);
    for i in 1..400 {
        let read =
            IoRequest { tag: i, op: Op::Read, offset_bytes: i * 12_288 % MIB + 128 * MIB, size_bytes: 4096 };
        let taken_ns = done_after(&mut ssd, i * 100_000, read, i);
        assert!(taken_ns < 250_000, "read {i} takes {taken_ns} ns");
    }
}

/// Sends a request at `now_ns`, and returns the time of request `tag`; 0 without waiting (`tag` 0).
fn done_after(ssd: &mut FlashSsd, now_ns: u64, request: IoRequest, tag: u64) -> u64 {
    let mut done = Vec::new();
    ssd.advance(now_ns, &mut done);
    ssd.arrive(now_ns, request).unwrap();
    while tag > 0 && !done.iter().any(|c: &Completion| c.tag == tag) {
        let event_ns = ssd.next_event_ns().unwrap();
        ssd.advance(event_ns, &mut done);
    }
    done.iter().find(|c| c.tag == tag).map_or(0, |c| c.done_ns - now_ns)
}

#[test]
fn garbage_collection_amplifies_random_writes_and_delays_reads() {
    let size = 256 * MIB;
    let mix = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        move |_| {
            let op = if rng.random_range(0..10) < 3 { Op::Write } else { Op::Read };
            (op, rng.random_range(0..size / 4096) * 4096, 4096)
        }
    };
    let mut worn = build(&nvme(), size);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let before = worn.counts();
    assert_eq!((before.host_units, before.write_amplification()), (0, 1.0));
    closed_loop(&mut worn, 32, 400_000, |_| (Op::Write, rng.random_range(0..size / 4096) * 4096, 4096));
    let factor = worn.counts().write_amplification();
    assert!((2.0..8.0).contains(&factor), "write amplification {factor}");
    let (times, _) = closed_loop(&mut worn, 8, 100_000, mix(3));
    let roomy = SsdProfile {
        flash: nvme().flash.map(|flash| profile::FlashProfile { over_provisioning_percent: 900.0, ..flash }),
        ..nvme()
    };
    let (calm, _) = closed_loop(&mut build(&roomy, size), 8, 100_000, mix(3));
    // The erases are in the tail: 3.5 ms, while half of the reads wait for nothing much.
    let tail = |times: &[(Op, u64)]| percentile(times, Op::Read, 0.999);
    assert!(tail(&times) > 1_000_000 && tail(&calm) < 500_000, "{} {}", tail(&times), tail(&calm));
    assert!(percentile(&times, Op::Read, 0.5) < 200_000);
}

#[test]
fn a_full_buffer_makes_writes_wait() {
    let mut ssd = build(&nvme(), 256 * MIB);
    let (times, _) = closed_loop(&mut ssd, 1, 3_000, |i| (Op::Write, i * 65_536 % (256 * MIB), 65_536));
    let alone = times[0].1;
    assert!(alone < 40_000, "the first write takes {alone} ns");
    // All at the same time: 64 MiB do not fit into 8 MiB.
    let mut ssd = build(&nvme(), 256 * MIB);
    let (times, _) = closed_loop(&mut ssd, 1_000, 1_000, |i| (Op::Write, i * 65_536, 65_536));
    assert!(percentile(&times, Op::Write, 0.95) > 10_000_000);
    assert_eq!(ssd.outstanding(), 0);
}

#[test]
fn what_is_in_the_buffer_is_read_from_there() {
    let mut ssd = build(&nvme(), 256 * MIB);
    let mut done = Vec::new();
    ssd.arrive(0, IoRequest { tag: 1, op: Op::Write, offset_bytes: 8192, size_bytes: 4096 }).unwrap();
    ssd.arrive(1, IoRequest { tag: 2, op: Op::Read, offset_bytes: 8192, size_bytes: 4096 }).unwrap();
    ssd.advance(u64::MAX, &mut done);
    // 10 us for the command and 1.2 us on the interface, no flash.
    assert_eq!(done.iter().map(|c| (c.tag, c.done_ns)).collect::<Vec<_>>(), [(1, 11_170), (2, 11_171)]);
}

#[test]
fn sizes_that_need_too_large_a_map_are_refused() {
    let error = nvme().build_flash(2 << 40, 1).unwrap_err().to_string();
    assert!(error.contains("1048576 MiB"), "{error}");
    assert!(build(&nvme(), 512).outstanding() == 0);
}

/// The NVMe profile with other flash.
fn with(change: impl FnOnce(profile::FlashProfile) -> profile::FlashProfile) -> SsdProfile {
    SsdProfile { flash: nvme().flash.map(change), ..nvme() }
}

const SLC: profile::SlcProfile = profile::SlcProfile {
    capacity_percent: 25.0,
    read_latency_us: 20.0,
    write_latency_us: 40.0,
    idle_ms: 5.0,
};

/// Bytes per second of the first and of the last quarter of 64 KiB writes in order, `mib` of them.
fn write_rates(ssd: &mut FlashSsd, mib: u64) -> [f64; 2] {
    let count = mib * 16;
    let (mut done, mut sent, mut finished) = (Vec::new(), 0, Vec::new());
    while (finished.len() as u64) < count {
        while sent < count && sent - (finished.len() as u64) < 256 {
            let now_ns = finished.last().copied().unwrap_or(0);
            let request =
                IoRequest { tag: sent, op: Op::Write, offset_bytes: sent * 65_536, size_bytes: 65_536 };
            ssd.arrive(now_ns, request).unwrap();
            sent += 1;
        }
        let event_ns = ssd.next_event_ns().unwrap();
        ssd.advance(event_ns, &mut done);
        finished.extend(done.drain(..).map(|c| c.done_ns));
    }
    let quarter = finished.len() / 4;
    let rate = |from: usize, to: usize| {
        (to - from) as f64 * 65_536.0 / ((finished[to] - finished[from]) as f64 / 1e9)
    };
    [rate(0, quarter), rate(3 * quarter, 4 * quarter - 1)]
}

#[test]
fn an_slc_cache_takes_writes_at_its_rate_until_it_is_full_and_empties_when_idle() {
    // 32 dies x 16 KiB / 40 us would be 13 GB/s: the link is the limit, 3.5 GB/s. The other blocks take 1.7 GB/s.
    let size = 1024 * MIB;
    let mut ssd = build(&with(|flash| profile::FlashProfile { slc: Some(SLC), ..flash }), size);
    let [begin, end] = write_rates(&mut ssd, 768);
    assert!((begin / 3.5e9 - 1.0).abs() < 0.05, "{begin} bytes a second into the SLC cache");
    assert!((end / 1.7e9 - 1.0).abs() < 0.1, "{end} bytes a second beside it");
    assert_eq!(ssd.outstanding(), 0);
    // Idle: all that the cache holds is moved, once.
    let mut done = Vec::new();
    ssd.advance(u64::MAX, &mut done);
    let counts = ssd.counts();
    assert_eq!((counts.host_units, counts.copied_units), (768 * 256, 0));
    let share = counts.folded_units as f64 / (256.0 * 256.0);
    assert!((0.95..=1.0).contains(&share), "{} units moved, a share of {share}", counts.folded_units);
    assert_eq!(ssd.next_event_ns(), None);
    // Data written again before they are moved are not moved twice.
    let mut ssd = build(&with(|flash| profile::FlashProfile { slc: Some(SLC), ..flash }), size);
    closed_loop(&mut ssd, 1, 1_000, |_| (Op::Write, 0, 4096));
    ssd.advance(u64::MAX, &mut done);
    assert_eq!((ssd.counts().host_units, ssd.counts().folded_units), (1_000, 1));
}

#[test]
fn an_slc_cache_is_read_faster_until_its_data_are_moved() {
    let mut ssd = build(&with(|flash| profile::FlashProfile { slc: Some(SLC), ..flash }), 256 * MIB);
    done_after(&mut ssd, 0, IoRequest { tag: 1, op: Op::Write, offset_bytes: 0, size_bytes: 4096 }, 1);
    let read = |tag| IoRequest { tag, op: Op::Read, offset_bytes: 0, size_bytes: 4096 };
    // 10 us for the command, 3.4 us on the channel, and 20 or 39 us for the flash; after 5 ms its die moves the data.
    let taken = [1_000_000, 20_000_000].map(|now_ns| done_after(&mut ssd, now_ns, read(now_ns), now_ns));
    assert_eq!(taken, [33_413, 52_413]);
}

#[test]
fn repeated_reads_are_as_frequent_as_the_profile_says() {
    let retry = profile::RetryProfile { first_percent: 2.0, next_percent: 30.0 };
    let mut ssd = build(&with(|flash| profile::FlashProfile { read_retry: Some(retry), ..flash }), 256 * MIB);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut random = |_| (Op::Read, rng.random_range(0..256 * MIB / 4096) * 4096, 4096);
    let (times, _) = closed_loop(&mut ssd, 1, 100_000, &mut random);
    // One at a time, a read takes 52.4 us, and 39 us more for each repetition.
    let repeated =
        |times: &[(Op, u64)], ns: u64| times.iter().filter(|(_, taken)| *taken > ns).count() as f64;
    let (once, twice) = (repeated(&times, 53_000), repeated(&times, 53_000 + 39_000));
    assert!((once / 2_000.0 - 1.0).abs() < 0.1, "{once} of 100,000 repeated");
    assert!((twice / once / 0.3 - 1.0).abs() < 0.15, "{twice} of {once} repeated twice");
    let expected = 2_000.0 / 0.7;
    assert!((ssd.counts().retries as f64 / expected - 1.0).abs() < 0.1, "{:?}", ssd.counts());
}

#[test]
fn discarded_data_are_not_read_from_flash() {
    let mut ssd = build(&nvme(), 256 * MIB);
    // Two whole units; the parts of units at both ends keep their data.
    ssd.discard(2048, 4 * 4096 - 2048 - 100);
    let read = |tag, unit| IoRequest { tag, op: Op::Read, offset_bytes: unit * 4096, size_bytes: 4096 };
    let taken =
        [0, 1, 2, 3, 4].map(|unit| done_after(&mut ssd, (unit + 1) << 30, read(unit + 1, unit), unit + 1));
    // Without flash: 10 us for the command and 1.2 us on the interface.
    assert_eq!(taken, [52_413, 11_170, 11_170, 52_413, 52_413]);
    done_after(
        &mut ssd,
        7 << 30,
        IoRequest { tag: 9, op: Op::Write, offset_bytes: 4096, size_bytes: 4096 },
        9,
    );
    assert_eq!(done_after(&mut ssd, 8 << 30, read(10, 1), 10), 52_413);
    // To the end of a device whose last unit is not whole.
    let mut odd = build(&nvme(), 256 * MIB + 512);
    odd.discard(0, u64::MAX);
    let read = IoRequest { tag: 1, op: Op::Read, offset_bytes: 256 * MIB, size_bytes: 512 };
    assert!(done_after(&mut odd, 0, read, 1) < 12_000);
}

/// A shipped profile's requests per second, all of one size and operation.
fn rate(name: &str, depth: u64, count: u64, next: impl FnMut(u64) -> (Op, u64, u32)) -> f64 {
    let mut device = profile::load(name).unwrap().build(1024 * MIB).unwrap();
    let mut next = next;
    let (mut sent, mut finished, mut now_ns, mut done) = (0, 0, 0, Vec::new());
    while finished < count {
        while sent < count && sent - finished < depth {
            let (op, offset_bytes, size_bytes) = next(sent);
            device.arrive(now_ns, IoRequest { tag: sent, op, offset_bytes, size_bytes }).unwrap();
            sent += 1;
        }
        now_ns = device.next_event_ns().unwrap();
        device.advance(now_ns, &mut done);
        finished += done.drain(..).count() as u64;
    }
    count as f64 / (now_ns as f64 / 1e9)
}

#[test]
fn shipped_profiles_have_their_stated_figures() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut random = |op| {
        let offset_bytes = rng.random_range(0..1024 * MIB / 4096) * 4096;
        (op, offset_bytes, 4096)
    };
    let in_order = |op| move |i: u64| (op, i * 131_072 % (1024 * MIB), 131_072);
    let near = |found: f64, stated: f64, share: f64, what: &str| {
        assert!((found / stated - 1.0).abs() < share, "{what}: {found}, stated {stated}");
    };
    near(rate("ssd-optane", 1, 10_000, |_| random(Op::Read)), 100_000.0, 0.06, "Optane, reads at depth 1");
    near(rate("ssd-optane", 32, 100_000, |_| random(Op::Read)), 550_000.0, 0.1, "Optane, reads");
    near(rate("ssd-optane", 32, 100_000, |_| random(Op::Write)), 500_000.0, 0.1, "Optane, writes");
    near(rate("ssd-optane", 32, 10_000, in_order(Op::Read)) * 131_072.0, 2.4e9, 0.03, "Optane in order");
    near(rate("ssd-qlc", 1, 10_000, |_| random(Op::Read)), 10_200.0, 0.06, "QLC, reads at depth 1");
    near(rate("ssd-qlc", 64, 100_000, |_| random(Op::Read)), 150_000.0, 0.15, "QLC, reads");
    near(rate("ssd-qlc", 32, 1_000, in_order(Op::Write)) * 131_072.0, 1.8e9, 0.05, "QLC into its cache");
    near(rate("ssd-tlc", 32, 300, in_order(Op::Write)) * 131_072.0, 3.3e9, 0.1, "TLC into its cache");
    // Beyond the caches: 143 and 43 MiB of this device. What the buffer takes makes the whole look faster.
    near(rate("ssd-qlc", 32, 12_000, in_order(Op::Write)) * 131_072.0, 1.1e8, 0.15, "QLC beyond its cache");
    near(rate("ssd-tlc", 32, 30_000, in_order(Op::Write)) * 131_072.0, 1.7e9, 0.05, "TLC beyond its cache");
}

#[test]
fn a_preconditioned_device_is_in_the_state_that_random_writes_lead_to() {
    let size = 256 * MIB;
    let mut worn = build(&nvme(), size);
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut random = |_| (Op::Write, rng.random_range(0..size / 4096) * 4096, 4096);
    closed_loop(&mut worn, 32, 400_000, &mut random);
    let before = worn.counts();
    closed_loop(&mut worn, 32, 100_000, &mut random);
    let after = worn.counts();
    let by_hand = (after.copied_units - before.copied_units) as f64 / 100_000.0 + 1.0;
    let mut device = build(&nvme(), size);
    let rounds = device.precondition(1);
    assert!(is_steady(&rounds) && rounds.len() < 25, "{rounds:?}");
    assert_eq!((device.counts().host_units, device.counts().copied_units), (0, 0));
    closed_loop(&mut device, 32, 100_000, &mut random);
    let at_once = device.counts().write_amplification();
    assert!((at_once / by_hand - 1.0).abs() < 0.05, "{at_once}, after 400,000 writes {by_hand}");
    // The same by the profile; the data are still there.
    let steady = with(|flash| profile::FlashProfile { start: FlashStart::Steady, ..flash });
    let mut device = build(&steady, size);
    let read = IoRequest { tag: 1, op: Op::Read, offset_bytes: 0, size_bytes: 4096 };
    assert_eq!(done_after(&mut device, 0, read, 1), 52_413);
    closed_loop(&mut device, 32, 50_000, &mut random);
    assert!((device.counts().write_amplification() / by_hand - 1.0).abs() < 0.05);
}

#[test]
fn a_fit_finds_a_drive_again() {
    // A drive that differs from the profile that the fit begins with in all that is fitted. Times carry 1 % of noise.
    let drive = SsdProfile {
        read_latency_us: 61.0,
        command_overhead_us: 6.5,
        write_latency_us: 430.0,
        channel_mb_s: 800.0,
        flash: nvme().flash.map(|flash| profile::FlashProfile {
            interface_mb_s: 2400.0,
            erase_ms: 5.0,
            ..flash
        }),
        ..nvme()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let mut noisy = |ns: f64| ns * rng.random_range(0.99..1.01);
    let measured: Vec<CellTimes> = CELLS
        .iter()
        .map(|cell| {
            let mut found = predict(&drive, *cell).unwrap();
            for times in [&mut found.reads, &mut found.writes].into_iter().flatten() {
                (times.mean_ns, times.p99_ns) = (noisy(times.mean_ns), noisy(times.p99_ns));
            }
            found
        })
        .collect();
    let (fitted, held_out) = halves(measured);
    let error = |profile: &SsdProfile| {
        let all: Vec<(f64, f64)> = held_out
            .iter()
            .flat_map(|drive| errors(&predict(profile, drive.cell).unwrap(), drive).collect::<Vec<_>>())
            .collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| all.iter().map(|one| of(one).abs()).sum::<f64>() / all.len() as f64;
        (mean(|one| one.0), mean(|one| one.1))
    };
    let found = fit(&nvme(), &fitted, |_| ());
    let (before, after) = (error(&nvme()), error(&found));
    // Held-out cells: the goals for real drives are 10 % for the mean and 20 % for the 99th percentile.
    assert!(after.0 < 0.05 && after.1 < 0.1, "{after:?}, before {before:?}: {found:?}");
    assert!(before.0 > 0.2, "{before:?}");
}

#[test]
fn a_die_without_a_cache_register_waits_for_the_channel() {
    // Two pages of one die: 39 us for each read, 3.413 us for 4 KiB on the channel, 10 us for the command.
    let second = |cache_register| {
        let mut ssd = build(&with(|flash| profile::FlashProfile { cache_register, ..flash }), 256 * MIB);
        let read =
            |tag, page: u64| IoRequest { tag, op: Op::Read, offset_bytes: page * 16_384, size_bytes: 4096 };
        ssd.arrive(0, read(1, 0)).unwrap();
        done_after(&mut ssd, 0, read(2, 32), 2)
    };
    assert_eq!([true, false].map(second), [10_000 + 2 * 39_000 + 3_413, 10_000 + 2 * (39_000 + 3_413)]);
}

#[test]
fn without_a_buffer_writes_complete_when_the_flash_has_them() {
    let mut ssd = build(&with(|flash| profile::FlashProfile { write_buffer_kib: 0, ..flash }), 256 * MIB);
    let write =
        |tag, unit: u64, size_bytes| IoRequest { tag, op: Op::Write, offset_bytes: unit * 4096, size_bytes };
    // 10 us for the command, 1.170 us on the link, 3.413 us on the channel, 77 us for a quarter of a page.
    assert_eq!(done_after(&mut ssd, 0, write(1, 0, 4096), 1), 10_000 + 1_170 + 3_413 + 77_000);
    // Two units of a page one after another; the second has arrived meanwhile.
    assert_eq!(done_after(&mut ssd, 1 << 30, write(2, 4, 8192), 2), 10_000 + 1_170 + 2 * (3_413 + 77_000));
    assert_eq!((ssd.counts().host_units, ssd.outstanding()), (3, 0));
    let error = with(|flash| profile::FlashProfile { write_buffer_kib: 2, ..flash }).build_flash(MIB, 1);
    assert!(error.unwrap_err().to_string().contains("flash.write_buffer_kib` is 2, expected from 4"));
}

#[test]
fn preconditioning_is_counted_round_by_round() {
    let steady = with(|flash| profile::FlashProfile { start: FlashStart::Steady, ..flash });
    let found = build(&steady, 64 * MIB).counts().preconditioning.unwrap();
    let rounds = found.amplifications();
    assert!((5..=25).contains(&found.rounds) && rounds.len() == found.rounds);
    assert_eq!(found.round_units, 64 * 256);
    assert!(
        is_steady(&rounds) && !is_steady(&rounds[..found.rounds - 1]),
        "it ends with the first steady round"
    );
    assert_eq!(build(&nvme(), 64 * MIB).counts().preconditioning, None);
}

/// A profile without garbage collection's noise: one channel, two dies, blocks of 8 units.
fn small(change: impl FnOnce(profile::FlashProfile) -> profile::FlashProfile) -> SsdProfile {
    let small = |flash| profile::FlashProfile { dies_per_channel: 2, block_kib: 32, ..flash };
    SsdProfile { channels: 1, page_kib: 4, ..with(|flash| change(small(flash))) }
}

#[test]
fn zones_are_written_in_order_with_an_amplification_of_one() {
    let zns = small(|flash| profile::FlashProfile { placement: profile::Placement::Zns, ..flash });
    let size = 4 * MIB;
    let mut ssd = build(&zns, size);
    assert_eq!(ssd.zone_bytes(), Some(2 * 8 * 4096));
    let zone = 65_536;
    let (mut done, mut now_ns) = (Vec::new(), 0);
    for round in 0..3 {
        for first in (0..size).step_by(zone as usize) {
            ssd.discard(first, zone);
            assert_eq!(ssd.write_pointer(first + 100), Some(first));
            for part in 0..4 {
                // By address, or by an append anywhere in the zone.
                let offset_bytes = first + part * 16_384;
                let write = IoRequest { tag: part, op: Op::Write, offset_bytes, size_bytes: 16_384 };
                if round == 0 {
                    ssd.arrive(now_ns, write).unwrap();
                } else {
                    let found = ssd.append(now_ns, IoRequest { offset_bytes: first, ..write }).unwrap();
                    assert_eq!(found, offset_bytes);
                }
                while let Some(event_ns) = ssd.next_event_ns() {
                    now_ns = event_ns;
                    ssd.advance(now_ns, &mut done);
                }
            }
        }
    }
    let counts = ssd.counts();
    assert_eq!((counts.host_units, counts.copied_units), (3 * size / 4096, 0));
    assert_eq!(counts.write_amplification(), 1.0);
    // Each zone has a block on each of the two dies.
    assert_eq!((counts.erased_blocks, counts.fewest_erases, counts.most_erases), (3 * 2 * size / zone, 3, 3));
    // Elsewhere, across the end, and in parts of a unit: refused, and nothing is written.
    let write = |offset_bytes, size_bytes| IoRequest { tag: 1, op: Op::Write, offset_bytes, size_bytes };
    ssd.discard(0, zone);
    for (request, text) in [
        (
            write(4096, 4096),
            "write at byte 4096: found a byte that is not the write pointer of its zone, expected byte 0",
        ),
        (
            write(0, 69_632),
            "write of 69632 bytes at byte 0: expected a multiple of 4096 bytes, at most the 65536",
        ),
        (write(0, 100), "write of 100 bytes at byte 0: expected a multiple of 4096 bytes"),
    ] {
        let error = ssd.arrive(now_ns, request).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
    assert_eq!((ssd.write_pointer(0), ssd.counts().host_units), (Some(0), 3 * size / 4096));
}

#[test]
fn a_reset_erases_before_the_next_write_and_empties_the_zone() {
    let zns = small(|flash| profile::FlashProfile {
        placement: profile::Placement::Zns,
        write_buffer_kib: 0,
        ..flash
    });
    let mut ssd = build(&zns, 4 * MIB);
    let read = |tag| IoRequest { tag, op: Op::Read, offset_bytes: 0, size_bytes: 4096 };
    assert_eq!(done_after(&mut ssd, 1 << 30, read(1), 1), 52_413);
    ssd.discard(0, 65_535);
    assert_eq!(done_after(&mut ssd, 2 << 30, read(2), 2), 52_413, "a part of a zone is not reset");
    ssd.discard(0, 65_536);
    assert_eq!(done_after(&mut ssd, 3 << 30, read(3), 3), 11_170, "an empty zone is not read from flash");
    let write = IoRequest { tag: 4, op: Op::Write, offset_bytes: 0, size_bytes: 4096 };
    // 10 us for the command; the die begins its erase of 3.5 ms when the write wakes it.
    assert_eq!(done_after(&mut ssd, 4 << 30, write, 4), 3_500_000 + 3_413 + 308_000);
    assert_eq!(ssd.counts().erased_blocks, 1, "the other die erases with its first write");
}

#[test]
fn hot_and_cold_classes_with_handles_of_their_own_need_fewer_copies() {
    let amplified = |placement, handles| {
        let profile = small(|flash| profile::FlashProfile {
            placement,
            reclaim_unit_handles: handles,
            block_kib: 128,
            ..flash
        });
        let mut ssd = build(&profile, 16 * MIB);
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        let (mut done, mut now_ns) = (Vec::new(), 0);
        for tag in 0..80_000 {
            let is_hot = rng.random_bool(0.9);
            let unit = if is_hot { rng.random_range(0..400) } else { rng.random_range(400..4096) };
            let write = IoRequest { tag, op: Op::Write, offset_bytes: unit * 4096, size_bytes: 4096 };
            ssd.arrive_of(now_ns, write, usize::from(is_hot)).unwrap();
            while ssd.outstanding() > 0 {
                now_ns = ssd.next_event_ns().unwrap();
                ssd.advance(now_ns, &mut done);
            }
        }
        ssd.counts().write_amplification()
    };
    let mixed = amplified(profile::Placement::Page, None);
    let apart = amplified(profile::Placement::Fdp, Some(2));
    assert!(apart < 0.9 * mixed, "apart {apart}, mixed {mixed}");
    // With one handle it is the same device.
    assert_eq!(amplified(profile::Placement::Fdp, Some(1)), mixed);
}

#[test]
fn submission_queues_share_the_controllers_slots() {
    let queues = |slots, weights: &[u32]| {
        let queues =
            profile::QueuesProfile { slots, burst: 1, weights: weights.to_vec(), urgent: Vec::new() };
        build(&SsdProfile { queues: Some(Box::new(queues)), ..nvme() }, 256 * MIB)
    };
    // Ten reads of class 0 and then four of class 1, each on a die of its own, one in the controller: 52.413 us each.
    let order = |mut ssd: FlashSsd| {
        for tag in 0..14 {
            let read = IoRequest { tag, op: Op::Read, offset_bytes: tag * 16_384, size_bytes: 4096 };
            ssd.arrive_of(0, read, usize::from(tag >= 10)).unwrap();
        }
        assert_eq!(ssd.outstanding(), 14);
        let mut done = Vec::new();
        ssd.advance(u64::MAX, &mut done);
        assert_eq!(ssd.outstanding(), 0);
        done.iter().map(|c| (c.tag, c.start_ns, c.done_ns)).collect::<Vec<_>>()
    };
    let tags = |done: &[(u64, u64, u64)]| done.iter().map(|(tag, ..)| *tag).collect::<Vec<_>>();
    let turns = order(queues(1, &[]));
    assert_eq!(tags(&turns), [0, 10, 1, 11, 2, 12, 3, 13, 4, 5, 6, 7, 8, 9]);
    assert!(
        turns
            .iter()
            .zip(0..)
            .all(|((_, start_ns, done_ns), i)| { (*start_ns, *done_ns) == (i * 52_413, (i + 1) * 52_413) })
    );
    assert_eq!(tags(&order(queues(1, &[3, 1]))), [0, 1, 2, 10, 3, 4, 5, 11, 6, 7, 8, 12, 9, 13]);
    // With a slot for each, the device is the one without queues.
    let without = order(build(&nvme(), 256 * MIB));
    assert_eq!(order(queues(14, &[])), without);
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    type Change = fn(profile::FlashProfile) -> profile::FlashProfile;
    let cases: [(Change, &str); 5] = [
        (
            |f| profile::FlashProfile { placement: profile::Placement::Fdp, ..f },
            "without `flash.reclaim_unit_handles`",
        ),
        (|f| profile::FlashProfile { reclaim_unit_handles: Some(2), ..f }, "without `flash.placement: fdp`"),
        (
            |f| profile::FlashProfile { placement: profile::Placement::Zns, slc: Some(SLC), ..f },
            "with `flash.slc` or `flash.wear_gap_erases`",
        ),
        (
            |f| profile::FlashProfile { placement: profile::Placement::Zns, start: FlashStart::Steady, ..f },
            "zones cannot be written at random",
        ),
        (
            |f| profile::FlashProfile {
                placement: profile::Placement::Fdp,
                reclaim_unit_handles: Some(200),
                ..f
            },
            "`flash.reclaim_unit_handles` is 200, expected from 1 to 128",
        ),
    ];
    for (change, text) in cases {
        let error = with(change).build_flash(256 * MIB, 1).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let queues = Some(Box::new(profile::QueuesProfile {
        slots: 0,
        burst: 1,
        weights: Vec::new(),
        urgent: Vec::new(),
    }));
    let error = SsdProfile { queues: queues.clone(), ..nvme() }.build_flash(256 * MIB, 1).unwrap_err();
    assert!(error.to_string().contains("`queues.slots` is 0, expected from 1"), "{error}");
    let error = SsdProfile { queues, flash: None, ..nvme() }.build(256 * MIB).unwrap_err().to_string();
    assert!(error.contains("`queues` without `flash`"), "{error}");
    // A block device has no write pointers.
    let zns = Profile::Ssd(with(|f| profile::FlashProfile { placement: profile::Placement::Zns, ..f }));
    let Err(error) = zns.build(256 * MIB) else { panic!("a block device with zones") };
    assert!(error.to_string().contains("testbed: simulator"), "{error}");
}

#[test]
fn the_controller_begins_one_command_at_a_time() {
    // 39 us for the read, 3.413 us for 4 KiB on the channel, 10 us for the command, and 20 us of the controller before it. Pages 0
    // to 3 are on dies of four channels.
    let slow = with(|flash| profile::FlashProfile { controller_us: 20.0, ..flash });
    let mut ssd = build(&slow, 256 * MIB);
    for page in 0..4_u64 {
        let read = IoRequest { tag: page, op: Op::Read, offset_bytes: page * 16_384, size_bytes: 4096 };
        ssd.arrive(0, read).unwrap();
    }
    let mut done = Vec::new();
    ssd.advance(u64::MAX, &mut done);
    let times: Vec<u64> = done.iter().map(|one| one.done_ns).collect();
    assert_eq!(times, [1, 2, 3, 4].map(|begun| begun * 20_000 + 10_000 + 39_000 + 3_413));
}

#[test]
fn a_die_programs_so_much_at_once_and_reads_wait_for_it() {
    // Units 0 to 3 are page 0, on die 0. 308 us for a page: 77 us a unit.
    let gathers = with(|flash| profile::FlashProfile { program_kib: 16, ..flash });
    let write =
        |unit: u64| IoRequest { tag: unit, op: Op::Write, offset_bytes: unit * 4096, size_bytes: 4096 };
    let mut ssd = build(&gathers, 256 * MIB);
    let mut done = Vec::new();
    for unit in 0..3 {
        ssd.arrive(0, write(unit)).unwrap();
    }
    ssd.advance(1_000_000, &mut done);
    // The buffer has them; the die waits for the fourth.
    assert_eq!((done.len(), ssd.counts().host_units), (3, 0));
    ssd.arrive(1_000_000, write(3)).unwrap();
    let there_ns = 1_000_000 + 10_000 + 1_170;
    ssd.advance(there_ns, &mut done);
    // A read of another page of the die, which has been programming since then.
    let page_of_die_0 = 32 * 16_384;
    let read = IoRequest { tag: 9, op: Op::Read, offset_bytes: page_of_die_0, size_bytes: 4096 };
    let read_ns = done_after(&mut ssd, there_ns, read, 9);
    assert_eq!(read_ns, 4 * 3_413 + 308_000 + 39_000 + 3_413);
    assert_eq!(ssd.counts().host_units, 4);
}

#[test]
fn a_full_buffer_does_not_wait_for_whole_programs() {
    // Room for 8 units of many dies: dies seldom have the 4 units of a program, and all writes are done nevertheless.
    let rate = |program_kib| {
        let profile = with(|flash| profile::FlashProfile { program_kib, write_buffer_kib: 32, ..flash });
        let mut ssd = build(&profile, 256 * MIB);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let write = |_| (Op::Write, rng.random_range(0..256 * MIB / 4096) * 4096, 4096);
        let (_, elapsed_ns) = closed_loop(&mut ssd, 16, 5_000, write);
        assert!(ssd.counts().host_units >= 5_000 - 8, "{:?}", ssd.counts());
        5_000.0 / (elapsed_ns as f64 / 1e9)
    };
    // A program with less takes as long as a whole one, here of nearly always one unit: a quarter of the rate.
    let ratio = rate(4) / rate(16);
    assert!((3.0..4.2).contains(&ratio), "{ratio}");
}

#[test]
fn writes_with_whole_programs_have_the_rate_of_the_dies() {
    // Enough room: programs are whole, and the rate is that of all dies, whatever they program at once.
    let rate = |program_kib| {
        let profile = with(|flash| profile::FlashProfile { program_kib, ..flash });
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let write = |_| (Op::Write, rng.random_range(0..1024 * MIB / 4096) * 4096, 4096);
        let (_, elapsed_ns) = closed_loop(&mut build(&profile, 1024 * MIB), 64, 20_000, write);
        20_000.0 / (elapsed_ns as f64 / 1e9)
    };
    let ratio = rate(64) / rate(4);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}
